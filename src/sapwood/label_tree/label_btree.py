"""The label B-tree: a label tree that learns from a stream, with labels that nobody announced."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sapwood import _core
from sapwood._estimator import all_or_nothing, n_threads
from sapwood._labels import Targets, as_label_array
from sapwood._online import OnlineClassifier
from sapwood._parameters import check_number, check_whole
from sapwood._progress import progress
from sapwood.label_tree.forest import Explanation, Step, probability

MOST_CHILDREN = 256
MOST_MEMORY = 2**62


class LabelBTreeClassifier(OnlineClassifier):
    """Label tree that learns online: labels may appear at any time, and every leaf has the same depth.

    A node holds a regressor for each of its children; a new label goes where the regressors lead its first row. A
    full node splits in two, so that children stay together whose regressors look for the same features, and its
    parent learns from their weights which way each has gone. As in a B-tree, every node but the root is at least
    half full, so that K labels need at most 2 + log(K / `max_leaf`) / log(`arity` / 2) nodes from the root to a leaf,
    whatever the stream: 4 for a million. Multiclass and multilabel.

    Parameters
    ----------
    arity : int, default=64
        Most children of an inner node: an even number from 4 to 256.
    max_leaf : int, default=256
        Most labels of a leaf, likewise. More are more accurate and cost more time.
    passes : int, default=3
        How often `fit` goes through the rows. `partial_fit` does once.
    step : float, default=0.7
        First step size of AdaGrad, divided by the root of the mean number of labels a row so far. Where most columns
        are seldom 0, such as pixels, 0.2 is better: each step moves them all.
    decay : float, default=0
        For streams that drift: the share of what is known of a weight's past gradients that is forgotten whenever it
        is learned, so that steps do not shrink for ever. 0 forgets nothing; 0.001 to 0.01 follow a moving stream.
    max_memory : int, optional
        Most bytes for weights and their index. When they are reached, lines of the least weight are dropped: see
        `dropped_lines_`. By default there is no limit.
    second_look : int, default=16000
        A row that was learned with a mistake while one of its labels was new (16 rows or fewer) is kept and learned
        once more after so many rows, when the label has met its neighbours; 0 keeps none. Rows that wait are saved
        with the model; they are a million entries at the most.
    beam : int, default=10
        How many nodes a level the search follows.
    min_beam_share : float, default=0.05
        Nodes less likely than this share of the level's best are not followed.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed. The same seed, data and parameters give the same model, for any `n_jobs`.
    n_jobs : int, optional
        Threads for prediction: None is 1, -1 all cores. Learning uses one.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        All labels met or announced, in the order of their codes.
    labels_ : ndarray
        Those of them that have a place in the tree: met, and not removed since.
    label_counts_ : ndarray
        How many rows of each of `labels_` were learned.
    depth_ : int
        How many nodes there are from the root to a leaf, both included.
    memory_, dropped_lines_ : int
        Bytes of the weights and their index; lines of 16 weights dropped to keep within `max_memory`.
    progressive_loss_ : float
        Share of the rows given to `partial_fit` that were predicted wrongly before they were learned.
    n_features_in_ : int
        Columns of the training data.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import LabelBTreeClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = LabelBTreeClassifier(random_state=0).partial_fit(X[:2], ["oak", "ash"])
    >>> model.partial_fit(X[2:], ["elm"]).predict(X)
    array(['oak', 'ash', 'elm'], dtype='<U3')
    >>> model.remove_labels(["ash"]).labels_
    array(['oak', 'elm'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        arity: int = 64,
        max_leaf: int = 256,
        passes: int = 3,
        step: float = 0.7,
        decay: float = 0.0,
        max_memory: int | None = None,
        second_look: int = 16000,
        beam: int = 10,
        min_beam_share: float = 0.05,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.arity = arity
        self.max_leaf = max_leaf
        self.passes = passes
        self.step = step
        self.decay = decay
        self.max_memory = max_memory
        self.second_look = second_look
        self.beam = beam
        self.min_beam_share = min_beam_share
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> LabelBTreeClassifier:
        """Learn rows and their labels in their order, `passes` times; a model that was there before is replaced.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            The rows. float32 data are not copied.
        y : array-like of shape (n_samples,), indicator of shape (n_samples, n_labels), or list of lists of labels
            Ints or strings, one label a row; a 2-D array or CSR of zeros and ones; or the labels of each row.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row, 0 or more.
        """
        self._check_parameters()
        rows, targets, weight = self._begin_fit(X, y, sample_weight)
        model = self._new_tree()
        self._run(model, rows, targets, weight, passes=self.passes, predict_first=False)
        self._model = model
        self._note_targets(targets)
        self._note_labels()
        return self

    def remove_labels(self, labels: ArrayLike) -> LabelBTreeClassifier:
        """Withdraw labels: predictions name them no more, and nodes left less than half full merge.

        A label that is withdrawn stays in `classes_`, and is learned anew if it comes again.

        Parameters
        ----------
        labels : array-like
            Labels that the tree knows.
        """
        check_is_fitted(self)
        leaves = self._model.core.leaves()
        codes = []
        for label in as_label_array(np.asarray(labels)).tolist():
            code = self._code_of.get(label, len(leaves))
            if code >= len(leaves) or leaves[code] < 0:
                raise ValueError(f"the tree does not know the label {label!r}")
            codes.append(code)
        self._model.core.remove(codes)
        return self

    @property
    def labels_(self) -> NDArray[Any]:
        """The labels that have a place in the tree."""
        return self.classes_[self._placed()]

    @property
    def label_counts_(self) -> NDArray[np.int64]:
        """How many rows of each of `labels_` were learned."""
        counts: NDArray[np.int64] = self._model.core.counts()[self._placed()]
        return counts

    @property
    def depth_(self) -> int:
        """Nodes from the root to a leaf: the same for all leaves."""
        shape = self._model.core.shape()
        parent = shape["parent"]
        node, depth = int(np.argmin(np.diff(shape["indptr"]))), 1  # a leaf: no child of it is a node
        while parent[node] >= 0:
            node, depth = parent[node], depth + 1
        return depth

    @property
    def memory_(self) -> int:
        """Bytes of the weights and their index."""
        return int(self._model.core.memory)

    @property
    def dropped_lines_(self) -> int:
        """Lines of 16 weights that were dropped to keep within `max_memory`."""
        return int(self._model.core.dropped_lines)

    def explain(self, x: Any) -> Explanation:
        """Tell the way from the root to the best label of one row.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        codes, scores = self._top(rows, 1)
        steps = [
            Step(node, n_children, rank, score, probability(score, "squared_hinge"), n_labels)
            for node, n_children, rank, score, n_labels in self._model.core.path(
                rows, row=0, label=int(codes[0, 0])
            )
        ]
        return Explanation(self.classes_[codes[0, 0]], float(scores[0, 0]), [steps])

    def _placed(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._model.core.leaves() >= 0)

    def _new_tree(self) -> _Tree:
        return _Tree(
            arity=int(self.arity),
            max_leaf=int(self.max_leaf),
            step=float(self.step),
            normalize=bool(self.normalize),
            decay=float(self.decay),
            max_memory=int(self.max_memory or 0),
            second_look=int(self.second_look),
            random_state=self._seed(),
        )

    def _start(self) -> None:
        self._model = self._new_tree()

    def _learn(
        self, rows: _core.Rows, targets: Targets, weight: NDArray[np.float32] | None, n_known: int
    ) -> None:
        self._run(self._model, rows, targets, weight, passes=1, predict_first=True)

    def _run(
        self,
        model: _Tree,
        rows: _core.Rows,
        targets: Targets,
        weight: NDArray[np.float32] | None,
        *,
        passes: int,
        predict_first: bool,
    ) -> None:
        model.n_labels = len(targets.classes)
        with progress(f"{type(self).__name__}: {rows.n_rows:,} rows", self.verbose) as report:
            model.core.learn(
                rows,
                targets.indptr,
                targets.codes,
                n_labels=model.n_labels,
                row_weight=weight,
                passes=passes,
                predict_first=predict_first,
                beam=self.beam,
                min_beam_share=self.min_beam_share,
                progress=report,
            )

    def _progressive(self) -> tuple[float, float]:
        return self._model.core.progressive()

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        self._n_reachable()
        return self._model.core.top(
            rows, k=k, beam=self.beam, min_beam_share=self.min_beam_share, n_threads=n_threads(self.n_jobs)
        )

    def _n_reachable(self) -> int:
        n_placed = int(self._model.core.n_placed)
        if n_placed == 0:
            raise NotFittedError(f"This {type(self).__name__} instance knows no label.")
        return n_placed

    def _check_parameters(self) -> None:
        for name in ("arity", "max_leaf"):
            value = getattr(self, name)
            check_whole(name, value, least=4)
            if value > MOST_CHILDREN or value % 2:
                raise ValueError(f"{name} must be an even number from 4 to {MOST_CHILDREN}, not {value!r}")
        check_whole("passes", self.passes, least=1)
        check_number("step", self.step, above=0)
        check_number("decay", self.decay, least=0, most=1)
        if self.max_memory is not None:
            check_number("max_memory", self.max_memory, above=0, most=MOST_MEMORY)
        check_whole("second_look", self.second_look, least=0)
        check_whole("beam", self.beam, least=1)
        check_number("min_beam_share", self.min_beam_share, least=0, most=1)
        n_threads(self.n_jobs)

    def _nodes(self) -> dict[str, NDArray[Any]]:
        shape = self._model.core.shape()
        rows = [shape["children"][a:b] for a, b in pairwise(shape["indptr"].tolist())]
        children = np.full((len(rows), max(1, *map(len, rows))), -1, dtype=np.int32)
        for node, row in enumerate(rows):
            children[node, : len(row)] = row
        return {"parent": shape["parent"], "children": children, "n_labels": shape["n_labels"]}

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return self._model.core.state()

    def _metadata(self) -> dict[str, Any]:
        return {"settings": self._model.settings}

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        self._model = _Tree.of(tensors, len(self.classes_), metadata["settings"])
        self._note_labels()


class _Tree:
    """The core's tree, and how it was made: so that it can be copied and written to a file."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.core = _core.LabelBTree(**settings)
        self.n_labels = 0

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], n_labels: int, settings: Mapping[str, Any]) -> _Tree:
        """Take back what the core's `state` gave."""
        model = cls(**settings)
        model.core.restore(dict(arrays), n_labels=n_labels)
        model.n_labels = n_labels
        return model

    def __reduce__(self) -> Any:
        return _Tree.of, (self.core.state(), self.n_labels, self.settings)
