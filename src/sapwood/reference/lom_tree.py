"""LOMtree: Choromanska and Langford, NIPS 2015, Algorithm 1 (the NIPS version).

Names are the paper's: r root, j the node an example is at, s the orphan; per node l, m, n, e, E, C.
Every count is a sum of importance weights. Additions to the paper are marked "Ours".
"""

from __future__ import annotations

import math

from sapwood.reference.label_counts import LabelCounts
from sapwood.reference.linear import Features, Regressor, Row, Rule, features_of
from sapwood.reference.objective import SplitQuality, split_quality, tree_entropy
from sapwood.reference.records import Explanation, Ranking, Step, Trace, check_learned, check_weight


class Node:
    """A node and its regressor h. Links are node numbers; -1 is none. A leaf has no children."""

    def __init__(self, number: int, rule: Rule) -> None:
        self.number = number
        self.h = Regressor(rule)
        self.parent = self.left = self.right = -1
        self.recycles = 0
        self.floor = 0.0  # Ours: no split makes a leaf below it smaller than this, see LOMTree._split
        self.set_node()

    def set_node(self) -> None:
        """SetNode(v). Ours: a recycled node forgets weights, step state and children too."""
        self.l = LabelCounts()
        self.m: dict[int, float] = {}  # sums of scores per label
        self.n: dict[int, float] = {}  # weight per label that trained h
        self.m_sum = 0.0  # footnote 10: the two sums of E_v are kept as variables
        self.n_sum = 0.0
        self.C = 0.0
        self.sent_right: dict[int, float] = {}  # Ours: for J(h), which Algorithm 1 never computes
        self.h.reset()
        self.left = self.right = -1

    @property
    def leaf(self) -> bool:
        """Whether it has no children."""
        return self.left < 0

    @property
    def E(self) -> float:
        """The expected score; 0 before the first."""
        return self.m_sum / self.n_sum if self.n_sum > 0.0 else 0.0

    def e(self, y: int) -> float:
        """The expected score of a label; 0 before its first."""
        n = self.n.get(y, 0.0)
        return self.m[y] / n if n > 0.0 else 0.0


