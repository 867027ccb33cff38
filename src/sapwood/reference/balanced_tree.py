"""A balanced binary tree with one label a leaf, which grows as labels appear.

The random tree and the filter tree share it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from sapwood.reference.linear import Regressor, Rule
from sapwood.reference.random import SplitMix64
from sapwood.reference.records import Ranking, Step


class Node:
    """A leaf holds a label, an internal node a router that says right if its score is positive."""

    def __init__(self, number: int, parent: int, label: int) -> None:
        self.number = number
        self.parent = parent
        self.left = self.right = -1
        self.label = label
        self.router: Regressor | None = None


class BalancedTree:
    """A new label takes half of a leaf drawn at random among the shallowest.

    So depths differ by at most one, the assignment is random, no label is told of beforehand, and none ever
    leaves the subtrees it is in: what the routers above have learned stays true.
    """

    def __init__(self, rule: Rule, random: SplitMix64) -> None:
        self.rule = rule
        self.random = random
        self.nodes: list[Node] = []
        self.leaf_of: dict[int, int] = {}
        self._shallow: list[int] = []  # leaves of the smaller depth
        self._deep: list[int] = []  # leaves one deeper, in order of creation

    def add(self, label: int) -> tuple[int, int, int] | None:
        """Give a new label a leaf; returns the leaf that was split and its children, left and right."""
        if not self.nodes:
            self._new_leaf(-1, label, self._shallow)
            return None
        place = self.random.below(len(self._shallow))
        self._shallow[place], self._shallow[-1] = self._shallow[-1], self._shallow[place]
        node = self.nodes[self._shallow.pop()]
        pair = (node.label, label) if self.random.below(2) == 0 else (label, node.label)
        node.left = self._new_leaf(node.number, pair[0], self._deep)
        node.right = self._new_leaf(node.number, pair[1], self._deep)
        node.label = -1
        node.router = Regressor(self.rule)
        if not self._shallow:
            self._shallow, self._deep = self._deep, []
        return node.number, node.left, node.right

    def _new_leaf(self, parent: int, label: int, level: list[int]) -> int:
        node = Node(len(self.nodes), parent, label)
        self.nodes.append(node)
        self.leaf_of[label] = node.number
        level.append(node.number)
        return node.number

    def path_to(self, label: int) -> list[tuple[Node, float]]:
        """The internal nodes from the root to the label, each with its side: -1 left, +1 right."""
        path: list[tuple[Node, float]] = []
        child = self.leaf_of[label]
        while self.nodes[child].parent >= 0:
            node = self.nodes[self.nodes[child].parent]
            path.append((node, 1.0 if node.right == child else -1.0))
            child = node.number
        return path[::-1]

    def descend(self, score: Callable[[Regressor], float]) -> tuple[list[Step], Node]:
        """Follow the routers to a leaf."""
        node, steps = self.nodes[0], list[Step]()
        while node.router is not None:
            margin = score(node.router)
            child = node.right if margin > 0.0 else node.left
            steps.append(Step(node.number, (margin,), child))
            node = self.nodes[child]
        return steps, node

    def rank(self, score: Callable[[Regressor], float], k: int) -> Ranking:
        """The k labels that overrule the routers least.

        The score of a label is minus the sum of |margin| over the routers on its path that say otherwise: 0
        for the label the routers lead to, which is therefore first. Ties go to the path that follows its
        routers longer (a router obeyed is 0, overruled 1, compared from the root).
        """
        ranking: Ranking = []
        heap: list[tuple[float, tuple[int, ...], int]] = [(0.0, (), 0)]
        while heap and len(ranking) < k:
            cost, overruled, number = heapq.heappop(heap)
            node = self.nodes[number]
            if node.router is None:
                ranking.append((node.label, -cost))
                continue
            margin = score(node.router)
            obeyed, other = (node.right, node.left) if margin > 0.0 else (node.left, node.right)
            heapq.heappush(heap, (cost, (*overruled, 0), obeyed))
            heapq.heappush(heap, (cost + abs(margin), (*overruled, 1), other))
        return ranking
