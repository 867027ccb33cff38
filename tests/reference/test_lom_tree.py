import copy
import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sapwood.reference.linear import Rule
from sapwood.reference.lom_tree import LOMTree, Node
from sapwood.reference.objective import lemma_1_bound

from .streams import WEIGHTS, Example, seeded_stream, streams

_T = st.one_of(st.none(), st.integers(1, 5))
_few = settings(max_examples=40, deadline=None)


class CheckedLOMTree(LOMTree):
    """Compares every orphan with a search of all leaves."""

    def _orphan(self) -> Node | None:
        s = super()._orphan()
        eligible = [v for v in self.nodes if v.leaf and depth(self, v) >= 2]
        assert (s is None) == (not eligible)
        if s is not None:
            assert s in eligible
            assert min(v.C for v in eligible) == s.C
        return s


def depth(tree: LOMTree, v: Node) -> int:
    d = 0
    while v.parent >= 0:
        v, d = tree.nodes[v.parent], d + 1
        assert d <= len(tree.nodes)
    return d


def check_structure(tree: LOMTree) -> None:
    """Every node hangs in the tree once; C_v is the smallest leaf count below v."""
    reached: list[int] = []
    stack = [0]
    while stack:
        v = tree.nodes[stack.pop()]
        reached.append(v.number)
        assert len(reached) <= len(tree.nodes)
        if not v.leaf:
            for child in (v.left, v.right):
                assert tree.nodes[child].parent == v.number
                stack.append(child)
    assert sorted(reached) == list(range(len(tree.nodes)))
    assert sum(not v.leaf for v in tree.nodes) == tree.t <= max(tree.T, 0)
    assert len(tree.nodes) == 2 * tree.t + 1
    for number in reversed(reached):
        v = tree.nodes[number]
        if not v.leaf:
            assert min(tree.nodes[v.left].C, tree.nodes[v.right].C) == v.C
            assert v.floor <= min(tree.nodes[v.left].floor, tree.nodes[v.right].floor)
        assert v.floor <= v.C


def check_swaps(tree: LOMTree) -> None:
    """Inequality (2) held at each swap, for the count of the orphan, which is at least the smallest."""
    for event in tree.trace.events:
        if event.kind == "swap":
            c_j, heaviest, c_s, c_r = event.numbers
            assert c_j - heaviest > tree.R_S * (c_s + 1.0)
            assert c_s >= c_r


def run(tree: LOMTree, stream: list[Example]) -> None:
    for x, y, weight in stream:
        tree.learn(x, y, weight)


@_few
@given(streams(WEIGHTS), _T, st.sampled_from([1.0, 2.0, 4.0]))
def test_structure_and_swaps(stream: list[Example], T: int | None, resistance: float) -> None:
    tree = CheckedLOMTree(max_internal=T, swap_resistance=resistance, trace=True)
    for x, y, weight in stream:
        tree.learn(x, y, weight)
        check_structure(tree)
    check_swaps(tree)


@_few
@given(streams(WEIGHTS), _T)
def test_objective_and_lemma_1(stream: list[Example], T: int | None) -> None:
    tree = LOMTree(max_internal=T)
    run(tree, stream)
    for node in range(len(tree.nodes)):
        quality = tree.quality(node)
        if quality is not None:
            assert -1e-12 <= quality.objective <= 1.0 + 1e-12
            assert quality.purity <= lemma_1_bound(quality) + 1e-12
    assert 0.0 <= tree.entropy() <= math.log(len(tree.labels)) + 1e-12


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 400),
    st.integers(2, 12),
    _T,
    st.integers(1, 3),
    st.sampled_from([4, 5]),
)
def test_recycling_bound(
    seed: int, n: int, labels: int, T: int | None, per_label: int, resistance: float
) -> None:
    tree = LOMTree(max_internal=T, internal_per_label=per_label, swap_resistance=resistance)
    run(tree, seeded_stream(seed, n, labels))
    assert max(v.recycles for v in tree.nodes) <= math.log2(n)


