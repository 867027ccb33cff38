"""LOMtree: a tree that learns its own shape, one row after the other."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood._parameters import check_number, check_whole
from sapwood.online.figures import lom_figures
from sapwood.online.tree import CoreTree, OnlineTreeClassifier


class LOMTreeClassifier(OnlineTreeClassifier):
    """LOMtree (Choromanska and Langford, 2015): a binary tree that is learned online, with its routers.

    Each router learns to send about half of the rows to each side, and the rows of a label to one side. A leaf
    answers with the labels that came to it. A leaf with several labels splits in two; once the tree has all the nodes
    it may have, the smallest leaf and its parent are taken from where they do little and used again. Learning and
    predicting cost time in proportion to the depth, about the logarithm of the number of labels. No label has to be
    announced.

    Parameters
    ----------
    max_internal : int, optional
        T, how many routers the tree may have. By default as many as `internal_per_label` says.
    internal_per_label : int, default=1
        Where `max_internal` is not given, T is this many times the labels seen so far, minus 1. With 4 and a tolerance
        of 0.1 trees are one to four points more accurate (of 20), a third slower and larger.
    swap_resistance : float, default=4
        R_S: how much larger than the smallest leaf a leaf must be to take it. At least 1; 4 or more keep any node
        from being used again more than log2 of the number of rows times.
    loss : {"logistic", "squared", "absolute"}, default="logistic"
        What the routers minimise.
    solver : {"adagrad", "sgd"}, default="adagrad"
        How they step.
    step : float, default=1
        Step size.
    initial_square : float, default=0.01
        What AdaGrad's sums of squared gradients start from: bounds its first steps.
    tolerance : float, default=0.3
        Routers leave a row alone where the derivative of the loss is nearer to 0: it has nothing to teach them.
    passes : int, default=5
        Passes of `fit` over the rows.
    shuffle : bool, default=True
        Whether `fit` takes the rows in a new order in each pass. `partial_fit` always takes them as they come.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed of the shuffles. The same seed, data and parameters give the same model.
    parallel : {"hogwild"}, optional
        "hogwild": `n_jobs` threads learn rows at once, without waiting for each other's steps. Faster, about as
        accurate, and never twice the same model: the order of the rows is left to chance, and now and then a step is
        lost. By default one thread learns.
    n_jobs : int, optional
        Threads: None is 1, -1 all cores. Learning uses one unless `parallel` says otherwise.
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
    >>> from sapwood.online import LOMTreeClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = LOMTreeClassifier(random_state=0)
    >>> for _ in range(5):
    ...     model = model.partial_fit(X, ["oak", "ash", "elm"])
    >>> model.predict(X)
    array(['oak', 'ash', 'elm'], dtype='<U3')
    """

    _kind = "LomTree"

    def __init__(
        self,
        *,
        max_internal: int | None = None,
        internal_per_label: int = 1,
        swap_resistance: float = 4.0,
        loss: Literal["logistic", "squared", "absolute"] = "logistic",
        solver: Literal["adagrad", "sgd"] = "adagrad",
        step: float = 1.0,
        initial_square: float = 0.01,
        tolerance: float = 0.3,
        passes: int = 5,
        shuffle: bool = True,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        parallel: Literal["hogwild"] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_internal = max_internal
        self.internal_per_label = internal_per_label
        self.swap_resistance = swap_resistance
        self.loss = loss
        self.solver = solver
        self.step = step
        self.initial_square = initial_square
        self.tolerance = tolerance
        self.passes = passes
        self.shuffle = shuffle
        self.normalize = normalize
        self.random_state = random_state
        self.parallel = parallel
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _new_tree(self, rows: _core.Rows) -> CoreTree:
        return CoreTree(
            self._kind,
            max_internal=-1 if self.max_internal is None else int(self.max_internal),
            internal_per_label=int(self.internal_per_label),
            swap_resistance=float(self.swap_resistance),
            **self._rule(rows),
        )

    def _nodes(self) -> dict[str, NDArray[Any]]:
        return lom_figures(self._learned().core.tree())

    def _candidates(self, rows: _core.Rows, leaf: int) -> list[tuple[Any, float]]:
        codes, shares = self._learned().core.ranking(leaf, top=len(self.classes_))
        return list(zip(self.classes_[codes].tolist(), shares.tolist(), strict=True))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_internal is not None:
            check_whole("max_internal", self.max_internal, least=0)
        check_whole("internal_per_label", self.internal_per_label, least=1)
        check_number("swap_resistance", self.swap_resistance, least=1)
