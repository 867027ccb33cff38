"""Recall Tree: Daumé, Karampatziakis, Langford and Mineiro, ICML 2017, Algorithms 1 to 4 and equation (1).

Additions to the paper are marked "Ours".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import numpy as np

from sapwood.reference.label_counts import LabelCounts
from sapwood.reference.linear import (
    CONSTANT,
    Feature,
    Features,
    Regressor,
    Row,
    Rule,
    features_of,
    probability,
)
from sapwood.reference.objective import SplitQuality, split_quality
from sapwood.reference.random import SplitMix64
from sapwood.reference.records import Explanation, Ranking, Step, Trace, check_learned, check_weight

PathFeatures = Literal["none", "path", "leaf"]
RouterWeight = Literal["mean", "total", "none"]


class Node:
    """Figure 2. With two children one router, f > 0 to the right; with more, one router (lane) a child."""

    def __init__(self, number: int, depth: int) -> None:
        self.number = number
        self.depth = depth
        self.hist = LabelCounts()
        self.children: list[Node] = []
        self.routers: list[Regressor] = []

    @property
    def leaf(self) -> bool:
        """Whether it has no children."""
        return not self.children


class RecallTree:
    """The Recall Tree.

    max_candidates  F; None: max(1, 4 ceil(log2 K)) for the K labels seen so far
    coverage        ours: of a node's F heaviest labels only the first that hold this share of its examples are
                    candidates; 1: all F
    max_depth       None: the smallest d with F arity^d >= K
    bound           lambda of equation (1)
    early_stop      False: descend as far as there are examples (an ablation)
    router_weight   "mean": |dH| of Algorithm 3; "total": |dH| times the node's total; "none": the example's
    path_features   indicators of the nodes entered ("path") or of the last node ("leaf"), for the scores
    cross_path      those indicators times the raw features too
    arity           children of a node, 2 to 16
    """

    def __init__(
        self,
        *,
        max_candidates: int | None = None,
        coverage: float = 1.0,
        max_depth: int | None = None,
        bound: float = 1.0,
        early_stop: bool = True,
        router_weight: RouterWeight = "mean",
        randomized_routing: bool = False,
        path_features: PathFeatures = "path",
        cross_path: bool = False,
        arity: int = 2,
        router_rule: Rule | None = None,
        score_rule: Rule | None = None,
        seed: int = 0,
        trace: bool = False,
    ) -> None:
        if not 2 <= arity <= 16:
            raise ValueError(f"arity must be from 2 to 16, got {arity}")
        if bound < 0.0:
            raise ValueError(f"bound must not be negative, got {bound}")
        self.given_candidates = max_candidates
        self.coverage = coverage
        self.given_depth = max_depth
        self.bound = bound
        self.early_stop = early_stop
        self.router_weight = router_weight
        self.randomized_routing = randomized_routing
        self.path_features = path_features
        self.cross_path = cross_path
        self.arity = arity
        self.router_rule = router_rule or Rule()
        self.score_rule = score_rule or Rule()
        self.random = SplitMix64(seed)
        self.trace = Trace(trace)
        self.scores: dict[int, Regressor] = {}  # score_y, one a label seen
        self.nodes = [Node(0, 0)]

    @property
    def F(self) -> int:
        """The number of candidates, as of now."""
        if self.given_candidates is not None:
            return self.given_candidates
        return max(1, 4 * ceil_log(len(self.scores), 2))

    @property
    def depth_limit(self) -> int:
        """The depth below which no node is made, as of now."""
        if self.given_depth is not None:
            return self.given_depth
        return ceil_log(-(-len(self.scores) // self.F), self.arity)

    def candidates(self, n: Node) -> list[int]:
        """The heaviest labels, F or as many as hold `coverage` of the node's examples."""
        top = n.hist.top(self.F)
        if self.coverage >= 1.0:
            return top
        mass, enough = 0.0, self.coverage * n.hist.total
        for place, label in enumerate(top):
            if mass >= enough:
                return top[:place]
            mass += n.hist[label]
        return top

    def recall(self, n: Node) -> float:
        """The empirical recall r_n. Rounding of fractional weights never lifts it above 1."""
        return min(1.0, n.hist.top_mass(self.F) / n.hist.total)

    def recall_bound(self, n: Node) -> float:
        """Equation (1), not clipped at 0; minus infinity where nothing has been seen."""
        m = n.hist.total
        if m == 0.0:
            return -math.inf
        r = self.recall(n)
        return r - math.sqrt(self.bound * r * (1.0 - r) / m) - self.bound / m

    def learn(self, x: Row, y: int, weight: float = 1.0) -> None:
        """Algorithm 2. A weight of 0 is no example at all."""
        check_weight(weight)
        if weight == 0.0:
            return
        self.trace.example += 1
        if y not in self.scores:
            self.scores[y] = Regressor(self.score_rule)
        features = features_of(x)
        n = self.nodes[0]
        n.hist.add(y, weight)  # the paper counts children only; the root has candidates too
        entered: list[int] = []
        while self._has_children(n):  # while n.leaf is false
            self._update_router(features, y, n, weight)
            c = n.children[self._training_route(n, self._margins(n, features))]
            self.trace.add("route", (n.number, c.number))
            c.hist.add(y, weight)  # update_candidates(x, y, c)
            if self._stops(n, c):
                self.trace.add("stop", (n.number, c.number))
                break
            n = c
            entered.append(n.number)
        self._update_regressors(features, y, n, weight, self._path(features, entered, n))

    def _has_children(self, n: Node) -> bool:
        """Ours: no tree is given; a leaf above the depth limit gets children when an example comes to it."""
        if n.leaf and n.depth < self.depth_limit:
            first = len(self.nodes)
            n.children = [Node(first + i, n.depth + 1) for i in range(self.arity)]
            n.routers = [Regressor(self.router_rule) for _ in range(1 if self.arity == 2 else self.arity)]
            self.nodes += n.children
            self.trace.add("split", (n.number, *(c.number for c in n.children)))
        return not n.leaf

    def _update_router(self, x: Features, y: int, n: Node, weight: float) -> None:
        """Algorithm 3.

        costs[i] is (n_i + w) H'_i - n_i H_i, so that n.total * (H_left - H_right) = costs[0] - costs[1].
        Erratum: the paper routes f > 0 to the left but trains f towards sign(H_left - H_right). Here +1 is
        right. Ours, more than two children: lane i learns whether child i is better than the best of the
        others, weighted by how much. With two, the right lane is the paper's router and the left its mirror.
        """
        costs = [c.hist.cost(y, weight) for c in n.children]
        lanes = [1] if self.arity == 2 else range(self.arity)
        targets: list[float] = []
        for lane, router in zip(lanes, n.routers, strict=True):
            others = min(cost for i, cost in enumerate(costs) if i != lane)
            delta = others - costs[lane]
            target = float(delta > 0.0) - float(delta < 0.0)
            if target != 0.0:  # sign(0) = 0: a tie teaches nothing
                router.learn(x, target, self._importance(abs(delta), n.hist.total, weight))
            targets.append(target)
        self.trace.add("target", (n.number,), numbers=tuple(targets))

    def _importance(self, delta: float, total: float, weight: float) -> float:
        if self.router_weight == "none":
            return weight
        return delta / total if self.router_weight == "mean" else delta

    def _margins(self, n: Node, x: Features) -> list[float]:
        # the routers of a node see one path only: path features would be a second constant to them
        return [float(router.score(x)) for router in n.routers]

    def _route(self, margins: Sequence[float]) -> int:
        """The child: f > 0 right; of more than two the best lane, ties to the first."""
        if self.arity == 2:
            return int(margins[0] > 0.0)
        return max(range(self.arity), key=lambda i: margins[i])

    def _training_route(self, n: Node, margins: Sequence[float]) -> int:
        """As `_route`, or at random, child i in proportion to the probability that its lane says yes."""
        if not self.randomized_routing:
            return self._route(margins)
        loss = self.router_rule.loss
        lanes = (-margins[0], margins[0]) if self.arity == 2 else margins
        sums = list(accumulate(probability(loss, margin) for margin in lanes))
        u = self.random.uniform() * sums[-1]
        return next((i for i, s in enumerate(sums) if u < s), self._route(margins))

    def _stops(self, n: Node, c: Node) -> bool:
        """Algorithm 1, line 5. Ours: an empty child is never entered."""
        if c.hist.total == 0.0:
            return True
        return self.early_stop and self.recall_bound(n) > self.recall_bound(c)

    def _path(self, x: Features, entered: Sequence[int], n: Node) -> Features:
        """Algorithm 1, line 9: the indicators, each followed by its products with the raw features."""
        if self.path_features == "none":
            return []
        path: list[tuple[Feature, np.float32]] = []
        for number in entered if self.path_features == "path" else (n.number,):
            path.append(((number, CONSTANT), np.float32(1)))
            if self.cross_path:
                path += [((number, column), value) for (_, column), value in x if column != CONSTANT]
        return path

    def _update_regressors(self, x: Features, y: int, n: Node, weight: float, path: Features) -> None:
        """Algorithm 4."""
        candidates = self.candidates(n)
        self.trace.add("candidates", (n.number,), labels=tuple(candidates))
        if y in candidates:
            for label in candidates:
                self.scores[label].learn(x, 1.0 if label == y else -1.0, weight, path)

    def predict(self, x: Row) -> int:
        """The candidate with the highest score, ties to the heavier label."""
        return self.explain(x).label

    def topk(self, x: Row, k: int) -> Ranking:
        """The k best candidates with their scores; fewer if there are fewer candidates."""
        return self.explain(x).ranking[:k]

    def explain(self, x: Row) -> Explanation:
        """Algorithm 1: the path, the margins, why it ended, and all candidates with their scores."""
        check_learned(len(self.scores))
        features = features_of(x)
        n = self.nodes[0]
        steps: list[Step] = []
        entered: list[int] = []
        stopped: Literal["leaf", "recall", "empty child"] = "leaf"
        while not n.leaf:  # line 3
            margins = self._margins(n, features)
            c = n.children[self._route(margins)]  # line 4
            steps.append(Step(n.number, tuple(margins), c.number))
            if self._stops(n, c):  # line 5
                stopped = "empty child" if c.hist.total == 0.0 else "recall"
                break
            n = c  # line 8
            entered.append(n.number)
        path = self._path(features, entered, n)
        scored = [(label, float(self.scores[label].score(features, path))) for label in self.candidates(n)]
        scored.sort(key=lambda pair: -pair[1])  # line 11; stable: ties stay in candidate order
        return Explanation(tuple(steps), n.number, stopped, scored)

    def quality(self, node: int) -> SplitQuality | None:
        """Balance, purity and J(h) of the examples that a node with two children has routed."""
        if len(self.nodes[node].children) != 2:
            return None
        left, right = (child.hist for child in self.nodes[node].children)
        labels = sorted({*left.counts, *right.counts})
        return split_quality({label: left[label] + right[label] for label in labels}, right.counts)


def ceil_log(k: int, base: int) -> int:
    """The smallest d with base^d >= k."""
    d, power = 0, 1
    while power < k:
        d, power = d + 1, power * base
    return d