def adversary(rounds: int) -> list[Example]:
    """Waves of mixed labels at a new place, then a new label there: T grows, nodes are recycled."""
    stream: list[Example] = []
    for wave in range(rounds):
        place = [(wave % 7, 3.0), (7 + wave % 5, -2.0)]
        stream += [Example(place, wave % 3 + i % 3, 1.0) for i in range(12)]
        stream += [Example(place, 100 + wave, 1.0)]
    return stream


@pytest.mark.parametrize("T", [None, 3, 6])
def test_recycling_bound_on_shifting_streams(T: int | None) -> None:
    tree = LOMTree(max_internal=T, trace=True)
    stream = adversary(60)
    run(tree, stream)
    check_structure(tree)
    assert any(event.kind == "swap" for event in tree.trace.events)
    assert max(v.recycles for v in tree.nodes) <= math.log2(len(stream))


def test_recycled_nodes_start_from_nothing() -> None:
    swaps = 0

    class Watched(LOMTree):
        def _swap(self, v: Node, s: Node) -> None:
            nonlocal swaps
            s_pa = self.nodes[s.parent]
            super()._swap(v, s)
            for node in (s, s_pa):
                swaps += 1
                assert node.leaf
                assert (node.h.weights, node.h.squares) == ({}, {})
                assert (node.m, node.n, node.sent_right) == ({}, {}, {})
                assert len(node.l) == node.l.total == node.m_sum == node.n_sum == node.C == 0

    run(Watched(max_internal=3), adversary(30))
    assert swaps > 0


def grown_by_hand(left_is_leaf: bool, small: float) -> tuple[LOMTree, Node]:
    """root -> a leaf of count 0 and an internal node over a leaf of count `small` and one that may split."""
    tree = LOMTree(max_internal=2, trace=True)
    root = tree.nodes[0]
    tree._create_children(root)
    leaf, inner = (root.left, root.right) if left_is_leaf else (root.right, root.left)
    tree._create_children(tree.nodes[inner])
    j = tree.nodes[tree.nodes[inner].right]
    tree.nodes[tree.nodes[inner].left].C = small
    tree.nodes[inner].C = small
    assert tree.nodes[leaf].C == root.C == 0.0  # the smallest leaf hangs under the root
    j.C = 20.0
    j.l.add(0, 5.0)
    j.l.add(1, 5.0)
    return tree, j


@pytest.mark.parametrize("left_is_leaf", [True, False])
def test_smallest_leaf_under_the_root_is_not_the_orphan(left_is_leaf: bool) -> None:
    tree, j = grown_by_hand(left_is_leaf, small=2.0)
    assert tree._split(j)  # 20 - 5 > 4 (2 + 1)
    check_structure(tree)
    assert tree.trace.events[-1].numbers == (20.0, 5.0, 2.0, 0.0)
    assert (tree.nodes[j.left].C, tree.nodes[j.right].C) == (10.0, 10.0)


def test_no_swap_when_the_eligible_leaf_fails_inequality_2() -> None:
    tree, j = grown_by_hand(True, small=3.0)  # 20 - 5 > 4 (0 + 1), but not > 4 (3 + 1)
    assert not tree._split(j)
    check_structure(tree)


def test_no_swap_when_every_leaf_hangs_under_the_root() -> None:
    tree = LOMTree(max_internal=1)
    run(tree, seeded_stream(5, 200, 6))
    assert tree.t == 1
    assert all(v.recycles == 0 for v in tree.nodes)
    check_structure(tree)


