"""The label tree: a batch learner for many labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import SapwoodClassifier, all_or_nothing, n_threads
from sapwood._parameters import check_choice, check_number, check_whole
from sapwood._progress import progress
from sapwood.label_tree.forest import Explanation, Forest, Settings
from sapwood.label_tree.hierarchy import read_hierarchy
from sapwood.label_tree.training import Training

PRESETS: dict[str | None, dict[str, Any]] = {
    None: {},
    "parabel": {"arity": 2, "max_leaf": 100, "n_trees": 3, "balanced": True},
    "bonsai": {"arity": 100, "max_leaf": 100, "n_trees": 3, "balanced": False},
    "homer": {"arity": 4, "max_leaf": 4, "n_trees": 1, "balanced": True},
}
"""Published label trees: what sets their shape. A preset overrules the parameters of the same names."""


class LabelTreeClassifier(SapwoodClassifier):
    """Tree over the labels, with a regressor for each child of each node.

    The labels are clustered by the rows that have them. From the root down, the regressors of a node's children say
    where a row belongs; prediction follows the best few paths (a beam), so its time grows with the logarithm of the
    number of labels. Multiclass and multilabel.

    Parameters
    ----------
    arity : int, default=16
        Most children of an inner node.
    max_leaf : int, default=250
        Most labels that are told apart in one step, at the leaves. More are more accurate and cost more training.
    n_trees : int, default=1
        How many trees to average.
    solver : {"dual", "adagrad"}, default="dual"
        Dual coordinate descent (squared hinge only), or AdaGrad in the order of the rows.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        What the regressors minimise.
    C : float, optional
        Weight of the loss against the regularisation (dual only). By default 1 for one label a row and less where
        rows have more: 1 over the root of how many.
    tol : float, default=0.1
        Gradients smaller than this are left alone (dual only).
    passes : int, optional
        Most passes over the rows: by default 20 for the dual solver, 3 for AdaGrad.
    step : float, optional
        First step size of AdaGrad: by default 0.3 for the squared hinge, 0.7 for the logistic loss.
    prune : float, default=0.1
        Weights smaller than this are dropped after training. Meant for rows of length 1; where rows are longer or
        shorter (`normalize=False`) it follows their mean length.
    weight_bits : {16, 32}, default=16
        Precision of the weights that are kept.
    beam : int, default=10
        How many nodes a level the search follows.
    min_beam_share : float, default=0.05
        Nodes less likely than this share of the level's best are not followed.
    preset : {"parabel", "bonsai", "homer"}, optional
        A published shape of tree: it overrules `arity`, `max_leaf` and `n_trees`. With "homer", `predict` follows no
        beam after multilabel training: it enters every child whose regressor says yes, and gives the labels it gets to.
    tree : nested lists of labels, optional
        A hierarchy to use in place of clustering. Every label with examples stands in it once.
    class_weight : {"rare", "balanced", "propensity"} or dict, default="rare"
        Let rows of rare labels count more: a little for labels of fewer than 100 rows, which is more accurate on
        every set we have; in inverse proportion to a label's rows; or by inverse propensity, for good answers on the
        rarest at the cost of the others. A dict gives the weight of each label, 1 where it says nothing.
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
    forest_ : Forest
        The trained trees.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import LabelTreeClassifier
    >>> X = np.eye(4, dtype=np.float32)
    >>> model = LabelTreeClassifier(random_state=0).fit(X, ["ash", "elm", "fir", "oak"])
    >>> model.predict(X[2:])
    array(['fir', 'oak'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        arity: int = 16,
        max_leaf: int = 250,
        n_trees: int = 1,
        solver: Literal["dual", "adagrad"] = "dual",
        loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
        C: float | None = None,
        tol: float = 0.1,
        passes: int | None = None,
        step: float | None = None,
        prune: float = 0.1,
        weight_bits: Literal[16, 32] = 16,
        beam: int = 10,
        min_beam_share: float = 0.05,
        preset: Literal["parabel", "bonsai", "homer"] | None = None,
        tree: Sequence[Any] | None = None,
        class_weight: Literal["rare", "balanced", "propensity"] | Mapping[Any, float] | None = "rare",
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.arity = arity
        self.max_leaf = max_leaf
        self.n_trees = n_trees
        self.solver = solver
        self.loss = loss
        self.C = C
        self.tol = tol
        self.passes = passes
        self.step = step
        self.prune = prune
        self.weight_bits = weight_bits
        self.beam = beam
        self.min_beam_share = min_beam_share
        self.preset = preset
        self.tree = tree
        self.class_weight = class_weight
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> LabelTreeClassifier:
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
        hierarchy = None if self.tree is None else read_hierarchy(self.tree, targets)
        shape = {"arity": self.arity, "max_leaf": self.max_leaf, "n_trees": self.n_trees, "balanced": True}
        shape |= PRESETS[self.preset]
        with progress(f"{type(self).__name__}: {len(targets.classes):,} labels", self.verbose) as report:
            forest = Training.of(self).train(
                rows, targets, weight, shape=shape, hierarchy=hierarchy, seed=self._seed(), report=report
            )
        self.forest_ = forest
        self._note_targets(targets)
        return self

    def explain(self, x: Any) -> Explanation:
        """Tell the way from the root to the best label of one row.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        codes, scores = self._top(rows, 1)
        n_trees = len(self.forest_.arrays["roots"])
        paths = [
            self.forest_.path(rows, 0, int(codes[0, 0]), tree, self.normalize) for tree in range(n_trees)
        ]
        return Explanation(self.classes_[codes[0, 0]], float(scores[0, 0]), paths)

    def _check_parameters(self) -> None:
        check_whole("arity", self.arity, least=2)
        check_whole("max_leaf", self.max_leaf, least=1)
        check_whole("n_trees", self.n_trees, least=1)
        Training.of(self).check()
        check_whole("beam", self.beam, least=1)
        check_number("min_beam_share", self.min_beam_share, least=0, most=1)
        check_choice("preset", self.preset, tuple(PRESETS))
        if self.tree is not None and (self.preset is not None or self.n_trees != 1):
            raise ValueError("tree is one given tree: it goes with neither preset nor n_trees")

    def _settings(self) -> Settings:
        return Settings(self.beam, self.min_beam_share, self.normalize, n_threads(self.n_jobs))

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.forest_.top(rows, k, self._settings())

    def _likely(self, rows: _core.Rows) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        if self.preset != "homer":
            return super()._likely(rows)
        return self.forest_.core.reached(rows, normalize=self.normalize, n_threads=n_threads(self.n_jobs))

    def _n_reachable(self) -> int:
        return self.forest_.n_reachable

    def _nodes(self) -> dict[str, NDArray[Any]]:
        return self.forest_.nodes()

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return self.forest_.arrays

    def _metadata(self) -> dict[str, Any]:
        return self.forest_.settings()

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        self.forest_ = Forest(tensors, **{**metadata, "n_labels": len(self.classes_)})
