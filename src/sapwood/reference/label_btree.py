"""The label B-tree, slowly and readably: the core is held to it decision by decision.

Rows are dicts from feature to value, of length 1 where the estimator normalises. Weights here are Python floats, in the
core 32-bit ones: shapes agree, scores to a few digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sapwood.reference.random import SplitMix64 as Random

Row = Mapping[int, float]
Profile = dict[int, float]

LANES = 16
FIRST_SQUARE, FIRST_BIAS = 1.5, -0.9
NEGLIGIBLE_GRADIENT, NEGLIGIBLE_WEIGHT = 1e-3, 0.05
MOST_TERMS, STARTS, MOST_ROUNDS, WORTH_A_ROUND, TIE, GRAIN = 32, 3, 8, 1e-4, 1e-6, 1e-5
REHEARSALS = 2
FIRST_REGROUP, REGROUP_FACTOR, ONE_LABEL = 3, 256, 1.1
YOUNG, CLOSE, MOST_WAITING = 16, 0.01, 2**20
AGEING = 10
ONE_LABEL_DISCOUNT = 0.5


@dataclass
class Weight:
    """A weight and the sum of its squared gradients."""

    value: float = 0.0
    square: float = FIRST_SQUARE


@dataclass
class Node:
    """A node with a regressor (a lane) for each child; sixteen lanes are a bank.

    A feature that has occurred once, with one lane, has a weight there alone, in `lone`. Once it occurs again
    `lines[bank]` holds 16 weights for it, in each bank with a child of which it has occurred.
    """

    is_leaf: bool = True
    parent: int = -1
    lane: int = -1
    children: list[int] = field(default_factory=list)
    bias: dict[int, Weight] = field(default_factory=dict)
    lone: dict[int, tuple[int, Weight]] = field(default_factory=dict)
    lines: dict[int, dict[int, list[Weight]]] = field(default_factory=dict)
    n_labels: int = 0
    n_rows: int = 0
    regroup_at: int = FIRST_REGROUP

    def line(self, lane: int, feature: int) -> list[Weight]:
        """The weights of a feature in the bank of a lane, made if they are not there."""
        if feature in self.lone:
            owner, weight = self.lone.pop(feature)
            self.line(owner, feature)[owner % LANES] = weight
        bank = self.lines.setdefault(lane // LANES, {})
        return bank.setdefault(feature, [Weight() for _ in range(LANES)])

    def features(self) -> set[int]:
        """What any lane knows."""
        return self.lone.keys() | {f for bank in self.lines.values() for f in bank}

    def lane_weights(self, lane: int) -> dict[int, Weight]:
        """What a lane knows, by feature."""
        bank = self.lines.get(lane // LANES, {})
        alone = {f: weight for f, (owner, weight) in self.lone.items() if owner == lane}
        return {f: line[lane % LANES] for f, line in bank.items()} | alone

    def meet(self, feature: int, right: set[int]) -> None:
        """Make sure that these lanes know a feature."""
        is_new = feature not in self.lone and not any(feature in bank for bank in self.lines.values())
        if is_new and len(right) == 1:
            self.lone[feature] = (min(right), Weight())
        else:
            for lane in right:
                self.line(lane, feature)

    def constant(self, lane: int) -> Weight:
        """The bias of a lane."""
        return self.bias.setdefault(lane, Weight(FIRST_BIAS))

    def reset(self, lane: int) -> None:
        """Make a lane one that has learned nothing."""
        self.bias.pop(lane, None)
        for feature, (owner, _) in self.lone.items():
            if owner == lane:
                self.lone[feature] = (lane, Weight())
        for line in self.lines.get(lane // LANES, {}).values():
            line[lane % LANES] = Weight()

    def scores(self, row: Row) -> list[float]:
        """What the regressors say of a row."""
        scores = []
        for lane in range(len(self.children)):
            bank = self.lines.get(lane // LANES, {})
            met = sum(x * bank[f][lane % LANES].value for f, x in row.items() if f in bank)
            scores.append(self.constant(lane).value + met)
        for feature in row.keys() & self.lone.keys():
            owner, weight = self.lone[feature]
            if owner < len(scores):
                scores[owner] += row[feature] * weight.value
        return scores

    def learn(self, row: Row, right: set[int], step: float, weight: float = 1.0, decay: float = 0.0) -> int:
        """One step of AdaGrad on the squared hinge, for all lanes.

        Gives the best wrong lane where it was above a right one, else -1.
        """
        for feature in row:
            self.meet(feature, right)
        gradients, scores = [], self.scores(row)
        for lane, score in enumerate(scores):
            y = 1.0 if lane in right else -1.0
            gradients.append(-2.0 * weight * y * max(0.0, 1.0 - y * score))
        for bank in range(0, len(gradients), LANES):
            lanes = range(bank, min(bank + LANES, len(gradients)))
            if not any(abs(gradients[lane]) > NEGLIGIBLE_GRADIENT for lane in lanes):
                continue
            lines = self.lines.get(bank // LANES, {})
            for lane in lanes:
                _step(self.constant(lane), gradients[lane], step, decay)
                for feature in row.keys() & lines.keys():
                    _step(lines[feature][lane % LANES], gradients[lane] * row[feature], step, decay)
            for feature in row.keys() & self.lone.keys():
                owner, alone = self.lone[feature]
                if owner in lanes:
                    _step(alone, gradients[owner] * row[feature], step, decay)
        others = [lane for lane in range(len(scores)) if lane not in right]
        wrong = max(others, key=lambda lane: (scores[lane], -lane), default=-1)
        lowest = min((scores[lane] for lane in right), default=math.inf)
        return wrong if wrong >= 0 and lowest < scores[wrong] + CLOSE else -1

    def profiles(self) -> list[Profile]:
        """What speaks for each child: the largest positive weights of its lane, of unit length."""
        found: list[Profile] = []
        for lane in range(len(self.children)):
            terms = [(-weight.value, f) for f, weight in self.lane_weights(lane).items() if weight.value > 0]
            largest = {f: -w for w, f in sorted(terms)[:MOST_TERMS]}
            length = math.sqrt(sum(w * w for w in largest.values()))
            found.append({f: largest[f] / length for f in sorted(largest)})
        return found


@dataclass
class Waiting:
    """A row that waits for its second look; `learned` is its number."""

    row: Row
    labels: Sequence[int]
    weight: float
    learned: int


def _step(weight: Weight, gradient: float, step: float, decay: float) -> None:
    kept = weight.square if decay == 0 else max(weight.square * (1 - decay), FIRST_SQUARE)
    weight.square = kept + gradient * gradient
    weight.value -= step * gradient / math.sqrt(weight.square)


def likeness(a: Profile, b: Profile) -> float:
    """The cosine of two profiles."""
    return sum(w * b[f] for f, w in a.items() if f in b)


def deal_out(profiles: Sequence[Profile], parts: int, random: Random) -> list[list[int]]:
    """Children in so many parts of equal size (to one), like with like: halves of halves."""

    def deal(members: list[int], n: int) -> list[list[int]]:
        if n == 1:
            return [members]
        first = len(members) * (n // 2) // n
        order = _halve(profiles, members, first, random)
        return deal(order[:first], n // 2) + deal(order[first:], n - n // 2)

    return deal(list(range(len(profiles))), parts)


def _halve(profiles: Sequence[Profile], members: list[int], n_first: int, random: Random) -> list[int]:
    """The members in an order whose first `n_first` belong together: balanced 2-means, the best of a few starts."""
    best_fit, best = 0.0, members
    for start in range(STARTS):
        first = random.below(len(members))
        second = random.below(len(members) - 1)
        second += second >= first
        fit, order = _two_means(profiles, members, n_first, members[first], members[second])
        if start == 0 or fit > best_fit + TIE * abs(best_fit):
            best_fit, best = fit, order
    return best


def _two_means(
    profiles: Sequence[Profile], members: list[int], n_first: int, first: int, second: int
) -> tuple[float, list[int]]:
    direction = _sum([(profiles[first], 1.0), (profiles[second], -1.0)])
    fit, kept = -math.inf, members
    for round_ in range(MOST_ROUNDS):
        score = {i: sum(direction.get(f, 0.0) * w for f, w in profiles[i].items()) for i in members}
        order = sorted(members, key=lambda i: (-round(score[i] / GRAIN), i))
        now = sum(score[i] if k < n_first else -score[i] for k, i in enumerate(order))
        if round_ > 1 and now <= fit + WORTH_A_ROUND * abs(fit):
            break
        fit, kept = now, order
        means = [_sum([(profiles[i], 1.0) for i in part]) for part in (order[:n_first], order[n_first:])]
        lengths = [math.sqrt(sum(w * w for w in mean.values())) for mean in means]
        scales = [1 / length if length > 0 else 0.0 for length in lengths]
        direction = _sum([(means[0], scales[0]), (means[1], -scales[1])])
    return fit, kept


def _sum(terms: Iterable[tuple[Profile, float]]) -> Profile:
    total: Profile = {}
    for profile, factor in terms:
        for feature, weight in profile.items():
            total[feature] = total.get(feature, 0.0) + factor * weight
    return total


class LabelBTree:
    """A B-tree of regressors that learns a stream of rows with any number of labels, unknown beforehand."""

    def __init__(
        self,
        *,
        arity: int,
        max_leaf: int,
        step: float = 0.7,
        decay: float = 0.0,
        second_look: int = 16000,
        seed: int = 0,
    ) -> None:
        self.arity, self.max_leaf, self.step, self.decay = arity, max_leaf, step, decay
        self.second_look = second_look
        self.waiting: list[Waiting] = []
        self.random = Random(seed)
        self.nodes = [Node()]
        self.root = 0
        self.places: dict[int, tuple[int, int]] = {}
        self.counts: dict[int, int] = {}
        self.n_rows = self.n_row_labels = 0

    def learn(self, row: Row, labels: Sequence[int], weight: float = 1.0) -> None:
        """One row: place its new labels, learn at every node on the ways to its labels, regroup where it is due."""
        if weight == 0:
            return
        self.n_rows += 1
        self.n_row_labels += len(labels)
        for label in labels:
            self.counts[label] = self.counts.get(label, 0) + 1
            if label not in self.places:
                self._insert(label, row)
        if not self.places:
            return
        visits = self._visits(labels)
        mistaken, astray = False, []
        for v, right in visits.items():
            node = self.nodes[v]
            node.n_rows += 1
            wrong = node.learn(row, right, self._step(v), weight, self.decay)
            mistaken |= wrong >= 0
            if wrong >= 0 and not node.is_leaf:
                astray.append(node.children[wrong])
        if self._labels_a_row() > ONE_LABEL:
            self._learn_astray([v for v in astray if v not in visits], row, weight)
        self._regroup_where_due(visits)
        if self.second_look > 0 and mistaken and any(self.counts[label] <= YOUNG for label in labels):
            self.waiting.append(Waiting({f: x for f, x in row.items() if x}, labels, weight, self.n_rows))
        self._look_again()

    def _learn_astray(self, nodes: Iterable[int], row: Row, weight: float) -> None:
        """Where a wrong child was above a right one, the nodes it leads to learn that none of theirs is right."""
        for v in nodes:
            node, scores = self.nodes[v], self.nodes[v].scores(row)
            node.learn(row, set(), self._step(v), weight, self.decay)
            if not node.is_leaf:
                self._learn_astray([node.children[scores.index(max(scores))]], row, weight)

    def _look_again(self) -> None:
        """Rows that were mistaken when a label of theirs was young are learned once more, after so many others."""
        while self.waiting:
            entries = sum(len(waiting.row) for waiting in self.waiting)
            first = self.waiting[0]
            if self.n_rows - first.learned < self.second_look and entries <= MOST_WAITING:
                break
            labels = [label for label in first.labels if label in self.places]
            for v, right in self._visits(labels).items() if labels else ():
                self.nodes[v].learn(first.row, right, self._step(v), first.weight, self.decay)
            self.waiting.pop(0)

    def _visits(self, labels: Sequence[int]) -> dict[int, set[int]]:
        """For each node on the ways from the labels to the root, its lanes that are right."""
        visits: dict[int, set[int]] = {self.root: set()}
        for label in labels:
            v, lane = self.places[label]
            while v >= 0:
                visits.setdefault(v, set()).add(lane)
                v, lane = self.nodes[v].parent, self.nodes[v].lane
        return visits

    def _labels_a_row(self) -> float:
        return max(self.n_row_labels / max(self.n_rows, 1), 1.0)

    def _step(self, v: int) -> float:
        """Smaller where rows have more labels, and with the eighth root of the node's age in rows a label."""
        rows_a_label = self.nodes[v].n_rows / max(self.nodes[v].n_labels, 1)
        age = 1.0 if self.decay > 0 else 1 + rows_a_label / AGEING
        return self.step / math.sqrt(self._labels_a_row() * age**0.25)

    def _most(self, v: int) -> int:
        return self.max_leaf if self.nodes[v].is_leaf else self.arity

    def _insert(self, label: int, row: Row) -> None:
        """A new label goes to the leaf that the regressors lead to; a full one splits before."""
        leaf = self._route(row)
        while len(self.nodes[leaf].children) == self.max_leaf:
            self._split(leaf)
            leaf = self._route(row)
        self.nodes[leaf].children.append(label)
        self._attach(leaf, len(self.nodes[leaf].children) - 1, label)
        self._count_labels(leaf, 1)

    def _route(self, row: Row) -> int:
        v = self.root
        while not self.nodes[v].is_leaf:
            scores = self.nodes[v].scores(row)
            v = self.nodes[v].children[scores.index(max(scores))]
        return v

    def _attach(self, v: int, lane: int, child: int) -> None:
        self.nodes[v].children[lane] = child
        if self.nodes[v].is_leaf:
            self.places[child] = (v, lane)
        else:
            self.nodes[child].parent, self.nodes[child].lane = v, lane

    def _count_labels(self, v: int, change: int) -> None:
        while v >= 0:
            self.nodes[v].n_labels += change
            v = self.nodes[v].parent

    def _split(self, v: int) -> None:
        """A full node becomes two; if its parent is full, that one first."""
        if v == self.root:
            self.root = len(self.nodes)
            self.nodes.append(Node(is_leaf=False, children=[v], n_labels=self.nodes[v].n_labels))
            self._attach(self.root, 0, v)
        if len(self.nodes[self.nodes[v].parent].children) == self.arity:
            self._split(self.nodes[v].parent)
        parent, w = self.nodes[v].parent, len(self.nodes)
        self.nodes.append(Node(is_leaf=self.nodes[v].is_leaf))
        self.nodes[parent].children.append(w)
        self._attach(parent, len(self.nodes[parent].children) - 1, w)
        self._deal([v, w], 2)

    def _regroup_where_due(self, visits: Iterable[int]) -> None:
        if self._labels_a_row() > ONE_LABEL:
            return
        for v in visits:
            o = self.nodes[v]
            above_leaves = not o.is_leaf and self.nodes[o.children[0]].is_leaf
            if above_leaves and o.n_rows // o.n_labels >= o.regroup_at:
                o.regroup_at *= REGROUP_FACTOR
                self._deal(list(o.children), len(o.children))

    def _deal(self, siblings: list[int], n_to: int) -> None:
        """Deal the children of siblings out to the first `n_to` of them anew."""
        profiles = [profile for v in siblings for profile in self.nodes[v].profiles()]
        sources = [(v, lane) for v in siblings for lane in range(len(self.nodes[v].children))]
        parts = deal_out(profiles, n_to, self.random)
        made = [self._gather([sources[i] for i in part]) for part in parts]
        heirs: dict[int, list[int]] = {f: [] for v in siblings for f in self.nodes[v].features()}
        for number, node in enumerate(made):
            for feature in node.features():
                heirs[feature].append(number)
        parent, lanes = self.nodes[siblings[0]].parent, [self.nodes[v].lane for v in siblings]
        shares = [
            [sum(sources[i][0] == v for i in part) / len(part) for v in siblings] if part else []
            for part in parts
        ]
        shares += [[0.0] * len(siblings)] * (len(siblings) - n_to)
        n_rows = sum(self.nodes[v].n_rows for v in siblings)
        regroup_at = min(self.nodes[v].regroup_at for v in siblings if self.nodes[v].children)
        for v, node in zip(siblings[:n_to], made, strict=True):
            node.n_rows, node.regroup_at = n_rows * len(node.children) // len(sources), regroup_at
            self._put(v, node)
        self._mix_lanes(self.nodes[parent], lanes, shares, heirs)
        for lane in lanes[n_to:]:
            self.nodes[parent].reset(lane)
        for _ in range(REHEARSALS):
            for k in range(max(map(len, parts))):
                for lane, part in zip(lanes, parts, strict=False):
                    if k < len(part) and profiles[part[k]]:
                        self.nodes[parent].learn(
                            profiles[part[k]], {lane}, self._step(parent), 1.0, self.decay
                        )

    def _gather(self, sources: list[tuple[int, int]]) -> Node:
        """A node of the given children, with those of their weights that say something."""
        made = Node(is_leaf=self.nodes[sources[0][0]].is_leaf)
        kept: dict[int, dict[int, Weight]] = {}
        for lane, (v, from_lane) in enumerate(sources):
            old = self.nodes[v]
            made.children.append(old.children[from_lane])
            bias = old.constant(from_lane)
            made.bias[lane] = Weight(bias.value, bias.square)
            for feature, weight in old.lane_weights(from_lane).items():
                if abs(weight.value) > NEGLIGIBLE_WEIGHT:
                    kept.setdefault(feature, {})[lane] = Weight(weight.value, weight.square)
        for feature, by_lane in kept.items():
            if len(by_lane) == 1:
                made.lone[feature] = next(iter(by_lane.items()))
                continue
            for lane, weight in by_lane.items():
                made.line(lane, feature)[lane % LANES] = weight
        return made

    def _put(self, v: int, made: Node) -> None:
        made.parent, made.lane = self.nodes[v].parent, self.nodes[v].lane
        self.nodes[v] = made
        for lane, child in enumerate(made.children):
            self._attach(v, lane, child)
            made.n_labels += 1 if made.is_leaf else self.nodes[child].n_labels

    @staticmethod
    def _mix_lanes(
        node: Node, lanes: list[int], shares: list[list[float]], heirs: Mapping[int, list[int]]
    ) -> None:
        """Lane i becomes the mixture shares[i] of all the lanes, in what it knows of some features.

        A lone weight goes to the one lane that is the feature's heir.
        """
        banks = {lane // LANES for lane in lanes}
        for feature, numbers in heirs.items():
            owner, alone = node.lone.get(feature, (-1, Weight()))
            if owner >= 0 and (owner not in lanes or not numbers):
                continue
            if owner >= 0 and len(numbers) == 1:
                node.lone[feature] = (lanes[numbers[0]], alone)
                continue
            if owner >= 0:
                node.line(owner, feature)
            known = {bank for bank in banks if feature in node.lines.get(bank, {})}
            if not known:
                continue
            old = [
                node.line(lane, feature)[lane % LANES] if lane // LANES in known else Weight()
                for lane in lanes
            ]
            mixed = _mixtures(old, shares)
            known |= {
                lane // LANES
                for lane, weight in zip(lanes, mixed, strict=True)
                if abs(weight.value) > NEGLIGIBLE_WEIGHT
            }
            for lane, weight in zip(lanes, mixed, strict=True):
                if lane // LANES in known:
                    node.line(lane, feature)[lane % LANES] = weight
        biases = [node.constant(lane) for lane in lanes]
        node.bias.update(zip(lanes, _mixtures(biases, shares), strict=True))

    def remove(self, label: int) -> None:
        """Withdraw a label."""
        if label not in self.places:
            return
        leaf, lane = self.places[label]
        self._remove_lane(leaf, lane)
        del self.places[label]
        self.counts[label] = 0
        self._count_labels(leaf, -1)
        self._mend(leaf)

    def _remove_lane(self, v: int, lane: int) -> None:
        """The last child gets the lane of the one taken out."""
        node, last = self.nodes[v], len(self.nodes[v].children) - 1
        if lane != last:
            self._move_lane(node, last, lane)
            self._attach(v, lane, node.children[last])
        node.reset(last)
        node.children.pop()

    @staticmethod
    def _move_lane(node: Node, last: int, lane: int) -> None:
        node.reset(lane)
        for feature, weight in node.lane_weights(last).items():
            if feature in node.lone:
                node.lone[feature] = (lane, weight)
            elif feature in node.lines.get(lane // LANES, {}) or abs(weight.value) > NEGLIGIBLE_WEIGHT:
                node.line(lane, feature)[lane % LANES] = Weight(weight.value, weight.square)
        bias = node.constant(last)
        node.bias[lane] = Weight(bias.value, bias.square)

    def _mend(self, v: int) -> None:
        """Restore that a node is at least half full."""
        node = self.nodes[v]
        if v == self.root:
            if not node.is_leaf and len(node.children) == 1:
                self.root = node.children[0]
                self.nodes[self.root].parent = self.nodes[self.root].lane = -1
                node.children = []
                self._drop_node(v)
            return
        if 2 * len(node.children) >= self._most(v):
            return
        w = self._nearest_sibling(v)
        if len(node.children) + len(self.nodes[w].children) > self._most(v):
            self._deal([v, w], 2)
        else:
            self._join(v, w)

    def _join(self, v: int, w: int) -> None:
        parent = self.nodes[v].parent
        self._deal([v, w], 1)
        self._remove_lane(parent, self.nodes[w].lane)
        self.nodes[w].children, self.nodes[w].parent = [], -1
        last = len(self.nodes) - 1
        self._drop_node(w)
        self._mend(w if parent == last else parent)

    def _drop_node(self, v: int) -> None:
        """Take a node out; the last of them gets its number."""
        moved = self.nodes.pop()
        last = len(self.nodes)
        if v == last:
            return
        self.nodes[v] = moved
        if moved.parent >= 0:
            self._attach(moved.parent, moved.lane, v)
        for lane, child in enumerate(moved.children):
            self._attach(v, lane, child)
        if self.root == last:
            self.root = v

    def _nearest_sibling(self, v: int) -> int:
        """The sibling whose regressor looks for the same features."""
        parent = self.nodes[self.nodes[v].parent]
        profiles, own = parent.profiles(), self.nodes[v].lane
        others = [lane for lane in range(len(profiles)) if lane != own]
        return parent.children[max(others, key=lambda lane: (likeness(profiles[own], profiles[lane]), -lane))]

    def log_probability(self, row: Row, label: int) -> float:
        """Along the way to a label: inner nodes count by half where rows have one label, more where they have more."""
        share = 1 - ONE_LABEL_DISCOUNT / self._labels_a_row()
        v, lane = self.places[label]
        total, weight = 0.0, 1.0
        while v >= 0:
            total -= weight * max(0.0, 1.0 - self.nodes[v].scores(row)[lane]) ** 2
            v, lane, weight = self.nodes[v].parent, self.nodes[v].lane, share
        return total


def _mixtures(old: list[Weight], shares: list[list[float]]) -> list[Weight]:
    return [
        Weight(
            sum(s * w.value for s, w in zip(row, old, strict=True)),
            sum(s * w.square for s, w in zip(row, old, strict=True)),
        )
        for row in shares
    ]