def test_first_examples_by_hand() -> None:
    tree = LOMTree(max_internal=8, rule=Rule(loss="squared", method="sgd", step=0.5), trace=True)
    for _ in range(3):
        tree.learn([(0, 1.0)], 4)
    assert tree.nodes[0].leaf
    assert tree.nodes[0].C == 3.0
    tree.learn([(1, 1.0)], 9)
    # The second label splits the root (C: 1 and 2) and the same example trains its regressor: E = e = 0, so
    # c = 1; w = 0.5 for column 1 and the constant; the score is 1, so the example goes right and counts.
    root, left, right = tree.nodes
    assert [event[1:] for event in tree.trace.events] == [
        ("split", (0, 1, 2), (), ()),
        ("target", (0,), (), (1.0,)),
        ("route", (0, 2), (), ()),
    ]
    assert (root.E, root.e(9), root.e(4), root.n) == (1.0, 1.0, 0.0, {9: 1.0})
    assert (left.C, right.C, root.C) == (1.0, 3.0, 1.0)
    assert (left.l.counts, right.l.counts) == ({}, {9: 1.0})
    tree.learn([(0, 1.0)], 4)  # E = 1 > e(4) = 0: to the left; the score falls from 0.5 to -1
    assert tree.trace.events[-2:] == [(4, "target", (0,), (), (-1.0,)), (4, "route", (0, 1), (), ())]
    assert root.E == 0.0
    assert (left.C, right.C, root.C) == (2.0, 3.0, 2.0)
    assert tree.predict([(0, 1.0)]) == 4


def test_unreached_leaf_answers_as_its_parent() -> None:
    tree = LOMTree(max_internal=1, rule=Rule(loss="squared", method="sgd", step=0.5))
    for y in (4, 4, 9):
        tree.learn([(y, 1.0)], y)
    assert tree.nodes[1].l.total == 0.0  # everything so far went right
    x = [(9, -5.0)]
    assert tree.explain(x).node == 1
    assert tree.topk(x, 5) == [(4, 2 / 3), (9, 1 / 3)]


@_few
@given(streams())
def test_weight_two_counts_twice(stream: list[Example]) -> None:
    """With half the step the regressors move alike, so every statistic must double exactly."""
    once = LOMTree(max_internal=50, rule=Rule(loss="squared", method="sgd", step=0.25), trace=True)
    twice = LOMTree(max_internal=50, rule=Rule(loss="squared", method="sgd", step=0.125), trace=True)
    for x, y, _ in stream:
        once.learn(x, y, 1.0)
        twice.learn(x, y, 2.0)
    assert once.trace.events == twice.trace.events
    for a, b in zip(once.nodes, twice.nodes, strict=True):
        assert b.l.counts == {label: 2 * c for label, c in a.l.counts.items()}
        assert b.n == {label: 2 * c for label, c in a.n.items()}
        assert b.m == {label: 2 * c for label, c in a.m.items()}
        assert b.sent_right == {label: 2 * c for label, c in a.sent_right.items()}
        assert b.E == a.E
    assert sum(v.C for v in twice.nodes if v.leaf) == 2 * sum(v.C for v in once.nodes if v.leaf)


def test_weight_zero_is_no_example() -> None:
    tree = LOMTree()
    tree.learn([(0, 1.0)], 3, 0.0)
    with pytest.raises(NotFittedError):
        tree.predict([])


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_bad_weights_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        LOMTree().learn([], 0, weight)


def test_small_swap_resistance_is_refused() -> None:
    with pytest.raises(ValueError, match="swap_resistance"):
        LOMTree(swap_resistance=0.5)


@_few
@given(streams(WEIGHTS, longest=60), st.lists(st.integers(0, 60), max_size=4))
def test_chunks_and_predictions_between_them_do_not_matter(stream: list[Example], cuts: list[int]) -> None:
    whole, parts = LOMTree(trace=True), LOMTree(trace=True)
    run(whole, stream)
    bounds = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    for start, end in pairwise(bounds):
        parts = copy.deepcopy(parts)
        run(parts, stream[start:end])
        for x, _, _ in stream[:3]:
            assert parts.predict(x) == parts.topk(x, 1)[0][0]
    assert whole.trace.events == parts.trace.events
    assert [whole.explain(x) for x, _, _ in stream] == [parts.explain(x) for x, _, _ in stream]
