"""Each method learns a small separable problem of 30 labels, where guessing errs 97 times in 100."""

from collections.abc import Callable

import pytest

from sapwood.reference.filter_tree import FilterTree
from sapwood.reference.linear import Loss, Rule
from sapwood.reference.lom_tree import LOMTree
from sapwood.reference.random import SplitMix64
from sapwood.reference.random_tree import RandomTree
from sapwood.reference.recall_tree import RecallTree
from sapwood.reference.stream import learn_passes

from .streams import dense_problem

_METHODS: dict[str, tuple[Callable[[], LOMTree | RecallTree | RandomTree], float]] = {
    "recall": (lambda: RecallTree(max_candidates=5), 0.25),
    "recall, few candidates": (lambda: RecallTree(max_candidates=2, bound=0.1, router_weight="total"), 0.5),
    "recall, unweighted": (lambda: RecallTree(max_candidates=5, router_weight="none"), 0.25),
    "recall, crossed leaf": (
        lambda: RecallTree(max_candidates=5, path_features="leaf", cross_path=True),
        0.25,
    ),
    "recall, randomized": (
        lambda: RecallTree(max_candidates=5, bound=0.1, randomized_routing=True, router_weight="total"),
        0.4,
    ),
    "recall, six children": (lambda: RecallTree(max_candidates=5, bound=0.1, arity=6), 0.25),
    "lom": (LOMTree, 0.45),
    "lom, more nodes": (lambda: LOMTree(internal_per_label=4), 0.35),
    "random": (RandomTree, 0.65),
    "filter": (FilterTree, 0.65),
}


@pytest.mark.parametrize("name", _METHODS)
def test_error_is_far_below_chance(name: str) -> None:
    make, limit = _METHODS[name]
    train, test = dense_problem(labels=30, learn=600, test=150)
    model = make()
    learn_passes(model, [e.x for e in train], [e.y for e in train], passes=2, shuffle=SplitMix64(0))
    assert sum(model.predict(e.x) != e.y for e in test) / len(test) < limit


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute"])
def test_every_loss_trains_a_lom_tree(loss: Loss) -> None:
    train, test = dense_problem(labels=30, learn=600, test=150)
    model = LOMTree(rule=Rule(loss=loss))
    learn_passes(model, [e.x for e in train], [e.y for e in train], passes=2)
    assert sum(model.predict(e.x) != e.y for e in test) / len(test) < 0.6


def test_passes_are_the_loop_written_out() -> None:
    train, _ = dense_problem(labels=5, learn=40, test=0)
    rows, labels = [e.x for e in train], [e.y for e in train]
    looped, by_hand = RecallTree(trace=True), RecallTree(trace=True)
    learn_passes(looped, rows, labels, [2.0] * 40, passes=2, shuffle=SplitMix64(3))
    source = SplitMix64(3)
    for _ in range(2):
        for i in source.permutation(40):
            by_hand.learn(rows[i], labels[i], 2.0)
    assert looped.trace.events == by_hand.trace.events
