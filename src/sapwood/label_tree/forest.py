"""Trained trees as arrays: what a model file holds, what pickle copies, what the core searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core

NO_TARGET = -(2**31)
"""A lane that leads nowhere."""


@dataclass(frozen=True)
class Settings:
    """How a search goes about its work."""

    beam: int
    min_beam_share: float
    normalize: bool
    n_threads: int


@dataclass(frozen=True)
class Step:
    """One node on the way to a label.

    Attributes
    ----------
    node : int
        Its number in the model.
    n_children : int
        How many regressors were evaluated.
    rank : int
        Place of the child taken among them, 0 for the best.
    score : float
        What the regressor of the child taken said.
    probability : float
        The probability that this score stands for.
    n_labels : int
        How many labels were left below the child taken.
    """

    node: int
    n_children: int
    rank: int
    score: float
    probability: float
    n_labels: int


@dataclass(frozen=True)
class Explanation:
    """Why a row got its best label.

    Attributes
    ----------
    label
        The label.
    score : float
        Its probability.
    paths : list of list of Step
        For each tree, the nodes from the root to the label.
    """

    label: Any
    score: float
    paths: list[list[Step]]


class Forest:
    """Trees over labels 0 .. n_labels - 1 and their packed banks."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], *, n_labels: int, half: bool, loss: str) -> None:
        self.arrays = dict(arrays)
        self.n_labels = n_labels
        self.half = half
        self.loss = loss
        self.core = _core.Forest(self.arrays, n_labels=n_labels, half=half, loss=loss)
        self.n_reachable = int(self.arrays["node_labels"][self.arrays["roots"]].max())
        """How many labels the trees lead to."""

    def __reduce__(self) -> Any:
        return _rebuild, (self.arrays, self.n_labels, self.half, self.loss)

    def settings(self) -> dict[str, Any]:
        """What it was made with, besides the arrays."""
        return {"n_labels": self.n_labels, "half": self.half, "loss": self.loss}

    @property
    def nbytes(self) -> int:
        """Size of the model."""
        return sum(array.nbytes for array in self.arrays.values())

    def top(self, rows: _core.Rows, k: int, how: Settings) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Codes and scores of the k best labels of each row."""
        return self.core.top(
            rows,
            k=k,
            beam=how.beam,
            min_beam_share=how.min_beam_share,
            normalize=how.normalize,
            n_threads=how.n_threads,
        )

    def nodes(self) -> dict[str, NDArray[Any]]:
        """The nodes of all trees as `sapwood.inspect` wants them: parents, children that are nodes, labels below."""
        a = self.arrays
        first = a["group_banks"][a["node_groups"]]
        rows = [a["targets"][16 * start : 16 * end] for start, end in pairwise(first.tolist())]
        inner = [row[row >= 0] for row in rows]
        arity = max(1, *(len(row) for row in inner))
        children = np.full((len(rows), arity), -1, dtype=np.int32)
        parent = np.full(len(rows), -1, dtype=np.int32)
        for node, row in enumerate(inner):
            children[node, : len(row)] = row
            parent[row] = node
        return {"parent": parent, "children": children, "n_labels": a["node_labels"]}

    def path(self, rows: _core.Rows, row: int, label: int, tree: int, normalize: bool) -> list[Step]:
        """The nodes from the root of a tree to a label, and what their regressors say of a row."""
        parents = self._parents(tree)
        way = []
        child = ~label
        while child in parents:
            node = parents[child]
            way.append((node, child))
            child = node
        return [self._step(rows, row, node, child, normalize) for node, child in reversed(way)]

    def _step(self, rows: _core.Rows, row: int, node: int, child: int, normalize: bool) -> Step:
        children, scores = self.core.node_scores(rows, row=row, node=node, normalize=normalize)
        score = float(scores[children == child][0])
        n_labels = 1 if child < 0 else int(self.arrays["node_labels"][child])
        rank = int((scores > score).sum())
        return Step(node, len(children), rank, score, probability(score, self.loss), n_labels)

    def _parents(self, tree: int) -> dict[int, int]:
        """For each node below a root and each ~label, the node above it."""
        a = self.arrays
        parents: dict[int, int] = {}
        stack = [int(a["roots"][tree])]
        while stack:
            node = stack.pop()
            first, last = (a["group_banks"][a["node_groups"][node + i]] for i in (0, 1))
            for target in a["targets"][16 * first : 16 * last].tolist():
                if target != NO_TARGET:
                    parents[target] = node
                    if target >= 0:
                        stack.append(target)
        return parents


def probability(score: float, loss: str) -> float:
    """The probability that a regressor's score stands for."""
    if loss == "logistic":
        return float(1 / (1 + np.exp(-score)))
    return float(np.exp(-(max(0.0, 1 - score) ** 2)))


def _rebuild(arrays: Mapping[str, NDArray[Any]], n_labels: int, half: bool, loss: str) -> Forest:
    return Forest(arrays, n_labels=n_labels, half=half, loss=loss)
