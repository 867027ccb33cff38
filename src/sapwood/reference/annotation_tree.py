"""Annotation tree (AT), Algorithm 4 of the budgeted-trees paper, and a balanced rule beside the paper's.

rule="frequent" asks at each node for the most frequent undecided label, as the paper does. Theorem 13's
bound on the number of decisions does not hold for it: q equally frequent single labels make a chain.
rule="balanced" asks whether any literal of a group holds, a literal being "carries j" or, for labels that
most examples of the node carry, "lacks j". No internal child gets more than 3/4 of its parent's
examples, see docs/budgeted_trees.md, "AT".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sapwood.reference.budgeted import BudgetedParameters, Examples, Indices, Mask, Solution, check_examples
from sapwood.reference.label_sets import LabelSet, as_indicator, as_label_sets, entropy

RULES = ("frequent", "balanced")


@dataclass
class AnnotationNode:
    """A question with two children, or a leaf with its labels."""

    n_examples: int
    depth: int
    group: tuple[tuple[int, bool], ...] = ()
    """The literals of the question: (label, True) is "carries it", (label, False) "lacks it"."""
    bac: Solution | None = None
    yes: int = -1
    """The child of examples for which some literal holds: the paper's g_1."""
    no: int = -1
    labels: LabelSet = ()
    sets: Counter[LabelSet] = field(default_factory=Counter)
    """Label sets that ended in this leaf, with their counts."""


def frequent_question(frequency: Indices) -> list[tuple[int, bool]]:
    """Return Algorithm 4, line 3: the working label with the highest frequency, the smallest of ties."""
    return [(int(np.argmax(frequency)), True)]


def balanced_question(indicator: Any, frequency: Indices, working: Indices) -> list[tuple[int, bool]]:
    """Return the group of literals whose coverage is nearest to half of the examples.

    Every working label gives the literal that at most half of the examples satisfy. Literals are taken in
    descending frequency (smaller label first), and of all prefixes the one whose examples number nearest
    to n/2 is the question (the shorter of ties).
    """
    n = indicator.shape[0]
    carries = 2 * frequency[working] <= n
    held_by = np.where(carries, frequency[working], n - frequency[working])
    order = np.lexsort((working, -held_by))
    labels, carries = working[order], carries[order]
    # rank of the first literal that holds, for each example; len(labels) if none does
    first = np.full(n, len(labels))
    for rank in np.flatnonzero(~carries):
        lacking = np.ones(n, dtype=bool)
        lacking[indicator[:, labels[rank]].nonzero()[0]] = False
        first[lacking] = np.minimum(first[lacking], rank)
    rank_of = np.full(indicator.shape[1], len(labels))
    rank_of[labels[carries]] = np.flatnonzero(carries)
    row = np.repeat(np.arange(n), np.diff(indicator.indptr))
    np.minimum.at(first, row, rank_of[indicator.indices])
    coverage = np.cumsum(np.bincount(first, minlength=len(labels) + 1)[: len(labels)])
    balance = np.abs(2 * coverage - n)
    balance[coverage == n] = n + 1  # a question must split
    size = int(np.argmin(balance)) + 1
    return [(int(j), bool(c)) for j, c in zip(labels[:size], carries[:size], strict=True)]


def holds(indicator: Any, group: list[tuple[int, bool]]) -> Mask:
    """Return for which examples some literal of the group holds."""
    answer = np.zeros(indicator.shape[0], dtype=bool)
    for label, carries in group:
        carrier = np.zeros(indicator.shape[0], dtype=bool)
        carrier[indicator[:, label].nonzero()[0]] = True
        answer |= carrier == carries
    return answer


class AnnotationTree:
    """AT, Algorithm 4.

    Parameters
    ----------
    parameters : BudgetedParameters
        Of the BAC at each node.
    rule : {"frequent", "balanced"}
        How a node's question is chosen.
    min_examples : int
        A node with fewer examples is a leaf and predicts its most frequent label set. The paper's is 2.

    Attributes
    ----------
    nodes_ : the tree, root first
    entropy_ : H(P_l) of the label sets seen, in bits
    mean_decisions_ : mean number of decisions on the training distribution, each example on its true path
    depth_ : the largest number of decisions
    """

    def __init__(
        self, parameters: BudgetedParameters, *, rule: str = "frequent", min_examples: int = 2
    ) -> None:
        if rule not in RULES:
            raise ValueError(f"rule must be one of {RULES}, not {rule!r}")
        self.parameters = parameters
        self.rule = rule
        self.min_examples = min_examples

    def fit(self, X: Examples, Y: Any) -> AnnotationTree:
        """Learn from examples and their label sets."""
        X, sets = check_examples(X), as_label_sets(Y)
        if not sets:
            raise ValueError("there must be at least one example")
        indicator = as_indicator(sets)
        self.nodes_: list[AnnotationNode] = []
        # A chain of q labels is q deep: a stack, no recursion.
        stack: list[tuple[Indices, int, int, str]] = [(np.arange(len(sets)), 0, -1, "")]
        while stack:
            rows, depth, parent, side = stack.pop()
            index = len(self.nodes_)
            node = AnnotationNode(n_examples=len(rows), depth=depth)
            self.nodes_.append(node)
            if parent >= 0:
                setattr(self.nodes_[parent], side, index)
            here = indicator[rows]
            frequency = np.bincount(here.indices, minlength=here.shape[1])
            # W_g = G_g - Zero_g - One_g; a label that was decided above is in one of the two.
            working = np.flatnonzero((frequency > 0) & (frequency < len(rows)))
            if not len(working) or len(rows) < self.min_examples:
                node.sets = Counter(sets[i] for i in rows)
                node.labels = min(node.sets, key=lambda s: (-node.sets[s], s))
                continue
            if self.rule == "frequent":
                group = frequent_question(np.where(frequency < len(rows), frequency, 0))
            else:
                group = balanced_question(here, frequency, working)
            yes = holds(here, group)
            node.group = tuple(group)
            node.bac = self.parameters.solve(
                X[rows], np.where(yes, 1.0, -1.0), np.ones((len(rows), 1), dtype=bool)
            )
            stack.append((rows[~yes], depth + 1, index, "no"))
            stack.append((rows[yes], depth + 1, index, "yes"))
        leaves = [node for node in self.nodes_ if node.bac is None]
        self.entropy_ = entropy(Counter(sets).values())
        self.mean_decisions_ = sum(node.n_examples * node.depth for node in leaves) / len(sets)
        self.depth_ = max(node.depth for node in leaves)
        return self

    def predict(self, X: Examples) -> list[LabelSet]:
        """Return a label set for each row."""
        X = check_examples(X)
        leaf = np.empty(X.shape[0], dtype=np.intp)
        stack: list[tuple[int, Indices]] = [(0, np.arange(X.shape[0]))]
        while stack:
            index, rows = stack.pop()
            node = self.nodes_[index]
            if node.bac is None:
                leaf[rows] = index
                continue
            if not len(rows):
                continue
            yes = node.bac.decision(X[rows])[:, 0] > 0
            stack += [(node.no, rows[~yes]), (node.yes, rows[yes])]
        return [self.nodes_[k].labels for k in leaf]
