"""Random tree, the LOMtree paper's baseline "Rtree": labels at random leaves."""

from __future__ import annotations

from sapwood.reference.balanced_tree import BalancedTree
from sapwood.reference.linear import Features, Regressor, Row, Rule, features_of
from sapwood.reference.random import SplitMix64
from sapwood.reference.records import Explanation, Ranking, Trace, check_learned, check_weight


class RandomTree:
    """A balanced tree, one label a leaf. The filter tree differs in `_learn_path` only."""

    def __init__(self, *, rule: Rule | None = None, seed: int = 0, trace: bool = False) -> None:
        self.tree = BalancedTree(rule or Rule(), SplitMix64(seed))
        self.trace = Trace(trace)

    def learn(self, x: Row, y: int, weight: float = 1.0) -> None:
        """Learn one example. A weight of 0 is no example at all."""
        check_weight(weight)
        if weight == 0.0:
            return
        self.trace.example += 1
        if y not in self.tree.leaf_of:
            self._grow(y)
        self._learn_path(features_of(x), y, weight)

    def _grow(self, y: int) -> None:
        nodes = self.tree.add(y)
        if nodes is not None:
            labels = (self.tree.nodes[nodes[1]].label, self.tree.nodes[nodes[2]].label)
            self.trace.add("grow", nodes, labels=labels)

    def _learn_path(self, x: Features, y: int, weight: float) -> None:
        """Every router on the way to the label learns which side the label is on."""
        for node, side in self.tree.path_to(y):
            assert node.router is not None
            node.router.learn(x, side, weight)
            self.trace.add("target", (node.number,), numbers=(side,))

    def predict(self, x: Row) -> int:
        """The label of the leaf that the routers lead to."""
        check_learned(len(self.tree.leaf_of))
        features = features_of(x)
        return self.tree.descend(lambda router: float(router.score(features)))[1].label

    def topk(self, x: Row, k: int) -> Ranking:
        """The k labels that overrule the routers least, the predicted one first; see `BalancedTree.rank`."""
        check_learned(len(self.tree.leaf_of))
        features = features_of(x)
        return self.tree.rank(lambda router: float(router.score(features)), k)

    def explain(self, x: Row) -> Explanation:
        """The path, the margin of each router on it, and all labels ranked."""
        check_learned(len(self.tree.leaf_of))
        features = features_of(x)

        def score(router: Regressor) -> float:
            return float(router.score(features))

        steps, leaf = self.tree.descend(score)
        ranking = self.tree.rank(score, len(self.tree.leaf_of))
        return Explanation(tuple(steps), leaf.number, "leaf", ranking)
