import copy
import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sapwood.reference.label_counts import LabelCounts
from sapwood.reference.linear import CONSTANT, RAW, Rule, features_of
from sapwood.reference.objective import lemma_1_bound
from sapwood.reference.random import SplitMix64
from sapwood.reference.recall_tree import Node, RecallTree, ceil_log
from sapwood.reference.records import Event

from .streams import UNIT, WEIGHTS, Example, seeded_stream, streams

_few = settings(max_examples=25, deadline=None)


@st.composite
def trees(draw: st.DrawFn) -> RecallTree:
    """Any tree with few candidates, so that something happens below the root."""
    return RecallTree(
        max_candidates=draw(st.sampled_from([None, 1, 2, 3])),
        max_depth=draw(st.sampled_from([None, 0, 2, 5])),
        bound=draw(st.sampled_from([0.0, 0.01, 1.0])),
        early_stop=draw(st.booleans()),
        router_weight=draw(st.sampled_from(["mean", "total", "none"])),
        randomized_routing=draw(st.booleans()),
        path_features=draw(st.sampled_from(["none", "path", "leaf"])),
        cross_path=draw(st.booleans()),
        arity=draw(st.sampled_from([2, 2, 3, 16])),
        trace=True,
    )


def run(tree: RecallTree, stream: list[Example]) -> None:
    for x, y, weight in stream:
        tree.learn(x, y, weight)


def entropy(counts: dict[int, float]) -> float:
    total = math.fsum(counts.values())
    return -math.fsum(c / total * math.log(c / total) for c in counts.values()) if total else 0.0


@_few
@given(trees(), streams(WEIGHTS, longest=60))
def test_invariants(tree: RecallTree, stream: list[Example]) -> None:
    run(tree, stream)
    for n in tree.nodes:
        assert n.depth <= tree.depth_limit
        assert n.hist.entropy() == pytest.approx(entropy(n.hist.counts), abs=1e-9)
        if n.hist.total > 0.0:
            assert tree.recall_bound(n) <= tree.recall(n) <= 1.0
        for c in n.children:
            assert c.depth == n.depth + 1
            assert all(c.hist[y] <= n.hist[y] + 1e-9 for y in c.hist.counts)
        quality = tree.quality(n.number)
        if quality is not None:
            assert -1e-12 <= quality.objective <= 1.0 + 1e-12
            assert quality.purity <= lemma_1_bound(quality) + 1e-12
    assert sorted(c.number for n in tree.nodes for c in n.children) == list(range(1, len(tree.nodes)))


@_few
@given(trees(), streams(WEIGHTS, longest=60))
def test_every_count_is_the_weight_that_was_routed_there(tree: RecallTree, stream: list[Example]) -> None:
    run(tree, stream)
    replayed = [LabelCounts() for _ in tree.nodes]
    for _, y, weight in stream:
        replayed[0].add(y, weight)
    for event in tree.trace.events:
        if event.kind == "route":
            replayed[event.nodes[1]].add(stream[event.example].y, stream[event.example].weight)
    for n, counts in zip(tree.nodes, replayed, strict=True):
        assert (n.hist.counts, n.hist.total) == (counts.counts, counts.total)


@_few
@given(trees(), streams(WEIGHTS, longest=60))
def test_explanations(tree: RecallTree, stream: list[Example]) -> None:
    run(tree, stream)
    before = copy.deepcopy(tree.nodes)
    for x, _, _ in stream[:10]:
        e = tree.explain(x)
        n = tree.nodes[e.node]
        assert sorted(label for label, _ in e.ranking) == sorted(n.hist.top(tree.F))
        assert [score for _, score in e.ranking] == sorted((s for _, s in e.ranking), reverse=True)
        assert tree.predict(x) == e.ranking[0][0]
        assert tree.topk(x, 2) == e.ranking[:2]
        for step, after in pairwise(e.steps):
            assert step.child == after.node
        if e.steps:
            assert e.node == (e.steps[-1].child if e.stopped == "leaf" else e.steps[-1].node)
        assert n.leaf == (e.stopped == "leaf")
        if e.stopped == "recall":
            assert tree.recall_bound(n) > tree.recall_bound(tree.nodes[e.steps[-1].child])
        if e.stopped == "empty child":
            assert tree.nodes[e.steps[-1].child].hist.total == 0.0
    assert [n.hist.counts for n in before] == [n.hist.counts for n in tree.nodes]


@_few
@given(trees(), streams(WEIGHTS, longest=40), st.lists(st.integers(0, 40), max_size=4))
def test_chunks_and_predictions_between_them_do_not_matter(
    tree: RecallTree, stream: list[Example], cuts: list[int]
) -> None:
    parts = copy.deepcopy(tree)
    run(tree, stream)
    for i, (x, y, weight) in enumerate(stream):
        if i in cuts:
            parts = copy.deepcopy(parts)
        if i > 0:
            parts.predict(x)
        parts.learn(x, y, weight)
    assert tree.trace.events == parts.trace.events
    assert [tree.explain(x) for x, _, _ in stream] == [parts.explain(x) for x, _, _ in stream]


