"""FastXML: trees over the rows that rank labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import SapwoodClassifier, all_or_nothing, n_threads
from sapwood._labels import Targets
from sapwood._linear_trees import LinearTrees, Step
from sapwood._parameters import check_number, check_whole
from sapwood._progress import progress


@dataclass(frozen=True)
class FastXMLExplanation:
    """Why a row got its best label.

    Attributes
    ----------
    label
        The label.
    score : float
        The mean over the trees of its share of the rows in the leaf that the row comes to.
    paths : list of list of Step
        For each tree, the decisions from the root to the leaf.
    shares : list of float
        For each tree, the label's share in that leaf.
    """

    label: Any
    score: float
    paths: list[list[Step]]
    shares: list[float]


class FastXMLClassifier(SapwoodClassifier):
    """Ensemble of trees over the rows, each of whose nodes keeps rows with like labels together.

    A node ranks the labels of either side so that their nDCG is largest, and learns a sparse separator that sends new
    rows to the side whose ranking suits them. A leaf holds the mean label vector of its rows; the answer is the mean
    over the trees. Multilabel and multiclass. It ranks well and is quick to train whatever the number of labels; as its
    probabilities are shares of leaves, few labels pass the half that `predict` wants: ask for `predict_topk`.

    Parameters
    ----------
    n_trees : int, default=50
        How many trees to average.
    max_leaf : int, default=10
        Nodes of at most so many rows are leaves.
    leaf_labels : int, default=100
        Most labels that a leaf keeps, the most frequent.
    C : float, default=1.0
        Weight of the separators' loss against the sum of their absolute weights: smaller is sparser.
    passes : int, default=5
        Most passes over a node's rows to learn its separator.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed. The same seed, data and parameters give the same model, for any `n_jobs`.
    n_jobs : int, optional
        Threads: None is 1, -1 all cores.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the training data.
    trees_ : LinearTrees
        The trees as arrays.

    References
    ----------
    Y. Prabhu, M. Varma. FastXML: a fast, accurate and stable tree-classifier for extreme multi-label learning.
    KDD 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import FastXMLClassifier
    >>> X = np.repeat(np.eye(3, dtype=np.float32), 20, axis=0)
    >>> y = np.repeat(["ash", "elm", "oak"], 20)
    >>> FastXMLClassifier(n_trees=5, random_state=0).fit(X, y).predict(X[::20])
    array(['ash', 'elm', 'oak'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        n_trees: int = 50,
        max_leaf: int = 10,
        leaf_labels: int = 100,
        C: float = 1.0,
        passes: int = 5,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.leaf_labels = leaf_labels
        self.C = C
        self.passes = passes
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> FastXMLClassifier:
        """Train on rows and their labels; a model that was there before is replaced.

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
        with progress(f"{type(self).__name__}: {len(targets.classes):,} labels", self.verbose) as report:
            arrays = _core.train_fastxml(
                rows,
                targets.indptr,
                targets.codes,
                n_labels=len(targets.classes),
                row_weight=weight,
                n_trees=self.n_trees,
                max_leaf=self.max_leaf,
                leaf_labels=self.leaf_labels,
                C=self.C,
                passes=self.passes,
                normalize=self.normalize,
                seed=self._seed(),
                n_threads=n_threads(self.n_jobs),
                progress=report,
            )
        arrays["by_frequency"] = _by_frequency(targets)
        self.trees_ = LinearTrees(arrays, n_labels=len(targets.classes), n_features=rows.n_columns)
        self._note_targets(targets)
        return self

    def explain(self, x: Any) -> FastXMLExplanation:
        """Tell the way of one row through every tree, and what the leaves say of its best label.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        codes, scores = self._top(rows, 1)
        leaves = self.trees_.core.leaves(rows, normalize=self.normalize, n_threads=1)[0].tolist()
        names = getattr(self, "feature_names_in_", None)
        paths = [
            self.trees_.steps(rows, leaf, _question, normalize=self.normalize, names=names) for leaf in leaves
        ]
        shares = [self._share(leaf, int(codes[0, 0])) for leaf in leaves]
        return FastXMLExplanation(self.classes_[codes[0, 0]], float(scores[0, 0]), paths, shares)

    def _share(self, leaf: int, label: int) -> float:
        a = self.trees_.arrays
        here = slice(*a["leaf_begin"][leaf : leaf + 2])
        return float(a["leaf_scores"][here][a["leaf_labels"][here] == label].sum())

    def _check_parameters(self) -> None:
        check_whole("n_trees", self.n_trees, least=1)
        check_whole("max_leaf", self.max_leaf, least=1)
        check_whole("leaf_labels", self.leaf_labels, least=1)
        check_number("C", self.C, above=0)
        check_whole("passes", self.passes, least=1)

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.trees_.core.top_by_mean(
            rows,
            k=k,
            others=self.trees_.arrays["by_frequency"],
            normalize=self.normalize,
            n_threads=n_threads(self.n_jobs),
        )

    def _n_reachable(self) -> int:
        return len(self.trees_.arrays["by_frequency"])

    def _nodes(self) -> dict[str, NDArray[Any]]:
        return self.trees_.tree()

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return self.trees_.arrays

    def _metadata(self) -> dict[str, Any]:
        return {"n_labels": self.trees_.n_labels}

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        if metadata["n_labels"] != len(self.classes_):
            raise ValueError("its labels are not those of its trees")
        trees = LinearTrees(tensors, n_labels=len(self.classes_), n_features=self.n_features_in_)
        order = trees.arrays["by_frequency"]
        if order.dtype != np.int32 or order.ndim != 1 or not len(order) or len(np.unique(order)) < len(order):
            raise ValueError("the order of its labels is damaged")
        self.trees_ = trees


def _question(node: int) -> str:
    return "first side?"


def _by_frequency(targets: Targets) -> NDArray[np.int32]:
    """Codes of the labels that have rows, the most frequent first."""
    counts = targets.counts()
    order = np.argsort(-counts, kind="stable")
    return order[counts[order] > 0].astype(np.int32)
