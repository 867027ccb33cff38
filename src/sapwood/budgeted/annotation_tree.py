"""The annotation tree (AT): one label, or one group of labels, at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood._parameters import check_choice, check_whole
from sapwood.budgeted.coding_tree import CodingTreeClassifier

MOST_LABELS_NAMED = 5
"""A question about more labels than this names so many and counts the rest."""


class AnnotationTreeClassifier(CodingTreeClassifier):
    """Tree that asks for one label after the other, with a budget-aware classifier at each node.

    With ``rule="frequent"`` a node asks for the most frequent label that is still open among its rows, as the paper
    does. Rare labels then lie deep: with many labels, each in few rows, the tree is close to a chain. With
    ``rule="balanced"`` a node asks whether a row has *any* label of a group that covers about half of its rows: no
    child that is not a leaf gets more than three quarters, so that the depth grows with the logarithm of the number of
    rows. A leaf answers with one set of labels seen in training.

    Parameters
    ----------
    rule : {"frequent", "balanced"}, default="frequent"
        How a node's question is chosen.
    budget : int, default=40
        Columns that a node may choose at a time; it ends with at most `max_planes` times as many.
    C : float, default=10.0
        Weight of the loss against the regularisation.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        What the nodes minimise.
    class_weight : {"balanced"}, optional
        Let both answers to a node's question weigh the same in its training.
    min_examples : int, default=2
        Nodes of fewer rows are leaves that answer their most frequent set. 2, the paper's, goes on until a node's rows
        have one set.
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
        H of the label sets of the training rows, in bits: no tree can ask fewer questions on average.
    mean_decisions_ : float
        How many nodes a training row meets on average, on its own way.
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
    >>> from sapwood import AnnotationTreeClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = AnnotationTreeClassifier().fit(X, [["oak"], ["ash"], ["ash", "oak"]])
    >>> [(step.question, step.answer) for step in model.explain(X[2:]).steps]
    [('ash?', True), ('oak?', True)]
    """

    def __init__(
        self,
        *,
        rule: Literal["frequent", "balanced"] = "frequent",
        budget: int = 40,
        C: float = 10.0,
        loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
        class_weight: Literal["balanced"] | None = None,
        min_examples: int = 2,
        max_planes: int = 3,
        tol: float = 0.01,
        beam: int = 30,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rule = rule
        self.budget = budget
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.min_examples = min_examples
        self.max_planes = max_planes
        self.tol = tol
        self.beam = beam
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rule(self) -> tuple[str, int]:
        return self.rule, int(self.min_examples)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("rule", self.rule, ("frequent", "balanced"))
        check_whole("min_examples", self.min_examples, least=1)

    def _note_tree(self, arrays: Mapping[str, NDArray[Any]], classes: NDArray[Any]) -> None:
        super()._note_tree(arrays, classes)
        begin, question = (self.trees_.arrays[name] for name in ("question_begin", "question"))
        codes = np.where(question >= 0, question, ~question)
        if (
            begin.dtype != np.int64
            or question.dtype != np.int32
            or len(begin) != self.trees_.n_nodes + 1
            or begin[0] != 0
            or begin[-1] != len(question)
            or (np.diff(begin) < 1).any()
            or (codes >= len(classes)).any()
        ):
            raise ValueError("its questions are damaged")

    def _question(self, node: int) -> str:
        first, last = self.trees_.arrays["question_begin"][node : node + 2]
        literals = self.trees_.arrays["question"][first:last].tolist()
        named = [self._literal(literal) for literal in literals[:MOST_LABELS_NAMED]]
        rest = [f"{len(literals) - len(named)} more"] if len(literals) > len(named) else []
        return " or ".join([*named, *rest]) + "?"

    def _literal(self, literal: int) -> str:
        return str(self.classes_[literal]) if literal >= 0 else f"not {self.classes_[~literal]}"
