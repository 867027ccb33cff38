"""Random tree and filter tree: balanced trees with one label a leaf, the LOMtree's two baselines."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood._estimator import n_threads
from sapwood.online.figures import balanced_figures
from sapwood.online.tree import CoreTree, OnlineTreeClassifier


class _BalancedTreeClassifier(OnlineTreeClassifier):
    """A random tree or a filter tree: they differ in which routers learn from a row."""

    _kind = "BalancedTree"
    _is_filter: ClassVar[bool]

    def __init__(
        self,
        *,
        loss: Literal["squared", "logistic", "absolute"] = "logistic",
        solver: Literal["adagrad", "sgd"] = "adagrad",
        step: float = 0.5,
        initial_square: float = 0.01,
        tolerance: float = 0.1,
        passes: int = 5,
        shuffle: bool = True,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.solver = solver
        self.step = step
        self.initial_square = initial_square
        self.tolerance = tolerance
        self.passes = passes
        self.shuffle = shuffle
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _new_tree(self, rows: _core.Rows) -> CoreTree:
        return CoreTree(self._kind, filter=self._is_filter, random_state=self._seed(), **self._rule(rows))

    def _nodes(self) -> dict[str, NDArray[Any]]:
        return balanced_figures(self._learned().core.tree())

    def _candidates(self, rows: _core.Rows, leaf: int) -> list[tuple[Any, float]]:
        codes, scores = self._learned().core.top(
            rows, k=min(5, self._n_reachable()), n_threads=n_threads(None)
        )
        return list(zip(self.classes_[codes[0]].tolist(), scores[0].tolist(), strict=True))


class RandomTreeClassifier(_BalancedTreeClassifier):
    """Random tree: a balanced tree, labels at its leaves by lot; every router learns which side a label is on.

    The baseline "Rtree" of the LOMtree paper: as fast as a tree can be, and as wrong as a tree is that does not choose
    which labels to tell apart. A new label takes half of a leaf drawn among the shallowest, at any time.

    Scores of `predict_topk` are 1 for the label that the routers lead to, and for any other label exp(-s), where s is
    the sum of the margins of the routers that would have to be overruled to come to it.

    Parameters
    ----------
    loss : {"logistic", "squared", "absolute"}, default="logistic"
        What the routers minimise.
    solver : {"adagrad", "sgd"}, default="adagrad"
        How they step.
    step : float, default=0.5
        Step size.
    initial_square : float, default=0.01
        What AdaGrad's sums of squared gradients start from: bounds its first steps.
    tolerance : float, default=0.1
        Routers leave a row alone where the derivative of the loss is nearer to 0: it has nothing to teach them.
    passes : int, default=5
        Passes of `fit` over the rows.
    shuffle : bool, default=True
        Whether `fit` takes the rows in a new order in each pass. `partial_fit` always takes them as they come.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed of the labels' places and of the shuffles. The same seed, data and parameters give the same model.
    n_jobs : int, optional
        Threads of prediction: None is 1, -1 all cores. Learning uses one.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the training data.
    progressive_loss_ : float
        Share of the rows given to `partial_fit` that were predicted wrongly before they were learned.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood.online import RandomTreeClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = RandomTreeClassifier(random_state=0).partial_fit(X[:2], ["oak", "ash"])
    >>> model.partial_fit(X[2:], ["elm"]).partial_fit(X, ["oak", "ash", "elm"]).predict(X)
    array(['oak', 'ash', 'elm'], dtype='<U3')
    """

    _is_filter = False


class FilterTreeClassifier(_BalancedTreeClassifier):
    """Filter tree (Beygelzimer, Langford, Ravikumar, 2009): a bracket where labels play against each other.

    A balanced tree, labels at its leaves by lot. A router learns which of the two winners below it beats the other,
    only from rows whose label has won its way up to it. A new label takes half of a leaf drawn among the shallowest.

    Scores of `predict_topk` are 1 for the label that the routers lead to, and for any other label exp(-s), where s is
    the sum of the margins of the routers that would have to be overruled to come to it.

    Parameters
    ----------
    loss : {"logistic", "squared", "absolute"}, default="logistic"
        What the routers minimise.
    solver : {"adagrad", "sgd"}, default="adagrad"
        How they step.
    step : float, default=0.5
        Step size.
    initial_square : float, default=0.01
        What AdaGrad's sums of squared gradients start from: bounds its first steps.
    tolerance : float, default=0.1
        Routers leave a row alone where the derivative of the loss is nearer to 0: it has nothing to teach them.
    passes : int, default=5
        Passes of `fit` over the rows.
    shuffle : bool, default=True
        Whether `fit` takes the rows in a new order in each pass. `partial_fit` always takes them as they come.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed of the labels' places and of the shuffles. The same seed, data and parameters give the same model.
    n_jobs : int, optional
        Threads of prediction: None is 1, -1 all cores. Learning uses one.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the training data.
    progressive_loss_ : float
        Share of the rows given to `partial_fit` that were predicted wrongly before they were learned.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood.online import FilterTreeClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = FilterTreeClassifier(random_state=0).partial_fit(X[:2], ["oak", "ash"])
    >>> model.partial_fit(X[2:], ["elm"]).partial_fit(X, ["oak", "ash", "elm"]).predict(X)
    array(['oak', 'ash', 'elm'], dtype='<U3')
    """

    _is_filter = True
