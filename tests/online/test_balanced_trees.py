"""The core's random tree and filter tree beside the reference."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.streams import WEIGHTS, seeded_stream, streams

from sapwood.reference.filter_tree import FilterTree
from sapwood.reference.linear import Rule
from sapwood.reference.random_tree import RandomTree

from .core_trees import balanced_tree, dense_stream, events, learn, rows_of

MANY = 1000
few = settings(max_examples=30, deadline=None)
rules = st.sampled_from(
    [Rule(), Rule(tolerance=0.2), Rule("squared", "sgd", 0.5), Rule("absolute", "adagrad", 0.3)]
)


def compare(stream, rule, dense, is_filter, seed):
    own = replace(rule, lanes=16 if dense else 1)
    reference = (FilterTree if is_filter else RandomTree)(rule=own, seed=seed, trace=True)
    examples = dense_stream(stream) if dense else stream
    for x, y, weight in examples:
        reference.learn(x, y, weight)
    core = balanced_tree(rule, dense, is_filter=is_filter, seed=seed)
    learn(core, stream, dense)
    assert events(core) == reference.trace.events
    n_labels = len(reference.tree.leaf_of)
    assert core.n_labels == n_labels
    if n_labels == 0:
        return
    rows = rows_of(stream, dense)
    labels, scores = core.top(rows, k=n_labels, n_threads=1)
    best, _ = core.top(rows, k=1, n_threads=1)
    for i, example in enumerate(examples[:40]):
        told = reference.explain(example.x)
        nodes, margins, children, leaf = core.path(rows, row=i)
        assert [(s.node, s.margins[0], s.child) for s in told.steps] == list(
            zip(nodes, margins, children, strict=True)
        )
        assert leaf == told.node
        assert labels[i].tolist() == [label for label, _ in told.ranking]
        np.testing.assert_allclose(
            scores[i], np.exp([score for _, score in told.ranking]), rtol=1e-6, atol=1e-30
        )
        assert best[i, 0] == told.label


@few
@given(streams(WEIGHTS), rules, st.booleans(), st.booleans(), st.integers(0, 50))
def test_agrees_with_the_reference(stream, rule, dense, is_filter, seed):
    compare(stream, rule, dense, is_filter, seed)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("is_filter", [False, True])
def test_agrees_on_a_long_stream(dense, is_filter):
    compare(seeded_stream(3, 600, 90), Rule(), dense, is_filter, seed=1)


@few
@given(streams(WEIGHTS), rules, st.booleans(), st.booleans(), st.lists(st.integers(0, 160), max_size=4))
def test_chunks_and_files_between_do_not_matter(stream, rule, dense, is_filter, cuts):
    def new():
        return balanced_tree(rule, dense, is_filter=is_filter, seed=5)

    whole = new()
    learn(whole, stream, dense, predict_first=True)
    parts = new()
    for start, end in pairwise(sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})):
        learn(parts, stream[start:end], dense, predict_first=True)
        again = new()
        again.restore(parts.state(), n_labels=MANY)
        parts = again
    assert whole.progressive() == parts.progressive()
    for name, array in whole.state().items():
        assert array.tobytes() == parts.state()[name].tobytes(), name


@few
@given(streams(WEIGHTS), st.booleans())
def test_figures_add_up(stream, is_filter):
    """A router of a random tree trains on all that pass; one of a filter tree on what won below it."""
    core = balanced_tree(Rule(), False, is_filter=is_filter, seed=0)
    learn(core, stream, False)
    state = core.state()
    for v in range(len(state["left"])):
        assert 0 <= state["sent_right"][v] <= state["examples"][v]
        assert 0 <= state["agreed"][v] <= state["examples"][v]
        for child in (state["left"][v], state["right"][v]):
            if child >= 0 and state["left"][child] >= 0:
                assert state["examples"][child] <= state["examples"][v] or is_filter
