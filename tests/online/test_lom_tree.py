"""The core's LOMtree, decision by decision beside the reference, and the paper's statements about it."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.streams import WEIGHTS, Example, seeded_stream, streams
from tests.reference.test_lom_tree import adversary

from sapwood.online.figures import lom_figures
from sapwood.reference.linear import Rule
from sapwood.reference.lom_tree import LOMTree
from sapwood.reference.objective import SplitQuality, lemma_1_bound
from sapwood.reference.random import SplitMix64
from sapwood.reference.stream import learn_passes

from .core_trees import dense_stream, events, learn, lom_tree, rows_of

RULES = [
    Rule(loss="squared", method="adagrad", step=0.5),
    Rule(loss="squared", method="sgd", step=0.5),
    Rule(loss="logistic", method="adagrad", step=1.0, initial=0.1),
    Rule(loss="logistic", method="adagrad", step=1.0, tolerance=0.3),
    Rule(loss="absolute", method="sgd", step=0.25),
]
rules = st.sampled_from(RULES)
limits = st.one_of(st.just(-1), st.integers(0, 6))
few = settings(max_examples=30, deadline=None)


def both(stream, rule, dense, **kwargs):
    """The reference and the core after the same stream."""
    T = kwargs.get("max_internal", -1)
    reference = LOMTree(
        max_internal=None if T < 0 else T,
        internal_per_label=kwargs.get("internal_per_label", 1),
        swap_resistance=kwargs.get("swap_resistance", 4.0),
        rule=replace(rule, lanes=16 if dense else 1),
        trace=True,
    )
    for x, y, weight in dense_stream(stream) if dense else stream:
        reference.learn(x, y, weight)
    core = lom_tree(rule, dense, **kwargs)
    learn(core, stream, dense)
    return reference, core


def compare(reference, core, stream, dense):
    """Every decision, every number, every answer."""
    assert events(core) == reference.trace.events
    state = core.state()
    for name, expected in {
        "parent": [v.parent for v in reference.nodes],
        "left": [v.left for v in reference.nodes],
        "right": [v.right for v in reference.nodes],
        "recycles": [v.recycles for v in reference.nodes],
        "C": [v.C for v in reference.nodes],
        "floor": [v.floor for v in reference.nodes],
        "total": [v.l.total for v in reference.nodes],
        "m_sum": [v.m_sum for v in reference.nodes],
        "n_sum": [v.n_sum for v in reference.nodes],
        "labels": [y for v in reference.nodes for y in sorted(v.l.counts)],
        "l": [v.l[y] for v in reference.nodes for y in sorted(v.l.counts)],
        "n": [v.n.get(y, 0.0) for v in reference.nodes for y in sorted(v.l.counts)],
        "m": [v.m.get(y, 0.0) for v in reference.nodes for y in sorted(v.l.counts)],
        "sent_right": [v.sent_right.get(y, 0.0) for v in reference.nodes for y in sorted(v.l.counts)],
    }.items():
        assert state[name].tolist() == expected, name
    if not reference.labels:
        return
    rows = rows_of(stream, dense)
    best, _ = core.top(rows, k=1, n_threads=1)
    for i, example in enumerate(dense_stream(stream) if dense else stream):
        told = reference.explain(example.x)
        nodes, margins, children, leaf = core.path(rows, row=i)
        assert [(s.node, s.margins[0], s.child) for s in told.steps] == list(
            zip(nodes, margins, children, strict=True)
        )
        labels, shares = core.ranking(leaf, top=MANY)
        assert leaf == told.node
        assert list(zip(labels.tolist(), shares.tolist(), strict=True)) == told.ranking
        assert best[i, 0] == told.label


MANY = 100


@few
@given(streams(WEIGHTS), rules, limits, st.integers(1, 3), st.sampled_from([1.0, 2.0, 4.0]), st.booleans())
def test_agrees_with_the_reference(stream, rule, T, per_label, resistance, dense):
    reference, core = both(
        stream, rule, dense, max_internal=T, internal_per_label=per_label, swap_resistance=resistance
    )
    compare(reference, core, stream, dense)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("T", [-1, 3, 40])
def test_agrees_on_streams_that_swap(T, dense):
    stream = [Example(x, y, w) for x, y, w in adversary(60)]
    stream = [Example(x, y if y < 100 else y - 80, w) for x, y, w in stream]
    reference, core = both(stream, RULES[0], dense, max_internal=T)
    assert T == 40 or any(event.kind == "swap" for event in events(core))
    compare(reference, core, stream, dense)


@pytest.mark.parametrize("dense", [False, True])
def test_agrees_on_a_long_stream(dense):
    """Enough nodes for many banks, and banks that are halved."""
    stream = seeded_stream(3, 900, 90)
    reference, core = both(stream, RULES[0], dense, internal_per_label=3)
    assert len(reference.nodes) > 200
    compare(reference, core, stream, dense)


@few
@given(streams(WEIGHTS), rules, st.booleans(), st.lists(st.integers(0, 160), max_size=4))
def test_chunks_files_and_predictions_between_do_not_matter(stream, rule, dense, cuts):
    whole = lom_tree(rule, dense)
    learn(whole, stream, dense, predict_first=True)
    bounds = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    parts = lom_tree(rule, dense)
    for start, end in pairwise(bounds):
        learn(parts, stream[start:end], dense, predict_first=True)
        again = lom_tree(rule, dense)
        again.restore(parts.state(), n_labels=MANY)
        parts = again
    assert whole.progressive() == parts.progressive()
    for name, array in whole.state().items():
        assert array.tobytes() == parts.state()[name].tobytes(), name


@few
@given(streams(WEIGHTS), st.integers(1, 3), st.integers(0, 100))
def test_passes_and_shuffles_agree(stream, passes, seed):
    reference, core = LOMTree(trace=True), lom_tree(Rule(loss="squared"), False)
    rows, labels, weights = (list(part) for part in zip(*stream, strict=True))
    learn_passes(reference, rows, labels, weights, passes=passes, shuffle=SplitMix64(seed))
    learn(core, stream, False, passes=passes, shuffle=seed)
    assert events(core) == reference.trace.events


def leaf_counts_below(state, v):
    if state["left"][v] < 0:
        return [state["C"][v]]
    return leaf_counts_below(state, state["left"][v]) + leaf_counts_below(state, state["right"][v])


@few
@given(streams(WEIGHTS), rules, limits, st.sampled_from([1.0, 4.0]))
def test_structure_and_swaps(stream, rule, T, resistance):
    """C_v is the smallest leaf count below v, no node is lost, inequality (2) held at each swap."""
    core = lom_tree(rule, False, max_internal=T, swap_resistance=resistance)
    for start in range(0, len(stream), 20):
        learn(core, stream[start : start + 20], False)
        state = core.state()
        for v in range(len(state["left"])):
            assert state["C"][v] == min(leaf_counts_below(state, v))
        assert len(leaf_counts_below(state, 0)) == (state["left"] < 0).sum()
    for event in events(core):
        if event.kind == "swap":
            c_j, heaviest, c_s, c_r = event.numbers
            assert c_j - heaviest > resistance * (c_s + 1.0)
            assert c_s >= c_r
            assert event.nodes[3] != event.nodes[2]


@few
@given(st.integers(0, 10**6), st.integers(2, 600), st.integers(2, 12), limits, st.sampled_from([4.0, 5.0]))
def test_recycling_bound(seed, n, labels, T, resistance):
    core = lom_tree(RULES[0], False, max_internal=T, swap_resistance=resistance)
    learn(core, seeded_stream(seed, n, labels), False)
    assert core.state()["recycles"].max() <= math.log2(n)


@few
@given(streams())
def test_weight_two_counts_twice(stream):
    once = lom_tree(Rule("squared", "sgd", 0.25), False, max_internal=50)
    twice = lom_tree(Rule("squared", "sgd", 0.125), False, max_internal=50)
    learn(once, [Example(x, y, 1.0) for x, y, _ in stream], False)
    learn(twice, [Example(x, y, 2.0) for x, y, _ in stream], False)
    assert events(once) == events(twice)
    a, b = once.state(), twice.state()
    for name in ("l", "n", "m", "sent_right", "total", "n_sum", "m_sum"):
        np.testing.assert_array_equal(2 * a[name], b[name])


@few
@given(streams(WEIGHTS), rules, limits)
def test_figures_agree_and_keep_to_lemma_1(stream, rule, T):
    reference, core = both(stream, rule, False, max_internal=T)
    figures = lom_figures(core.tree())
    for v in reference.nodes:
        assert figures["entropy"][v.number] == pytest.approx(v.l.entropy(), abs=1e-9)
        assert figures["majority"][v.number] == (v.l.top(1) or [-1])[0]
        quality = None if v.leaf else reference.quality(v.number)
        found = SplitQuality(*(float(figures[name][v.number]) for name in ("balance", "purity", "objective")))
        if quality is None:
            assert all(map(math.isnan, found))
        else:
            assert found == pytest.approx(quality, abs=1e-9)
            assert -1e-12 <= found.objective <= 1 + 1e-12
            assert found.purity <= lemma_1_bound(found) + 1e-12