@_few
@given(streams(UNIT, longest=60), st.sampled_from([2, 4]))
def test_weight_two_counts_twice(stream: list[Example], arity: int) -> None:
    """With twice lambda and half the steps all decisions are the same and every statistic doubles."""

    def tree(factor: float) -> RecallTree:
        rule = Rule(loss="logistic", method="sgd", step=0.5 / factor)
        return RecallTree(
            max_candidates=2,
            bound=0.125 * factor,
            arity=arity,
            router_weight="none",
            router_rule=rule,
            score_rule=rule,
            trace=True,
        )

    once, twice = tree(1.0), tree(2.0)
    run(once, stream)
    run(twice, [Example(x, y, 2.0) for x, y, _ in stream])
    assert once.trace.events == twice.trace.events
    for a, b in zip(once.nodes, twice.nodes, strict=True):
        assert b.hist.counts == {label: 2 * c for label, c in a.hist.counts.items()}
        assert b.hist.total == 2 * a.hist.total
        assert b.hist.entropy() == pytest.approx(a.hist.entropy(), abs=1e-12)
        assert twice.recall_bound(b) == once.recall_bound(a)


@_few
@given(streams(WEIGHTS, longest=40), st.sampled_from(WEIGHTS))
def test_router_learns_algorithm_3(stream: list[Example], weight: float) -> None:
    """The targets and weights against H_left and H_right computed as printed."""
    calls: list[tuple[float, float]] = []
    tree = RecallTree(max_candidates=2, bound=0.01)
    run(tree, stream)
    for n in tree.nodes:
        if n.leaf or n.hist.total == 0.0:
            continue
        for y in range(4):
            left, right = (c.hist.counts for c in n.children)
            total = n.hist.total

            def more(counts: dict[int, float], label: int = y) -> dict[int, float]:
                return {**counts, label: counts.get(label, 0.0) + weight}

            def share(counts: dict[int, float], n_total: float = total) -> float:
                return math.fsum(counts.values()) / n_total

            # weighted by the masses after the example, as the difference of the totals asks
            h_left = share(more(left)) * entropy(more(left)) + share(right) * entropy(right)
            h_right = share(left) * entropy(left) + share(more(right)) * entropy(more(right))
            delta = h_left - h_right
            if abs(delta) < 1e-9:
                continue
            calls.clear()
            n.routers[0].learn = lambda x, target, weight, path=(): calls.append((target, weight))  # type: ignore[method-assign]
            tree._update_router(features_of([]), y, n, weight)
            [(target, importance)] = calls
            assert target == math.copysign(1.0, delta)
            assert importance == pytest.approx(abs(delta), abs=1e-9)


def test_positive_scores_go_right_to_the_purer_child() -> None:
    """The erratum: routing and target must agree, or entropy would grow."""
    rule = Rule(loss="logistic", method="sgd", step=1.0)
    tree = RecallTree(max_candidates=1, max_depth=1, router_weight="none", router_rule=rule, trace=True)
    for _ in range(6):
        tree.learn([(0, 1.0)], 0)
        tree.learn([(1, 1.0)], 1)
    left, right = tree.nodes[0].children
    assert sorted([*left.hist.counts, *right.hist.counts]) == [0, 1]
    assert left.hist.entropy() == right.hist.entropy() == 0.0


@given(st.integers(1, 10**6), st.integers(2, 16))
def test_ceil_log(k: int, base: int) -> None:
    d = ceil_log(k, base)
    assert base**d >= k
    assert d == 0 or base ** (d - 1) < k


def test_limits_follow_the_labels_seen() -> None:
    tree = RecallTree()
    seen: list[tuple[int, int]] = []
    for y in range(9):
        tree.learn([(y, 1.0)], y)
        seen.append((tree.F, tree.depth_limit))
    assert seen == [(1, 0), (4, 0), (8, 0), (8, 0), (12, 0), (12, 0), (12, 0), (12, 0), (16, 0)]
    assert RecallTree(max_candidates=2, arity=2).depth_limit == 0
    assert RecallTree(max_candidates=7, max_depth=3).F == 7


def test_bound_by_hand() -> None:
    """Section 2.1's example: labels seen 2, 50 and 10 times; with F = 2 the recall is 60/62."""
    tree = RecallTree(max_candidates=2, bound=0.5)
    n = Node(0, 0)
    for label, count in ((1, 2.0), (4, 50.0), (3, 10.0)):
        n.hist.add(label, count)
    r = 60 / 62
    assert tree.recall(n) == r
    assert tree.recall_bound(n) == pytest.approx(r - math.sqrt(0.5 * r * (1 - r) / 62) - 0.5 / 62)
    assert tree.recall_bound(Node(1, 1)) == -math.inf


