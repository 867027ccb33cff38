"""The random tree and the filter tree, and the balanced tree that both stand on."""

import copy
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sapwood.reference.balanced_tree import BalancedTree
from sapwood.reference.filter_tree import FilterTree
from sapwood.reference.linear import Rule
from sapwood.reference.random import SplitMix64
from sapwood.reference.random_tree import RandomTree

from .streams import WEIGHTS, Example, streams

_few = settings(max_examples=25, deadline=None)
both = pytest.mark.parametrize("kind", [RandomTree, FilterTree])


@given(st.integers(1, 70), st.integers(0, 1000))
def test_balanced_while_it_grows(labels: int, seed: int) -> None:
    tree = BalancedTree(Rule(), SplitMix64(seed))
    for label in range(labels):
        tree.add(label)
    depths = [len(tree.path_to(label)) for label in range(labels)]
    assert max(depths) - min(depths) <= 1
    assert max(depths) == (labels - 1).bit_length()
    assert len({tree.leaf_of[label] for label in range(labels)}) == labels
    assert all(tree.nodes[number].label == label for label, number in tree.leaf_of.items())


def test_growing_never_moves_a_label_to_another_subtree() -> None:
    tree = BalancedTree(Rule(), SplitMix64(1))
    before: dict[int, list[int]] = {}
    for label in range(40):
        tree.add(label)
        for old, path in before.items():
            assert [node.number for node, _ in tree.path_to(old)][: len(path)] == path
        before = {y: [node.number for node, _ in tree.path_to(y)] for y in tree.leaf_of}


def test_places_depend_on_the_seed() -> None:
    def leaves(seed: int) -> list[int]:
        tree = BalancedTree(Rule(), SplitMix64(seed))
        for label in range(16):
            tree.add(label)
        return [node.label for node in tree.nodes]

    assert leaves(1) == leaves(1)
    assert leaves(1) != leaves(2)


@both
@_few
@given(stream=streams(WEIGHTS, longest=60))
def test_answers(kind: type[RandomTree], stream: list[Example]) -> None:
    model = kind()
    for x, y, weight in stream:
        model.learn(x, y, weight)
    seen = {y for _, y, _ in stream}
    for x, _, _ in stream[:10]:
        e = model.explain(x)
        assert {label for label, _ in e.ranking} == seen
        assert model.predict(x) == e.label
        assert model.topk(x, 3) == e.ranking[:3]
        assert e.ranking[0][1] == 0.0
        assert [score for _, score in e.ranking] == sorted((s for _, s in e.ranking), reverse=True)
        margins = {step.node: step.margins[0] for step in e.steps}
        for label, score in e.ranking[1:]:  # the first router it overrules is on the way down
            overruled = [node.number for node, side in model.tree.path_to(label) if node.number in margins]
            assert score <= -abs(margins[overruled[-1]])


@both
@_few
@given(stream=streams(WEIGHTS, longest=40), cut=st.integers(0, 40))
def test_chunks_do_not_matter(kind: type[RandomTree], stream: list[Example], cut: int) -> None:
    whole, parts = kind(trace=True), kind(trace=True)
    for i, (x, y, weight) in enumerate(stream):
        whole.learn(x, y, weight)
        if i == cut:
            parts = copy.deepcopy(parts)
        parts.learn(x, y, weight)
        parts.predict(x)
    assert whole.trace.events == parts.trace.events
    assert [whole.explain(x) for x, _, _ in stream] == [parts.explain(x) for x, _, _ in stream]


@_few
@given(streams(longest=40))
def test_random_tree_trains_the_whole_path(stream: list[Example]) -> None:
    model = RandomTree(trace=True)
    for i, (x, y, _) in enumerate(stream):
        model.learn(x, y)
        targets = [e for e in model.trace.events if e.example == i and e.kind == "target"]
        path = model.tree.path_to(y)
        assert [(e.nodes[0], e.numbers[0]) for e in targets] == [(node.number, side) for node, side in path]


@_few
@given(streams(longest=40))
def test_filter_tree_climbs_until_the_label_loses(stream: list[Example]) -> None:
    model = FilterTree(trace=True)
    for i, (x, y, _) in enumerate(stream):
        model.learn(x, y)
        targets = [e for e in model.trace.events if e.example == i and e.kind == "target"]
        stops = [e for e in model.trace.events if e.example == i and e.kind == "stop"]
        climb = [(node.number, side) for node, side in reversed(model.tree.path_to(y))]
        assert [(e.nodes[0], e.numbers[0]) for e in targets] == climb[: len(targets)]
        if stops:
            assert stops[0].nodes == targets[-1].nodes
        else:
            assert len(targets) == len(climb)
            assert model.predict(x) == y  # it has won every match


@both
def test_weights_reach_the_routers(kind: type[RandomTree]) -> None:
    rule = Rule(loss="squared", method="sgd", step=0.25)
    heavy, twice_the_step = kind(rule=rule), kind(rule=Rule(loss="squared", method="sgd", step=0.5))
    for y in (0, 1, 2, 0, 1):
        heavy.learn([(y, 1.0)], y, 2.0)
        twice_the_step.learn([(y, 1.0)], y)
    assert heavy.explain([(1, 1.0)]) == twice_the_step.explain([(1, 1.0)])


@both
def test_one_label(kind: type[RandomTree]) -> None:
    model = kind()
    model.learn([(0, 1.0)], 5)
    assert model.predict([]) == 5
    assert model.topk([], 3) == [(5, 0.0)]


@both
def test_nothing_learned_nothing_predicted(kind: type[RandomTree]) -> None:
    model = kind()
    model.learn([], 1, 0.0)
    with pytest.raises(NotFittedError):
        model.predict([])
    with pytest.raises(ValueError, match="weight"):
        model.learn([], 1, -math.inf)
