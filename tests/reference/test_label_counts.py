import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.reference.label_counts import LabelCounts
from sapwood.reference.objective import lemma_1_bound, split_quality, tree_entropy

_additions = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from([0.25, 1.0, 2.0, 3.0, 0.1])), min_size=1, max_size=80
)


def filled(additions: list[tuple[int, float]]) -> LabelCounts:
    counts = LabelCounts()
    for label, weight in additions:
        counts.add(label, weight)
    return counts


def entropy_of(counts: dict[int, float]) -> float:
    total = math.fsum(counts.values())
    return -math.fsum(c / total * math.log(c / total) for c in counts.values()) if total else 0.0


@given(_additions)
def test_incremental_entropy_equals_recomputed(additions: list[tuple[int, float]]) -> None:
    counts = filled(additions)
    assert counts.entropy() == pytest.approx(entropy_of(counts.counts), abs=1e-12)


@given(_additions, st.integers(0, 9), st.sampled_from([0.5, 1.0, 2.0]))
def test_cost_is_the_difference_of_the_totals(
    additions: list[tuple[int, float]], label: int, weight: float
) -> None:
    counts = filled(additions)
    before = counts.total * entropy_of(counts.counts)
    cost = counts.cost(label, weight)
    counts.add(label, weight)
    assert cost == pytest.approx(counts.total * entropy_of(counts.counts) - before, abs=1e-9)


@given(_additions)
def test_cost_is_zero_where_nothing_is_mixed(additions: list[tuple[int, float]]) -> None:
    assert filled([(3, w) for _, w in additions]).cost(3, 1.0) == pytest.approx(0.0, abs=1e-12)
    assert LabelCounts().cost(3, 0.25) == 0.0


@given(_additions)
def test_weight_two_counts_twice(additions: list[tuple[int, float]]) -> None:
    once, twice = filled(additions), filled([(label, 2 * weight) for label, weight in additions])
    assert twice.counts == {label: 2 * c for label, c in once.counts.items()}
    assert twice.total == 2 * once.total
    assert twice.ranked() == once.ranked()
    assert twice.entropy() == pytest.approx(once.entropy(), abs=1e-12)


def test_ties_go_to_the_lower_code() -> None:
    counts = filled([(5, 1.0), (2, 1.0), (9, 2.0), (7, 1.0)])
    assert counts.ranked() == [9, 2, 5, 7]
    assert counts.top(2) == [9, 2]
    assert counts.top_mass(2) == 3.0


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.tuples(st.integers(0, 20), st.integers(0, 20)).filter(any),
        min_size=1,
    )
)
def test_lemmas_1_and_2(sides: dict[int, tuple[int, int]]) -> None:
    quality = split_quality(
        {label: float(a + b) for label, (a, b) in sides.items()},
        {label: float(b) for label, (_, b) in sides.items()},
    )
    assert quality is not None
    assert -1e-12 <= quality.objective <= 1.0 + 1e-12
    assert quality.purity <= lemma_1_bound(quality) + 1e-12


def test_lemma_1_needs_the_smaller_side() -> None:
    everything_right = split_quality({0: 4.0}, {0: 4.0})
    assert everything_right is not None
    assert everything_right == (1.0, 0.0, 0.0)
    printed = (2.0 - everything_right.objective) / (4.0 * everything_right.balance) - everything_right.balance
    assert everything_right.purity > printed


def test_pure_and_balanced_split_is_perfect() -> None:
    quality = split_quality({0: 3.0, 1: 3.0}, {1: 3.0})
    assert quality == (0.5, 0.0, 1.0)


def test_nothing_routed_has_no_quality() -> None:
    assert split_quality({}, {}) is None


def test_tree_entropy_weighs_leaves_by_their_examples() -> None:
    mixed, pure = filled([(0, 1.0), (1, 1.0)]), filled([(2, 6.0)])
    assert tree_entropy([mixed, pure, LabelCounts()]) == pytest.approx(0.25 * math.log(2))
