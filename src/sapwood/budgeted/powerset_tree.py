"""The powerset tree (PT): Huffman's code over the label sets seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood.budgeted.coding_tree import CodingTreeClassifier

ROUNDING = 1e-9


class PowersetTreeClassifier(CodingTreeClassifier):
    """Huffman's tree over the sets of labels seen in training, with a budget-aware classifier at each node.

    Frequent sets lie near the root: on the training distribution a row meets at least H and less than H + 1 nodes on
    average, where H is the entropy of the sets in bits. Each node looks at few columns, so an answer takes
    microseconds, whatever the number of labels. It answers only with sets that it has seen. One label a row is the case
    of sets of one.

    Parameters
    ----------
    budget : int, default=40
        Columns that a node may choose at a time; it ends with at most `max_planes` times as many.
    C : float, default=10.0
        Weight of the loss against the regularisation.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        What the nodes minimise.
    class_weight : {"balanced"}, optional
        Let both answers to a node's question weigh the same in its training.
    max_planes : int, default=3
        How often a node may choose columns.
    tol : float, default=0.01
        A node stops when its certified duality gap is at most this share of its objective.
    beam : int, default=30
        How many leaves an answer looks at: see `predict`. 1 is the paper's, and the quickest.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Not used: nothing is drawn at random.
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
    entropy_ : float
        H of the label sets of the training rows, in bits.
    mean_decisions_ : float
        How many nodes a training row meets on average, on its own way: in [H, H + 1).
    depth_ : int
        The most nodes that a row can meet.
    trees_ : LinearTrees
        The tree as arrays.

    References
    ----------
    W. Liu, I. W. Tsang. Making decision trees feasible in ultrahigh feature and label dimensions. JMLR 18, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import PowersetTreeClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = PowersetTreeClassifier().fit(X, [["oak"], ["ash"], ["ash", "oak"]])
    >>> model.predict(X[2:])
    [array(['ash', 'oak'], dtype='<U3')]
    >>> model.explain(X[2:]).steps[0].question
    '{ash} or 1 more, rather than {oak}'
    """

    def __init__(
        self,
        *,
        budget: int = 40,
        C: float = 10.0,
        loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
        class_weight: Literal["balanced"] | None = None,
        max_planes: int = 3,
        tol: float = 0.01,
        beam: int = 30,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.budget = budget
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.max_planes = max_planes
        self.tol = tol
        self.beam = beam
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rule(self) -> tuple[str, int]:
        return "powerset", 0

    def _note_tree(self, arrays: Mapping[str, NDArray[Any]], classes: NDArray[Any]) -> None:
        super()._note_tree(arrays, classes)
        slack = ROUNDING * (1 + self.entropy_)
        if not self.entropy_ - slack <= self.mean_decisions_ < self.entropy_ + 1 + slack:
            raise ValueError(
                f"the tree is no Huffman tree: {self.mean_decisions_} decisions on average, where the entropy is "
                f"{self.entropy_}"
            )

    def _question(self, node: int) -> str:
        yes, no = (self._side(self.trees_.arrays["children"][2 * node + side]) for side in (0, 1))
        return f"{yes}, rather than {no}"

    def _side(self, child: int) -> str:
        leaves = self.trees_.leaves_below(int(child))
        heaviest = leaves[int(np.argmax(self.trees_.arrays["leaf_mass"][leaves.start : leaves.stop]))]
        text = self._set_text(self.trees_.labels_of(heaviest))
        return text if len(leaves) == 1 else f"{text} or {len(leaves) - 1} more"
