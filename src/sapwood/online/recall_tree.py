"""Recall Tree: a tree that chooses a few candidate labels, each of which has a regressor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood._estimator import n_threads
from sapwood._labels import Targets
from sapwood._parameters import check_choice, check_number, check_whole
from sapwood.online.explanation import RouterStep, TreeExplanation
from sapwood.online.tree import CoreTree, OnlineTreeClassifier


@dataclass(frozen=True)
class RecallTreeExplanation(TreeExplanation):
    """Why a row got its label.

    Attributes
    ----------
    label
        The label predicted.
    steps : list of RouterStep
        The routers from the root down. Where nodes have more than two children, the margin is that of the child
        chosen, and the highest.
    node : int
        The node where the way ended.
    candidates : list of (label, score)
        Its candidates and what their regressors say, best first.
    margins : ndarray of shape (n_steps, n_routers)
        Margins of all routers of each node: one or, with more than two children, one for each of them.
    stopped : {"leaf", "recall", "empty child"}
        Why it ended there: no children; the child's candidates promise a lower recall; no example has been there.
    """

    margins: NDArray[np.float32]
    stopped: Literal["leaf", "recall", "empty child"]


class RecallTreeClassifier(OnlineTreeClassifier):
    """Recall Tree (Daumé, Karampatziakis, Langford, Mineiro, 2017): logarithmic time one-against-some.

    Routers send a row down a tree, as far as the recall of the labels met on the way does not fall. The heaviest
    labels of the node where it ends are its candidates; each label has one regressor, and the best candidate wins.
    Labels never need to be announced. Learning and predicting a row take time that grows with the logarithm of the
    number of labels.

    Parameters
    ----------
    max_candidates : int or None, default=10
        F, how many labels of a node are scored. None: 4 times the logarithm (base 2) of the labels seen so far,
        rounded up, as in the paper.
    coverage : float, default=0.95
        Share of a node's rows that its candidates must hold: fewer labels are scored where fewer hold it. 1: always
        `max_candidates` of them, as in the paper; a little more accurate, and slower.
    max_depth : int, optional
        Depth of the deepest nodes: by default just deep enough for the candidates of all of them to hold every label
        seen so far.
    bound : float, default=1.0
        Lambda of the recall's lower bound: the larger, the more rows a node must have seen before the way goes on
        below it.
    early_stop : bool, default=False
        End where the bound promises a lower recall below, as in the paper. False: go down as far as there are nodes
        that have seen rows, which was the more accurate on all sets tried.
    arity : int, default=16
        Children of a node, 2 to 16.
    router_weight : {"total", "mean", "none"}, default="total"
        How much a router learns from a row: by the entropy that its right child saves in total, as a mean over the
        node's rows (the paper's; it fades as the node fills), or always the same.
    randomized_routing : bool, default=False
        Draw the child in proportion to the routers' probabilities while learning.
    path_features : {"none", "path", "leaf"}, default="none"
        Give the regressors an indicator of each node on the way, or of the last one.
    cross_path : bool, default=False
        And the products of these indicators with the columns.
    loss : {"logistic", "squared", "absolute"}, default="logistic"
        What routers and regressors minimise.
    solver : {"adagrad", "sgd"}, default="adagrad"
        How they step.
    step : float, default=0.5
        Step size of the regressors.
    router_step : float, optional
        Step size of the routers: by default that of the regressors.
    tolerance : float, default=0.3
        A regressor whose loss has a slope (in its score) nearer to 0 than this learns nothing from the row. More
        accurate than 0, faster and smaller: settled regressors are left alone.
    router_tolerance : float, default=0.2
        The same for the routers. Where labels are hard to tell apart (the next word of a text) 0.1 is more accurate.
    initial_square : float, default=0.01
        What AdaGrad's sums of squared gradients start from: bounds its first steps.
    passes : int, default=3
        Passes of `fit` over the rows.
    shuffle : bool, default=True
        Whether `fit` takes the rows in a new order in each pass. `partial_fit` always takes them as they come.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed of shuffles and randomised routing. The same seed, data and parameters give the same model.
    parallel : {"hogwild"}, optional
        "hogwild": `n_jobs` threads learn rows at once, without waiting for each other's steps. Faster, about as
        accurate, and never twice the same model: the order of the rows is left to chance, and now and then a step is
        lost. By default rows are learned in their order.
    n_jobs : int, optional
        Threads: None is 1, -1 all cores. Unless `parallel` says otherwise learning uses two at the most, one for the
        tree and one for the regressors, and the model is the same.
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

    Notes
    -----
    `predict_topk` ranks the candidates by the probability that the regressor of each gives it; where more labels are
    asked for than the node has candidates, those of the nodes above follow, with probability 0. `predict_proba`
    shares 1 among the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import RecallTreeClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = RecallTreeClassifier(random_state=0).partial_fit(X[:2], ["oak", "ash"])
    >>> model.partial_fit(X[2:], ["elm"]).predict(X)
    array(['oak', 'ash', 'elm'], dtype='<U3')
    """

    _kind = "RecallTree"

    def __init__(
        self,
        *,
        max_candidates: int | None = 10,
        coverage: float = 0.95,
        max_depth: int | None = None,
        bound: float = 1.0,
        early_stop: bool = False,
        arity: int = 16,
        router_weight: Literal["total", "mean", "none"] = "total",
        randomized_routing: bool = False,
        path_features: Literal["none", "path", "leaf"] = "none",
        cross_path: bool = False,
        loss: Literal["logistic", "squared", "absolute"] = "logistic",
        solver: Literal["adagrad", "sgd"] = "adagrad",
        step: float = 0.5,
        router_step: float | None = None,
        tolerance: float = 0.3,
        router_tolerance: float = 0.2,
        initial_square: float = 0.01,
        passes: int = 3,
        shuffle: bool = True,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        parallel: Literal["hogwild"] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_candidates = max_candidates
        self.coverage = coverage
        self.max_depth = max_depth
        self.bound = bound
        self.early_stop = early_stop
        self.arity = arity
        self.router_weight = router_weight
        self.randomized_routing = randomized_routing
        self.path_features = path_features
        self.cross_path = cross_path
        self.loss = loss
        self.solver = solver
        self.step = step
        self.router_step = router_step
        self.tolerance = tolerance
        self.router_tolerance = router_tolerance
        self.initial_square = initial_square
        self.passes = passes
        self.shuffle = shuffle
        self.normalize = normalize
        self.random_state = random_state
        self.parallel = parallel
        self.n_jobs = n_jobs
        self.verbose = verbose

    def explain(self, x: Any) -> RecallTreeExplanation:
        """Tell how one row got its label: the routers it met, their margins, the candidates, and why it stopped.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        nodes, children, margins, node, stopped, labels, scores = self._learned().core.explain(rows, row=0)
        candidates = list(zip(self.classes_[labels].tolist(), scores.tolist(), strict=True))
        chosen = margins[:, 0] if margins.shape[1] == 1 else margins.max(axis=1, initial=-np.inf)
        steps = [
            RouterStep(*step) for step in zip(nodes.tolist(), chosen.tolist(), children.tolist(), strict=True)
        ]
        return RecallTreeExplanation(candidates[0][0], steps, node, candidates, margins, stopped)

    def _candidates(self, rows: _core.Rows, leaf: int) -> list[tuple[Any, float]]:
        labels, scores = self._learned().core.explain(rows, row=0)[5:]
        return list(zip(self.classes_[labels].tolist(), scores.tolist(), strict=True))

    def _new_tree(self, rows: _core.Rows) -> CoreTree:
        return CoreTree(
            self._kind,
            max_candidates=int(self.max_candidates or 0),
            coverage=float(self.coverage),
            max_depth=-1 if self.max_depth is None else int(self.max_depth),
            bound=float(self.bound),
            early_stop=bool(self.early_stop),
            router_weight=self.router_weight,
            randomized_routing=bool(self.randomized_routing),
            path_features=self.path_features,
            cross_path=bool(self.cross_path),
            arity=int(self.arity),
            router_step=float(self.step if self.router_step is None else self.router_step),
            router_tolerance=float(self.router_tolerance),
            random_state=self._seed(),
            **self._rule(rows),
        )

    def _run(
        self,
        model: CoreTree,
        rows: _core.Rows,
        targets: Targets,
        weight: NDArray[np.float32] | None,
        *,
        passes: int,
        predict_first: bool,
    ) -> None:
        model.core.set_threads(n_threads(self.n_jobs))
        super()._run(model, rows, targets, weight, passes=passes, predict_first=predict_first)

    def _n_met(self) -> int:
        return min(self._n_reachable(), int(self._learned().core.n_candidates))

    def _nodes(self) -> Mapping[str, NDArray[Any]]:
        """The figures of every node as `sapwood.inspect` wants them."""
        core = self._learned().core
        figures: dict[str, NDArray[Any]] = core.figures()
        first = figures.pop("first_child")
        children = np.where(first[:, None] >= 0, first[:, None] + np.arange(self._arity()), -1)
        figures["children"] = children.astype(np.int32)
        if self._arity() == 2:
            figures |= _split_figures(first, *core.counts())
        return figures

    def _arity(self) -> int:
        return int(self._learned().settings["arity"])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_candidates is not None:
            check_whole("max_candidates", self.max_candidates, least=1)
        if self.max_depth is not None:
            check_whole("max_depth", self.max_depth, least=0)
        check_number("coverage", self.coverage, above=0, most=1)
        check_number("router_tolerance", self.router_tolerance, least=0)
        check_number("bound", self.bound, least=0)
        check_whole("arity", self.arity, least=2)
        if self.arity > 16:
            raise ValueError(f"arity must be at most 16, not {self.arity}")
        check_choice("router_weight", self.router_weight, ("total", "mean", "none"))
        check_choice("path_features", self.path_features, ("none", "path", "leaf"))
        if self.router_step is not None:
            check_number("router_step", self.router_step, above=0)


def _split_figures(
    first_child: NDArray[np.int32],
    node_labels: NDArray[np.int64],
    labels: NDArray[np.int32],
    counts: NDArray[np.float64],
) -> dict[str, NDArray[np.float64]]:
    """Balance, purity and J(h) of what each node with two children has routed; NaN where it has routed nothing."""
    figures = {name: np.full(len(first_child), np.nan) for name in ("balance", "purity", "objective")}
    for node in np.flatnonzero(first_child >= 0).tolist():
        left, right = (
            slice(node_labels[child], node_labels[child + 1])
            for child in (first_child[node], first_child[node] + 1)
        )
        both, side = np.unique(np.concatenate([labels[left], labels[right]]), return_inverse=True)
        if len(both) == 0:
            continue
        n_left = left.stop - left.start
        to_right = np.bincount(side[n_left:], counts[right], minlength=len(both))
        routed = np.bincount(side, np.concatenate([counts[left], counts[right]]), minlength=len(both))
        share, sent = routed / routed.sum(), to_right / routed
        balance = float(share @ sent)
        figures["balance"][node] = balance
        figures["purity"][node] = float(share @ np.minimum(sent, 1 - sent))
        figures["objective"][node] = 2 * float(share @ np.abs(balance - sent))
    return figures
