"""The supervised budgeted tree (SBT): a tree of budget-aware classifiers, made to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sapwood import _core, inspect
from sapwood._estimator import SapwoodClassifier, all_or_nothing, n_threads
from sapwood._labels import Targets
from sapwood._parameters import check_whole
from sapwood._progress import progress
from sapwood.budgeted.explanation import BudgetedExplanation, decide, entries
from sapwood.budgeted.node_text import captions, node_bac, tree_text
from sapwood.budgeted.options import check_options, core_options

MOST_FOLDS = 255
PRUNING_FIGURES = ("cv_error_", "unpruned_cv_error_", "unpruned_n_nodes_")


class BudgetedTreeClassifier(SapwoodClassifier):
    """Decision tree whose nodes are linear classifiers on few columns each: it is read as it is used.

    A node parts its rows by a budget-aware classifier (see `BudgetedClassifier`); it is a leaf when its rows have one
    label or when the classifier sends them all one way. With `prune`, a node has a classifier for each of several
    folds, all on the same columns: rows go where the majority sends them, and a branch that errs more on held-out
    rows than the node it springs from is cut. More than two labels: each node parts two groups of similar labels of
    about the same weight.

    Parameters
    ----------
    budget : int, default=5
        Columns of a plane. A node looks at `budget * max_planes` columns at the most.
    C : float, default=1.0
        Weight of the loss against the regularisation.
    tol : float, default=0.01
        A node's classifier is done when its certified duality gap is at most this share of its objective.
    max_planes : int, default=1
        Planes of a node.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        What a node minimises.
    fit_offset : bool, default=True
        Learn a constant beside the columns.
    class_weight : {"balanced"} or None, default="balanced"
        Let both sides of a node's problem weigh the same. None, as in the paper, stops early where labels are uneven.
    prune : bool, default=True
        Cut branches by cross-validation inside the tree. Where rows have several labels it looks at the best alone:
        without pruning more of the others are found.
    folds : int, default=5
        How many folds, if `prune`.
    max_depth : int, optional
        Nodes this deep are leaves.
    max_features : int, optional
        Most columns that the whole tree may look at: a node that might exceed it chooses among those that the nodes
        before it use. `budget * max_planes` at least.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the grouping of labels.
    n_jobs : int, optional
        Threads: None is 1, -1 all cores. Nodes of one depth are learned side by side (not with `max_features`). The
        model is the same for any number.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the training data.
    n_nodes_, n_leaves_, depth_ : int
        Size of the tree; a tree that is a leaf has depth 0.
    selected_features_ : ndarray of shape (n_selected,)
        The columns that the tree looks at, ascending.
    cv_error_, unpruned_cv_error_ : float
        Share of the training rows that the tree gets wrong when they are held out, and before pruning; only if
        `prune`. Good for cutting, too good to report: columns are chosen on the sum of all folds.
    unpruned_n_nodes_ : int
        How many nodes were grown; only if `prune`.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import BudgetedTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 50)).astype(np.float32)
    >>> y = np.where((X[:, 3] > 0) & (X[:, 8] > 0), "oak", "ash")
    >>> tree = BudgetedTreeClassifier(budget=1, max_depth=2, normalize=False, random_state=0).fit(X, y)
    >>> print(tree.export_text(digits=1))
    f = +0.6 x[8] -0.2   (400 rows)
    ├─ f > 0: f = +3.0 x[3] +0.1   (152 rows)
    │  ├─ f > 0: oak   (69 rows, 99 %)
    │  └─ f <= 0: ash   (83 rows, 100 %)
    └─ f <= 0: ash   (248 rows, 90 %)
    """

    def __init__(
        self,
        *,
        budget: int = 5,
        C: float = 1.0,
        tol: float = 0.01,
        max_planes: int = 1,
        loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
        fit_offset: bool = True,
        class_weight: Literal["balanced"] | None = "balanced",
        prune: bool = True,
        folds: int = 5,
        max_depth: int | None = None,
        max_features: int | None = None,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.budget = budget
        self.C = C
        self.tol = tol
        self.max_planes = max_planes
        self.loss = loss
        self.fit_offset = fit_offset
        self.class_weight = class_weight
        self.prune = prune
        self.folds = folds
        self.max_depth = max_depth
        self.max_features = max_features
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> BudgetedTreeClassifier:
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
        seed = self._seed()
        counts = np.diff(targets.indptr) > 0  # rows without labels are not learned from
        if weight is not None:
            counts &= weight > 0
            if not counts.any():
                raise ValueError("sample_weight is zero for every row with a label")
        fold = deal_folds(targets, counts, int(self.folds), seed) if self.prune else None
        with progress(f"{type(self).__name__}: {len(targets.classes):,} labels", self.verbose) as report:
            arrays, wrong, wrong_before, nodes_before = _core.train_budgeted_tree(
                rows,
                targets.indptr,
                targets.codes,
                n_labels=len(targets.classes),
                row_weight=weight,
                fold=fold,
                n_folds=int(self.folds),
                max_depth=-1 if self.max_depth is None else int(self.max_depth),
                max_features=0 if self.max_features is None else int(self.max_features),
                options=core_options(self),
                normalize=bool(self.normalize),
                seed=seed,
                n_threads=n_threads(self.n_jobs),
                progress=report,
            )
        n_folds = int(self.folds) if self.prune else 1
        self._model = _Model(arrays, n_folds, len(targets.classes), self.n_features_in_, bool(self.normalize))
        total = float(counts.sum() if weight is None else weight[counts].sum(dtype=np.float64))
        for name in PRUNING_FIGURES:
            self.__dict__.pop(name, None)
        if self.prune:
            self._note_pruning(wrong / total, wrong_before / total, nodes_before)
        self._note_targets(targets)
        return self

    # The tree, as figures

    @property
    def n_nodes_(self) -> int:
        """How many nodes the tree has, leaves and all."""
        return len(self._model.arrays["parent"])

    @property
    def n_leaves_(self) -> int:
        """How many leaves the tree has."""
        return int(np.sum(self._model.arrays["children"][::2] < 0))

    @property
    def depth_(self) -> int:
        """How many decisions lead to the deepest leaf."""
        return int(self._model.arrays["depth"].max())

    @property
    def selected_features_(self) -> NDArray[np.int32]:
        """The columns that the tree looks at, ascending."""
        return np.unique(self._model.arrays["columns"])

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Give the number of the leaf of each row.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows to classify.
        """
        rows = self._rows(X)
        model = self._model
        return model.core.leaves(rows, normalize=model.normalize, n_threads=n_threads(self.n_jobs))

    # The tree, to be read

    def export_text(
        self, feature_names: Sequence[str] | None = None, *, max_terms: int = 10, digits: int = 2
    ) -> str:
        """Write the tree as text: each node's columns with their weights, each leaf's label.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of all columns. By default those that the training data had, or else `x[j]`.
        max_terms : int, default=10
            How many columns of a node to write, the heaviest first.
        digits : int, default=2
            Decimals of the weights.
        """
        check_is_fitted(self, "classes_")
        return tree_text(self._model.arrays, self.classes_, self._names(feature_names), max_terms, digits)

    def export_graphviz(
        self,
        feature_names: Sequence[str] | None = None,
        *,
        max_depth: int = 5,
        max_terms: int = 10,
        digits: int = 2,
    ) -> str:
        """Write the tree in Graphviz's language, each node with its columns and weights.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of all columns. By default those that the training data had, or else `x[j]`.
        max_depth : int, default=5
            How deep to draw; below, the number of nodes left out is told.
        max_terms, digits : int
            How many columns of a node to write, the heaviest first; decimals of the weights.
        """
        return inspect.to_graphviz(
            self, max_depth=max_depth, captions=self._captions(feature_names, max_terms, digits)
        )

    def export_svg(
        self,
        feature_names: Sequence[str] | None = None,
        *,
        max_depth: int = 5,
        max_terms: int = 10,
        digits: int = 2,
    ) -> str:
        """Draw the tree as SVG, each node with its columns and weights: left is where f(x) > 0.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of all columns. By default those that the training data had, or else `x[j]`.
        max_depth : int, default=5
            How deep to draw; below, the number of nodes left out is told.
        max_terms, digits : int
            How many columns of a node to write, the heaviest first; decimals of the weights.
        """
        return inspect.to_svg(
            self, max_depth=max_depth, captions=self._captions(feature_names, max_terms, digits)
        )

    def plot(
        self,
        feature_names: Sequence[str] | None = None,
        *,
        max_depth: int = 5,
        max_terms: int = 10,
        digits: int = 2,
        ax: Any = None,
    ) -> Any:
        """Draw the tree with matplotlib, each node with its columns and weights: left is where f(x) > 0.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of all columns. By default those that the training data had, or else `x[j]`.
        max_depth : int, default=5
            How deep to draw; below, the number of nodes left out is told.
        max_terms, digits : int
            How many columns of a node to write, the heaviest first; decimals of the weights.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        return inspect.plot_tree(
            self, max_depth=max_depth, captions=self._captions(feature_names, max_terms, digits), ax=ax
        )

    def explain(self, x: Any) -> BudgetedExplanation:
        """Tell the way of one row from the root to its leaf: what each node's columns said of it.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        codes, scores = self._top(self._one_row(x), 1)
        model = self._model
        values = entries(x, normalize=model.normalize)
        names = getattr(self, "feature_names_in_", None)
        steps, node = [], 0
        while model.arrays["children"][2 * node] >= 0:
            columns, weights, offset = model.bac(node)
            steps.append(decide(node, values, columns, weights, offset, names))
            node = int(model.arrays["children"][2 * node + (not steps[-1].goes_left)])
        return BudgetedExplanation(self.classes_[codes[0, 0]], float(scores[0, 0]), steps)

    def _names(self, feature_names: Sequence[str] | None) -> Sequence[str] | NDArray[Any] | None:
        if feature_names is None:
            return getattr(self, "feature_names_in_", None)
        if len(feature_names) != self.n_features_in_:
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {self.n_features_in_} columns"
            )
        return feature_names

    def _captions(self, feature_names: Sequence[str] | None, max_terms: int, digits: int) -> list[list[str]]:
        check_is_fitted(self, "classes_")
        return captions(self._model.arrays, self.classes_, self._names(feature_names), max_terms, digits)

    def _nodes(self) -> dict[str, NDArray[Any]]:
        arrays = self._model.arrays
        begin, shares = arrays["label_begin"], arrays["shares"].astype(np.float64)
        surprise = -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1)), 0)
        return {
            "parent": arrays["parent"],
            "children": arrays["children"].reshape(-1, 2),
            "examples": arrays["examples"],
            "n_labels": np.diff(begin).astype(np.int32),
            "majority": arrays["labels"][begin[:-1]],
            "entropy": np.add.reduceat(surprise, begin[:-1]),
        }

    # What the base asks

    def _check_parameters(self) -> None:
        check_options(self)
        check_whole("folds", self.folds, least=2)
        if self.folds > MOST_FOLDS:
            raise ValueError(f"folds must be at most {MOST_FOLDS}, not {self.folds}")
        if self.max_depth is not None:
            check_whole("max_depth", self.max_depth, least=0)
        if self.max_features is not None:
            check_whole("max_features", self.max_features, least=1)
            most = self.budget * self.max_planes
            if most > self.max_features:
                raise ValueError(
                    f"max_features is {self.max_features}, but the root's planes may take budget * max_planes "
                    f"= {most} columns; lower one of the two"
                )

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        model = self._model
        return model.core.top(rows, k=k, normalize=model.normalize, n_threads=n_threads(self.n_jobs))

    def _n_reachable(self) -> int:
        return max(1, int(self._model.arrays["label_begin"][1]))

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return self._model.arrays

    def _metadata(self) -> dict[str, Any]:
        figures = [getattr(self, name) for name in PRUNING_FIGURES if hasattr(self, name)]
        return {"n_folds": self._model.n_folds, "normalize": self._model.normalize, "pruning": figures}

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        normalize, pruning = metadata["normalize"], metadata["pruning"]
        if not isinstance(normalize, bool) or not isinstance(pruning, list) or len(pruning) not in (0, 3):
            raise ValueError("its metadata are damaged")
        self._model = _Model(tensors, metadata["n_folds"], len(self.classes_), self.n_features_in_, normalize)
        if pruning:
            self._note_pruning(*pruning)

    def _note_pruning(self, error: float, error_before: float, nodes_before: int) -> None:
        self.cv_error_, self.unpruned_cv_error_ = float(error), float(error_before)
        self.unpruned_n_nodes_ = int(nodes_before)