class LOMTree:
    """The LOMtree.

    `max_internal` is T, the number of internal nodes; None lets it follow the K labels seen so far:
    T = internal_per_label * K - 1, the paper's grid. `swap_resistance` is R_S.
    """

    def __init__(
        self,
        *,
        max_internal: int | None = None,
        internal_per_label: int = 1,
        swap_resistance: float = 4.0,
        rule: Rule | None = None,
        trace: bool = False,
    ) -> None:
        if swap_resistance < 1.0:  # below 1 a leaf could be its own orphan
            raise ValueError(f"swap_resistance must be at least 1, got {swap_resistance}")
        self.max_internal = max_internal
        self.internal_per_label = internal_per_label
        self.R_S = swap_resistance
        self.rule = rule or Rule(loss="squared")
        self.trace = Trace(trace)
        self.labels: set[int] = set()
        self.nodes = [Node(0, self.rule)]  # Create root r = 0: SetNode(r)
        self.t = 0  # internal nodes. The paper starts at 1 and would stop at T - 1 of them

    @property
    def T(self) -> int:
        """The largest number of internal nodes, as of now."""
        if self.max_internal is not None:
            return self.max_internal
        return self.internal_per_label * len(self.labels) - 1

    def learn(self, x: Row, y: int, weight: float = 1.0) -> None:
        """One turn of the loop "for each example (x, y)". A weight of 0 is no example at all."""
        check_weight(weight)
        if weight == 0.0:
            return
        self.trace.example += 1
        self.labels.add(y)
        features = features_of(x)
        j = self.nodes[0]
        while True:  # Do
            j.l.add(y, weight)  # l_j(y)++
            if j.leaf and not (len(j.l) >= 2 and self._split(j)):
                break
            j = self._train(j, features, y, weight)
        j.C += weight  # C_j++
        self._update_c(j)  # missing in both versions of the paper: without it C_r goes stale

    def _train(self, j: Node, x: Features, y: int, weight: float) -> Node:
        """Train h_j and send the example on, by the score after the update."""
        c = -1.0 if j.e(y) < j.E else 1.0
        self.trace.add("target", (j.number,), numbers=(c,))
        j.h.learn(x, c, weight)  # R(x, c)
        score = float(j.h.score(x))
        j.n[y] = j.n.get(y, 0.0) + weight
        j.m[y] = j.m.get(y, 0.0) + weight * score
        j.n_sum += weight
        j.m_sum += weight * score
        if score > 0.0:
            j.sent_right[y] = j.sent_right.get(y, 0.0) + weight
        child = self.nodes[self._route(j, score)]
        self.trace.add("route", (j.number, child.number))
        return child

    @staticmethod
    def _route(j: Node, score: float) -> int:
        return j.right if score > 0.0 else j.left

    def _split(self, j: Node) -> bool:
        """Give the leaf two children, new ones while t < T, else an orphan and its parent."""
        left_C = math.floor(j.C / 2.0)
        if left_C < j.floor:
            return False
        if self.t < self.T:
            self._create_children(j)
            floor = j.floor
        else:
            s = self._orphan()
            if s is None or not j.C - j.l.heaviest() > self.R_S * (s.C + 1.0):  # inequality (2)
                return False
            # Ours. Lemma 3 rests on a recycled node never falling below twice the count it had. With T fixed,
            # inequality (2) sees to that; where T grows, a fresh split below the node could undo it.
            floor = max(j.floor, min(2.0 * (s.C + 1.0), left_C))
            self._swap(j, s)
        left, right = self.nodes[j.left], self.nodes[j.right]
        left.floor = right.floor = floor
        left.C = left_C
        right.C = j.C - left.C
        self._update_c(left)
        return True

    def _create_children(self, j: Node) -> None:
        left, right = Node(len(self.nodes), self.rule), Node(len(self.nodes) + 1, self.rule)
        self.nodes += [left, right]
        left.parent = right.parent = j.number
        j.left, j.right = left.number, right.number
        self.t += 1
        self.trace.add("split", (j.number, left.number, right.number))

    def _orphan(self) -> Node | None:
        """The smallest leaf that has a grandparent, ties to the left; None if there is none.

        Ours: the paper takes any smallest leaf. One that hangs under the root has no grandparent to give its
        sibling to, so the descent leaves the root through an internal child.
        """
        root = self.nodes[0]
        inner = [] if root.leaf else [v for v in (root.left, root.right) if not self.nodes[v].leaf]
        if not inner:
            return None
        v = self.nodes[min(inner, key=lambda number: self.nodes[number].C)]
        while not v.leaf:
            left, right = self.nodes[v.left], self.nodes[v.right]
            v = left if left.C <= right.C else right
        return v

    def _swap(self, v: Node, s: Node) -> None:
        """Swap(v), figure 2."""
        s_pa = self.nodes[s.parent]
        s_gpa = self.nodes[s_pa.parent]
        s_sib = self.nodes[s_pa.right if s_pa.left == s.number else s_pa.left]
        self.trace.add(
            "swap",
            (v.number, s.number, s_pa.number, s_gpa.number, s_sib.number),
            numbers=(v.C, v.l.heaviest(), s.C, self.nodes[0].C),
        )
        if s_gpa.left == s_pa.number:
            s_gpa.left = s_sib.number
        else:
            s_gpa.right = s_sib.number
        s_sib.parent = s_gpa.number
        self._update_c(s_sib)
        s.set_node()
        s_pa.set_node()
        v.left, v.right = s.number, s_pa.number
        s.parent = s_pa.parent = v.number
        s.recycles += 1
        s_pa.recycles += 1

    def _update_c(self, v: Node) -> None:
        """UpdateC(v)."""
        while v.parent >= 0 and self.nodes[v.parent].C != v.C:
            v = self.nodes[v.parent]
            v.C = min(self.nodes[v.left].C, self.nodes[v.right].C)

    def predict(self, x: Row) -> int:
        """The heaviest label of the leaf that x comes to."""
        return self.explain(x).label

    def topk(self, x: Row, k: int) -> Ranking:
        """The k heaviest labels of the leaf, with their shares."""
        return self.explain(x).ranking[:k]

    def explain(self, x: Row) -> Explanation:
        """The path, the score of each regressor on it, the labels of the leaf with their shares."""
        check_learned(len(self.labels))
        features = features_of(x)
        j = self.nodes[0]
        steps: list[Step] = []
        while not j.leaf:
            score = float(j.h.score(features))
            child = self._route(j, score)
            steps.append(Step(j.number, (score,), child))
            j = self.nodes[child]
        # Ours: a leaf that no example has reached answers as its parent, which holds at least two labels
        counts = j.l if len(j.l) > 0 else self.nodes[j.parent].l
        ranking = [(label, counts[label] / counts.total) for label in counts.ranked()]
        return Explanation(tuple(steps), j.number, "leaf", ranking)

    def quality(self, node: int) -> SplitQuality | None:
        """Balance, purity and J(h) of the examples that the node has routed."""
        return split_quality(self.nodes[node].n, self.nodes[node].sent_right)

    def entropy(self) -> float:
        """G_t of the whole tree."""
        return tree_entropy(node.l for node in self.nodes if node.leaf)
