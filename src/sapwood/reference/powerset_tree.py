"""Powerset tree (PT), Algorithm 3 of the budgeted-trees paper: Huffman's tree over the label sets seen."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sapwood.reference.budgeted import BudgetedParameters, Examples, Indices, Solution, check_examples
from sapwood.reference.label_sets import LabelSet, as_label_sets, entropy


def huffman(frequencies: Sequence[int]) -> list[tuple[int, int]]:
    """Return the merges of Algorithm 3, lines 1 to 8: (s_i, s_j) became node len(frequencies) + position.

    Of equally frequent nodes the one created first leaves the queue first.
    """
    queue = [(frequency, node) for node, frequency in enumerate(frequencies)]
    heapq.heapify(queue)
    merges: list[tuple[int, int]] = []
    while len(queue) > 1:
        p_i, s_i = heapq.heappop(queue)
        p_j, s_j = heapq.heappop(queue)
        heapq.heappush(queue, (p_i + p_j, len(frequencies) + len(merges)))
        merges.append((s_i, s_j))
    return merges


def code_lengths(n_classes: int, merges: Sequence[tuple[int, int]]) -> list[int]:
    """Return l(s_i), the number of decisions that lead to each class."""
    depth = [0] * (n_classes + len(merges))
    for position in reversed(range(len(merges))):
        for child in merges[position]:
            depth[child] = depth[n_classes + position] + 1
    return depth[:n_classes]


@dataclass
class Merge:
    """An internal node: its BAC says s_i where f(x) > 0, else s_j."""

    positive: int
    negative: int
    bac: Solution


class PowersetTree:
    """PT, Algorithm 3.

    Attributes
    ----------
    sets_ : the label sets seen, in lexicographic order; they are nodes 0 to len(sets_) - 1
    merges_ : the internal nodes, numbered on from there; the last is the root
    entropy_ : H(P_lp) in bits
    mean_decisions_ : mean(S) on the training distribution, in [H, H + 1) by theorem 12
    """

    def __init__(self, parameters: BudgetedParameters) -> None:
        self.parameters = parameters

    def fit(self, X: Examples, Y: Any) -> PowersetTree:
        """Learn from examples and their label sets."""
        X, sets = check_examples(X), as_label_sets(Y)
        if not sets:
            raise ValueError("there must be at least one example")
        count = Counter(sets)
        self.sets_: list[LabelSet] = sorted(count)
        frequencies = [count[s] for s in self.sets_]
        merges = huffman(frequencies)
        lengths = code_lengths(len(self.sets_), merges)
        self.entropy_ = entropy(frequencies)
        self.mean_decisions_ = float(np.dot(frequencies, lengths)) / len(sets)
        self.depth_ = max(lengths)
        class_of = {s: k for k, s in enumerate(self.sets_)}
        code = np.array([class_of[s] for s in sets])
        by_class = np.argsort(code, kind="stable")
        # T_s: the examples of each node, leaves first
        members: list[Indices] = list(np.split(by_class, np.cumsum(frequencies)[:-1]))
        self.merges_: list[Merge] = []
        for s_i, s_j in merges:
            rows = np.concatenate([members[s_i], members[s_j]])
            y = np.repeat([1.0, -1.0], [len(members[s_i]), len(members[s_j])])
            order = np.argsort(rows)
            rows, y = rows[order], y[order]
            bac = self.parameters.solve(X[rows], y, np.ones((len(rows), 1), dtype=bool))
            self.merges_.append(Merge(s_i, s_j, bac))
            members.append(rows)
        return self

    def predict(self, X: Examples) -> list[LabelSet]:
        """Return a label set for each row."""
        X = check_examples(X)
        answer = np.empty(X.shape[0], dtype=np.intp)
        leaves = len(self.sets_)
        stack: list[tuple[int, Indices]] = [(leaves + len(self.merges_) - 1, np.arange(X.shape[0]))]
        while stack:
            node, rows = stack.pop()
            if node < leaves:
                answer[rows] = node
                continue
            if not len(rows):
                continue
            merge = self.merges_[node - leaves]
            positive = merge.bac.decision(X[rows])[:, 0] > 0
            stack += [(merge.negative, rows[~positive]), (merge.positive, rows[positive])]
        return [self.sets_[k] for k in answer]
