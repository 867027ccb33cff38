"""The core's trees, driven as the reference's are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from tests.reference.streams import Example

from sapwood import _core
from sapwood.reference.linear import Rule
from sapwood.reference.records import Event

N_COLUMNS = 16
MOST_LABELS = 1000


def dense_stream(stream: list[Example]) -> list[Example]:
    """The same examples with every column named, as the dense kernels read them."""
    return [
        Example(list(enumerate(row.tolist())), y, weight)
        for row, (_, y, weight) in zip(matrix(stream), stream, strict=True)
    ]


def matrix(stream: list[Example]) -> np.ndarray:
    """The rows as a dense matrix."""
    X = np.zeros((len(stream), N_COLUMNS), dtype=np.float32)
    for i, example in enumerate(stream):
        for column, value in example.x:
            X[i, column] = value
    return X


def rows_of(stream: list[Example], dense: bool) -> _core.Rows:
    """The rows as the core sees them; zeros that the stream stores are stored here too."""
    if dense:
        return _core.Rows.dense(matrix(stream))
    indptr = np.cumsum([0, *(len(example.x) for example in stream)])
    indices = np.array([j for example in stream for j, _ in example.x], dtype=np.int32)
    values = np.array([value for example in stream for _, value in example.x], dtype=np.float32)
    X = sp.csr_matrix((values, indices, indptr.astype(np.int32)), shape=(len(stream), N_COLUMNS))
    return _core.Rows.csr(X.indptr, X.indices, X.data, N_COLUMNS)


def settings_of(rule: Rule, dense: bool) -> dict[str, object]:
    """What every core tree is made with."""
    return {
        "dense": dense,
        "n_columns": N_COLUMNS,
        "loss": rule.loss,
        "method": rule.method,
        "step": rule.step,
        "initial": rule.initial,
        "tolerance": rule.tolerance,
        "normalize": False,
    }


def lom_tree(rule: Rule, dense: bool, **settings: object) -> _core.LomTree:
    """A LOMtree that records what it decides."""
    defaults = {"max_internal": -1, "internal_per_label": 1, "swap_resistance": 4.0}
    tree = _core.LomTree(**settings_of(rule, dense), **{**defaults, **settings})
    tree.record()
    return tree


def balanced_tree(rule: Rule, dense: bool, *, is_filter: bool, seed: int) -> _core.BalancedTree:
    """A random or filter tree that records what it decides."""
    tree = _core.BalancedTree(**settings_of(rule, dense), filter=is_filter, random_state=seed)
    tree.record()
    return tree


def learn(tree: _core._OnlineTree, stream: list[Example], dense: bool, **kwargs: object) -> None:
    """Learn a stream in its order."""
    options = {"passes": 1, "shuffle": None, "predict_first": False, "progress": None, **kwargs}
    tree.learn(
        rows_of(stream, dense),
        np.array([example.y for example in stream], dtype=np.int32),
        n_labels=MOST_LABELS,
        row_weight=np.array([example.weight for example in stream], dtype=np.float32),
        **options,
    )


def events(tree: _core._OnlineTree) -> list[Event]:
    """What the tree decided, as the reference records it."""
    return [Event(*event) for event in tree.events()]