def test_fractional_weights_never_lift_recall_above_one() -> None:
    tree = RecallTree(max_candidates=50)
    for i in range(40):
        tree.learn([], i % 7, 0.1 + 0.01 * i)
    assert all(tree.recall(n) <= 1.0 for n in tree.nodes if n.hist.total > 0.0)


def test_path_features_by_hand() -> None:
    x = features_of([(3, 2.0)])
    n = Node(5, 2)

    def path(kind: str, cross: bool) -> list[tuple[tuple[int, int], float]]:
        tree = RecallTree(path_features=kind, cross_path=cross)  # type: ignore[arg-type]
        return [(feature, float(value)) for feature, value in tree._path(x, [2, 5], n)]

    assert path("none", True) == []
    assert path("path", False) == [((2, CONSTANT), 1.0), ((5, CONSTANT), 1.0)]
    assert path("leaf", False) == [((5, CONSTANT), 1.0)]
    assert path("leaf", True) == [((5, CONSTANT), 1.0), ((5, 3), 2.0)]
    assert path("path", True) == [
        ((2, CONSTANT), 1.0),
        ((2, 3), 2.0),
        ((5, CONSTANT), 1.0),
        ((5, 3), 2.0),
    ]


def test_routers_see_raw_features_only() -> None:
    tree = RecallTree(max_candidates=1, bound=0.0, cross_path=True)
    run(tree, seeded_stream(1, 60, 6))
    for n in tree.nodes:
        for router in n.routers:
            assert {node for node, _ in router.weights} <= {RAW}
    assert any(node != RAW for score in tree.scores.values() for node, _ in score.weights)


def test_regressors_learn_only_if_the_label_is_a_candidate() -> None:
    tree = RecallTree(max_candidates=1, max_depth=0, trace=True)
    tree.learn([(0, 1.0)], 0)
    tree.learn([(0, 1.0)], 0)
    weights = copy.deepcopy(tree.scores[0].weights)
    tree.learn([(1, 1.0)], 1)
    assert tree.scores[0].weights == weights
    assert tree.scores[1].weights == {}
    assert tree.trace.events[-1] == Event(2, "candidates", (0,), (0,), ())


def test_ties_between_scores_go_to_the_heavier_label() -> None:
    tree = RecallTree(max_depth=0, max_candidates=3)
    for y in (2, 1, 1, 0):
        tree.learn([], y)
    for score in tree.scores.values():
        score.reset()
    assert [label for label, _ in tree.topk([], 3)] == [1, 0, 2]


def test_randomized_routing_by_hand() -> None:
    rule = Rule(loss="squared")
    tree = RecallTree(randomized_routing=True, router_rule=rule, seed=11)
    n = Node(0, 0)
    mirror = SplitMix64(11)
    for _ in range(50):
        assert tree._training_route(n, [0.2]) == int(mirror.uniform() >= 0.3)
    assert all(tree._training_route(n, [9.0]) == 1 for _ in range(20))
    wide = RecallTree(randomized_routing=True, router_rule=rule, arity=3, seed=11)
    mirror = SplitMix64(11)
    for _ in range(50):  # probabilities 0, 0.25 and 0.75 of a sum of 1
        assert wide._training_route(n, [-2.0, -0.25, 0.25]) == (1 if mirror.uniform() < 0.25 else 2)
    assert wide._training_route(n, [-2.0, -0.75, -3.0]) == 1  # no lane says yes: the best one


def test_same_seed_same_tree() -> None:
    stream = seeded_stream(4, 80, 8)

    def events(seed: int) -> list[Event]:
        tree = RecallTree(max_candidates=1, bound=0.0, randomized_routing=True, seed=seed, trace=True)
        run(tree, stream)
        return tree.trace.events

    assert events(1) == events(1)
    assert events(1) != events(2)


def test_wide_nodes_use_their_children() -> None:
    tree = RecallTree(arity=4, max_candidates=1, bound=0.0, router_weight="total")
    run(tree, [Example([(y, 1.0)], y, 1.0) for _ in range(12) for y in range(4)])
    assert tree.depth_limit == 1
    assert sum(c.hist.total > 0.0 for c in tree.nodes[0].children) == 4
    assert [tree.predict([(y, 1.0)]) for y in range(4)] == [0, 1, 2, 3]


def test_nothing_learned_nothing_predicted() -> None:
    with pytest.raises(NotFittedError):
        RecallTree().predict([])
    tree = RecallTree()
    tree.learn([], 3, 0.0)
    with pytest.raises(NotFittedError):
        tree.topk([], 1)


def test_bad_parameters_are_refused() -> None:
    for arity in (1, 17):
        with pytest.raises(ValueError, match="arity"):
            RecallTree(arity=arity)
    with pytest.raises(ValueError, match="bound"):
        RecallTree(bound=-1.0)
    with pytest.raises(ValueError, match="weight"):
        RecallTree().learn([], 0, math.nan)
