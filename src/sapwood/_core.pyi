"""The compiled core. Private: the public names are those of the Python packages."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Top = tuple[NDArray[np.int32], NDArray[np.float32]]
_Arrays = dict[str, NDArray[Any]]
_Progress = Callable[[int, int], None]

_Rows = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]
_LabelRows = tuple[NDArray[np.int32], NDArray[np.int64]]

class ParseError(ValueError):
    """Its arguments are (line, column, message)."""

class SvmlightParser:
    """Reads svmlight text block by block."""

    def __init__(self, *, n_features: int | None, zero_based: bool | None, multilabel: bool) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def position(self) -> tuple[int, int]: ...
    def finish(self) -> tuple[_Rows, NDArray[np.float64], _LabelRows, int, int]: ...

class XmcParser:
    """Reads XMC repository text block by block."""

    def __init__(self) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def position(self) -> tuple[int, int]: ...
    def finish(self) -> tuple[_Rows, _LabelRows, int, int]: ...

def write_target_rows(
    targets: NDArray[np.float64],
    values: NDArray[np.float32],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int64],
    *,
    row: int,
    base: int,
) -> tuple[bytes, int]: ...
def write_label_rows(
    label_indices: NDArray[np.int32],
    label_indptr: NDArray[np.int64],
    values: NDArray[np.float32],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int64],
    *,
    row: int,
    base: int,
) -> tuple[bytes, int]: ...
def checksum(data: NDArray[np.uint8]) -> int: ...
def instruction_set() -> str: ...

class Rows:
    """A view of the rows of a dense or CSR matrix of float32."""

    matrix: Any
    """What it views, as Python holds it."""

    @staticmethod
    def csr(
        indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[np.float32], n_columns: int
    ) -> Rows: ...
    @staticmethod
    def dense(values: NDArray[np.float32]) -> Rows: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def is_dense(self) -> bool: ...
    def check(self) -> None: ...
    def ascends(self) -> bool: ...

def train_label_forest(
    X: Rows,
    label_indptr: NDArray[np.int64],
    labels: NDArray[np.int32],
    *,
    n_labels: int,
    row_weight: NDArray[np.float32] | None,
    label_weight: NDArray[np.float32] | None,
    shape_indptr: NDArray[np.int64] | None,
    shape_children: NDArray[np.int32] | None,
    n_trees: int,
    arity: int,
    max_leaf: int,
    balanced: bool,
    solver: str,
    loss: str,
    C: float,
    tolerance: float,
    step: float,
    passes: int,
    prune: float,
    half: bool,
    normalize: bool,
    seed: int,
    n_threads: int,
    progress: _Progress | None,
) -> _Arrays: ...

class Forest:
    """Trained label trees, read only."""

    def __init__(self, arrays: _Arrays, *, n_labels: int, half: bool, loss: str) -> None: ...
    def top(
        self, X: Rows, k: int, beam: int, min_beam_share: float, normalize: bool, n_threads: int
    ) -> _Top: ...
    def reached(
        self, X: Rows, *, normalize: bool, n_threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def node_scores(self, X: Rows, row: int, node: int, normalize: bool) -> _Top: ...

def train_fastxml(
    X: Rows,
    label_indptr: NDArray[np.int64],
    labels: NDArray[np.int32],
    *,
    n_labels: int,
    row_weight: NDArray[np.float32] | None,
    n_trees: int,
    max_leaf: int,
    leaf_labels: int,
    C: float,
    passes: int,
    normalize: bool,
    seed: int,
    n_threads: int,
    progress: _Progress | None,
) -> _Arrays: ...
def train_coding_tree(
    X: Rows,
    label_indptr: NDArray[np.int64],
    labels: NDArray[np.int32],
    *,
    n_labels: int,
    row_weight: NDArray[np.float32] | None,
    rule: str,
    min_examples: int,
    options: dict[str, Any],
    normalize: bool,
    n_threads: int,
    progress: _Progress | None,
) -> _Arrays: ...
def distinct_label_sets(
    label_indptr: NDArray[np.int64], labels: NDArray[np.int32], *, n_labels: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]: ...

class Trees:
    """Trees of sparse linear classifiers, read only."""

    def __init__(self, arrays: _Arrays, *, n_labels: int, n_features: int) -> None: ...
    def leaves(self, X: Rows, *, normalize: bool, n_threads: int) -> NDArray[np.int32]: ...
    def top_by_mean(
        self, X: Rows, *, k: int, others: NDArray[np.int32], normalize: bool, n_threads: int
    ) -> _Top: ...
    def top_by_search(
        self, X: Rows, *, k: int, beam: int, slope: float, normalize: bool, n_threads: int
    ) -> _Top: ...
    def sets_by_search(
        self, X: Rows, *, beam: int, slope: float, normalize: bool, n_threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def node_score(self, X: Rows, *, row: int, node: int, normalize: bool) -> float: ...

class OneVsAll:
    """One-against-all that learns online."""

    def __init__(
        self, *, loss: str, step: float, normalize: bool, negatives: int, random_state: int
    ) -> None: ...
    def learn(
        self,
        X: Rows,
        label_indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        *,
        n_labels: int,
        n_known: int,
        row_weight: NDArray[np.float32] | None,
        predict_first: bool,
        progress: _Progress | None,
    ) -> None: ...
    def progressive(self) -> tuple[float, float]: ...
    def top(self, X: Rows, *, k: int, n_threads: int) -> _Top: ...
    def label_score(self, X: Rows, *, row: int, label: int) -> float: ...
    def state(self) -> _Arrays: ...
    def restore(self, arrays: _Arrays, *, n_labels: int) -> None: ...
    def take(self, forest: Forest) -> None: ...

class LabelBTree:
    """A B-tree of banks that learns online."""

    def __init__(
        self,
        *,
        arity: int,
        max_leaf: int,
        step: float,
        normalize: bool,
        decay: float,
        max_memory: int,
        second_look: int,
        random_state: int,
    ) -> None: ...
    def learn(
        self,
        X: Rows,
        label_indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        *,
        n_labels: int,
        row_weight: NDArray[np.float32] | None,
        passes: int,
        predict_first: bool,
        beam: int,
        min_beam_share: float,
        progress: _Progress | None,
    ) -> None: ...
    def top(self, X: Rows, *, k: int, beam: int, min_beam_share: float, n_threads: int) -> _Top: ...
    def path(self, X: Rows, *, row: int, label: int) -> list[tuple[int, int, int, float, int]]: ...
    def remove(self, labels: list[int]) -> None: ...
    def state(self) -> _Arrays: ...
    def restore(self, arrays: _Arrays, *, n_labels: int) -> None: ...
    def shape(self) -> _Arrays: ...
    def leaves(self) -> NDArray[np.int32]: ...
    def counts(self) -> NDArray[np.int64]: ...
    def progressive(self) -> tuple[float, float]: ...
    @property
    def dropped_lines(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def n_placed(self) -> int: ...

def train_bac(
    X: Rows,
    signs: NDArray[np.int8],
    options: dict[str, Any],
    *,
    row_scale: NDArray[np.float32] | None = None,
    row_weight: NDArray[np.float32] | None = None,
    fold: NDArray[np.uint8] | None = None,
    n_folds: int = 1,
    progress: _Progress | None = None,
) -> dict[str, Any]: ...
def train_bac_set(
    X: Rows,
    label_indptr: NDArray[np.int64],
    labels: NDArray[np.int32],
    *,
    n_labels: int,
    row_weight: NDArray[np.float32] | None,
    groups: bool,
    options: dict[str, Any],
    normalize: bool,
    seed: int,
    n_threads: int,
    progress: _Progress | None,
) -> _Arrays: ...

class BacSet:
    """Budget-aware classifiers that tell labels apart, read only."""

    def __init__(self, arrays: _Arrays, *, n_labels: int, n_columns: int, loss: str) -> None: ...
    def top(self, X: Rows, *, k: int, normalize: bool, n_threads: int) -> _Top: ...
    def decisions(self, X: Rows, *, normalize: bool, n_threads: int) -> NDArray[np.float64]: ...

def train_budgeted_tree(
    X: Rows,
    label_indptr: NDArray[np.int64],
    labels: NDArray[np.int32],
    *,
    n_labels: int,
    row_weight: NDArray[np.float32] | None,
    fold: NDArray[np.uint8] | None,
    n_folds: int,
    max_depth: int,
    max_features: int,
    options: dict[str, Any],
    normalize: bool,
    seed: int,
    n_threads: int,
    progress: _Progress | None,
) -> tuple[_Arrays, float, float, int]: ...

class BudgetedTree:
    """A budgeted tree, read only."""

    def __init__(self, arrays: _Arrays, *, n_folds: int, n_labels: int, n_columns: int) -> None: ...
    def top(self, X: Rows, *, k: int, normalize: bool, n_threads: int) -> _Top: ...
    def leaves(self, X: Rows, *, normalize: bool, n_threads: int) -> NDArray[np.int32]: ...

class _OnlineTree:
    """What the online trees have in common."""

    def learn(
        self,
        X: Rows,
        labels: NDArray[np.int32],
        *,
        n_labels: int,
        row_weight: NDArray[np.float32] | None,
        passes: int,
        shuffle: int | None,
        predict_first: bool,
        n_at_once: int = 1,
        progress: _Progress | None,
    ) -> None: ...
    def top(self, X: Rows, *, k: int, n_threads: int) -> _Top: ...
    def path(self, X: Rows, *, row: int) -> tuple[list[int], list[float], list[int], int]: ...
    def progressive(self) -> tuple[float, float]: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def router_bytes(self) -> int: ...
    def record(self) -> None: ...
    def events(
        self,
    ) -> list[tuple[int, str, tuple[int, ...], tuple[int, ...], tuple[float, ...]]]: ...
    def tree(self) -> _Arrays: ...
    def state(self) -> _Arrays: ...
    def restore(self, arrays: _Arrays, *, n_labels: int) -> None: ...

class LomTree(_OnlineTree):
    """A LOMtree."""

    def __init__(
        self,
        *,
        dense: bool,
        n_columns: int,
        loss: str,
        method: str,
        step: float,
        initial: float,
        tolerance: float,
        max_internal: int,
        internal_per_label: int,
        swap_resistance: float,
        normalize: bool,
    ) -> None: ...
    def ranking(self, leaf: int, *, top: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...

class RecallTree(_OnlineTree):
    """A Recall Tree."""

    def __init__(
        self,
        *,
        dense: bool,
        n_columns: int,
        loss: str,
        method: str,
        step: float,
        initial: float,
        tolerance: float,
        router_step: float,
        router_tolerance: float,
        max_candidates: int,
        coverage: float,
        max_depth: int,
        bound: float,
        early_stop: bool,
        router_weight: str,
        randomized_routing: bool,
        path_features: str,
        cross_path: bool,
        arity: int,
        normalize: bool,
        random_state: int,
    ) -> None: ...
    def explain(
        self, X: Rows, *, row: int
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.float32],
        int,
        str,
        NDArray[np.int32],
        NDArray[np.float32],
    ]: ...
    def set_threads(self, n: int) -> None: ...
    def figures(self) -> dict[str, NDArray[Any]]: ...
    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
    label_bytes: int
    n_candidates: int

class BalancedTree(_OnlineTree):
    """A random tree or a filter tree."""

    def __init__(
        self,
        *,
        dense: bool,
        n_columns: int,
        loss: str,
        method: str,
        step: float,
        initial: float,
        tolerance: float,
        filter: bool,
        normalize: bool,
        random_state: int,
    ) -> None: ...