def deal_folds(targets: Targets, counts: NDArray[np.bool_], folds: int, seed: int) -> NDArray[np.uint8]:
    """Deal the rows that count to folds at random, label by label (a row's first): each fold has its share of each."""
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(counts))
    order = rows[np.argsort(targets.codes[targets.indptr[rows]], kind="stable")]
    fold = np.zeros(targets.n_rows, dtype=np.uint8)
    fold[order] = np.arange(len(order)) % folds
    return fold


class _Model:
    """The trained tree as arrays, and the core's view of them."""

    def __init__(
        self,
        arrays: Mapping[str, NDArray[Any]],
        n_folds: int,
        n_labels: int,
        n_columns: int,
        normalize: bool,
    ) -> None:
        self.arrays = dict(arrays)
        self.n_folds = n_folds
        self.n_labels = n_labels
        self.n_columns = n_columns
        self.normalize = normalize
        self.core = _core.BudgetedTree(self.arrays, n_folds=n_folds, n_labels=n_labels, n_columns=n_columns)
        self._check_figures()

    def __reduce__(self) -> Any:
        return _Model, (self.arrays, self.n_folds, self.n_labels, self.n_columns, self.normalize)

    def _check_figures(self) -> None:
        """Check what only drawings and explanations read; the core has seen to the rest."""
        n_nodes = len(self.arrays["children"]) // 2
        kinds = {
            "parent": np.int32,
            "depth": np.int32,
            "examples": np.float64,
            "objective": np.float64,
            "bound": np.float64,
            "n_planes": np.int32,
        }
        for name, dtype in kinds.items():
            if self.arrays[name].shape != (n_nodes,) or self.arrays[name].dtype != dtype:
                raise ValueError(f"its array {name!r} does not fit")
        children = self.arrays["children"].reshape(-1, 2)
        parent, depth = np.full(n_nodes, -1), np.zeros(n_nodes, dtype=np.int64)
        for node in np.flatnonzero(children[:, 0] >= 0).tolist():
            parent[children[node]] = node
            depth[children[node]] = depth[node] + 1
        if not np.array_equal(parent, self.arrays["parent"]) or not np.array_equal(
            depth, self.arrays["depth"]
        ):
            raise ValueError("its links do not make a tree")
        if (np.diff(self.arrays["label_begin"]) < 1).any():
            raise ValueError("a node has no labels")

    def bac(self, node: int) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """The columns, weights (columns x folds) and offsets of a node."""
        return node_bac(self.arrays, node)
