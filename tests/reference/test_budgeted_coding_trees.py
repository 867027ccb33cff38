"""Section 6: the powerset tree and the annotation tree."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood.reference.annotation_tree import AnnotationTree, balanced_question, holds
from sapwood.reference.budgeted import BudgetedParameters, Solution
from sapwood.reference.label_sets import as_indicator, as_label_sets, entropy
from sapwood.reference.powerset_tree import PowersetTree, code_lengths, huffman

QUICK = BudgetedParameters(2, max_planes=1, tol=0.1)


class Unlearned(BudgetedParameters):
    """No classifier at the nodes: the shape of either tree depends on the label sets alone."""

    def solve(self, X, y, train):
        return Solution(np.empty(0, dtype=np.intp), np.empty((0, 1)), np.zeros(1), [], np.empty(0), [], [], 0)


SHAPE = Unlearned(1)
label_sets = st.lists(
    st.frozensets(st.integers(0, 5), max_size=4).map(lambda s: tuple(sorted(s))), min_size=1, max_size=25
)
# Figures 2 and 3: labels a, b, c, e are 0, 1, 2, 3.
FIGURE = [(0, 1)] * 3 + [(0, 2)] + [(3,)] * 3 + [(2,)]


def separable(sets, seed=0):
    """One column a label, and noise: every question of either tree can be answered from it."""
    width = max((max(s, default=0) for s in sets), default=0) + 1
    X = np.zeros((len(sets), width + 2))
    X[:, width:] = np.random.default_rng(seed).normal(size=(len(sets), 2))
    for row, labels in enumerate(sets):
        X[row, list(labels)] = 1.0
    return X


@functools.cache
def shortest(frequencies):
    """The least sum of frequency times code length over *all* binary trees."""
    if len(frequencies) == 1:
        return 0
    first, rest = frequencies[0], frequencies[1:]
    best = None
    for size in range(len(rest)):
        for chosen in itertools.combinations(range(len(rest)), size):
            left = (first, *(rest[k] for k in chosen))
            right = tuple(rest[k] for k in range(len(rest)) if k not in chosen)
            cost = shortest(tuple(sorted(left))) + shortest(tuple(sorted(right)))
            best = cost if best is None else min(best, cost)
    return sum(frequencies) + best


class TestHuffman:
    @settings(deadline=None, max_examples=100)
    @given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
    def test_no_binary_tree_asks_fewer_questions(self, frequencies):
        lengths = code_lengths(len(frequencies), huffman(frequencies))
        assert np.dot(lengths, frequencies) == shortest(tuple(sorted(frequencies)))

    @given(st.lists(st.integers(1, 10**6), min_size=1, max_size=200))
    def test_mean_is_within_one_of_the_entropy(self, frequencies):
        lengths = code_lengths(len(frequencies), huffman(frequencies))
        mean = np.dot(lengths, frequencies) / sum(frequencies)
        assert entropy(frequencies) - 1e-9 <= mean < entropy(frequencies) + 1
        assert sum(2.0 ** -np.array(lengths)) == 1.0

    def test_a_long_chain_needs_no_recursion(self):
        frequencies = [2**k for k in range(2000)]
        assert max(code_lengths(2000, huffman(frequencies))) == 1999


class TestPowersetTree:
    def test_figure_2(self):
        tree = PowersetTree(QUICK).fit(separable(FIGURE), FIGURE)
        assert tree.sets_ == [(0, 1), (0, 2), (2,), (3,)]
        assert [(m.positive, m.negative) for m in tree.merges_] == [(1, 2), (4, 0), (3, 5)]
        assert tree.mean_decisions_ == pytest.approx((3 * 2 + 3 * 1 + 2 * 3) / 8)
        assert tree.predict(separable(FIGURE)) == FIGURE

    @settings(deadline=None, max_examples=100)
    @given(label_sets)
    def test_mean_decisions_on_the_training_set(self, sets):
        tree = PowersetTree(SHAPE).fit(separable(sets), sets)
        assert tree.entropy_ - 1e-9 <= tree.mean_decisions_ < tree.entropy_ + 1
        assert len(tree.merges_) == len(set(sets)) - 1
        assert set(tree.predict(separable(sets, seed=1))) <= set(sets)

    def test_learns_what_can_be_learned(self):
        rng = np.random.default_rng(0)
        sets = [FIGURE[k] for k in rng.integers(0, 8, 200)]
        tree = PowersetTree(BudgetedParameters(3, max_planes=2)).fit(separable(sets), sets)
        assert tree.predict(separable(sets, seed=1)) == sets

    def test_csr_and_permuted_columns_agree(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(60, 9))
        sets = [tuple(np.flatnonzero(row > 0.8)) for row in X[:, :4]]
        order = rng.permutation(9)
        parameters = BudgetedParameters(2, max_planes=2)
        answer = PowersetTree(parameters).fit(X, sets).predict(X)
        assert PowersetTree(parameters).fit(sp.csr_matrix(X), sets).predict(sp.csr_matrix(X)) == answer
        assert PowersetTree(parameters).fit(X[:, order], sets).predict(X[:, order]) == answer


def true_leaf(tree, labels):
    """Follow the questions by the true answers."""
    index, decisions = 0, 0
    while tree.nodes_[index].bac is not None:
        node = tree.nodes_[index]
        yes = any((label in labels) == carries for label, carries in node.group)
        index, decisions = (node.yes if yes else node.no), decisions + 1
    return index, decisions


class TestAnnotationTree:
    def test_figure_3(self):
        tree = AnnotationTree(QUICK).fit(separable(FIGURE), FIGURE)
        root = tree.nodes_[0]
        assert root.group == ((0, True),)
        assert tree.nodes_[root.yes].group == ((1, True),)
        # Among c (1 of 4) and e (3 of 4) the paper asks for e.
        assert tree.nodes_[root.no].group == ((3, True),)
        assert tree.mean_decisions_ == 2.0
        assert tree.predict(separable(FIGURE)) == FIGURE

    @settings(deadline=None, max_examples=100)
    @given(label_sets, st.sampled_from(["frequent", "balanced"]))
    def test_leaves_partition_the_label_sets_seen(self, sets, rule):
        tree = AnnotationTree(SHAPE, rule=rule).fit(separable(sets), sets)
        leaves = [node for node in tree.nodes_ if node.bac is None]
        assert sorted(leaf.labels for leaf in leaves) == sorted(set(sets))
        assert all(list(leaf.sets) == [leaf.labels] for leaf in leaves)
        assert sum(leaf.n_examples for leaf in leaves) == len(sets)
        walks = [true_leaf(tree, labels) for labels in sets]
        assert [tree.nodes_[leaf].labels for leaf, _ in walks] == sets
        assert np.mean([decisions for _, decisions in walks]) == pytest.approx(tree.mean_decisions_)
        assert tree.mean_decisions_ >= tree.entropy_ - 1e-9  # Shannon; theorem 13's upper bound fails

    @settings(deadline=None, max_examples=100)
    @given(label_sets)
    def test_balanced_question_leaves_no_child_with_more_than_three_quarters(self, sets):
        indicator = as_indicator(sets)
        frequency = np.bincount(indicator.indices, minlength=indicator.shape[1])
        working = np.flatnonzero((frequency > 0) & (frequency < len(sets)))
        if not len(working):
            return
        group = balanced_question(indicator, frequency, working)
        yes = holds(indicator, group)
        assert 0 < yes.sum() < len(sets)
        for side in (yes, ~yes):
            rest = {labels for labels, here in zip(sets, side, strict=True) if here}
            assert len(rest) == 1 or 4 * side.sum() <= 3 * len(sets)

    def test_frequent_rule_makes_a_chain_of_equally_frequent_labels_and_the_balanced_one_does_not(self):
        """The erratum to theorem 13: q / 2 questions where H is log2 q."""
        q = 64
        sets = [(k,) for k in range(q)]
        X = separable(sets)
        chain = AnnotationTree(SHAPE).fit(X, sets)
        balanced = AnnotationTree(SHAPE, rule="balanced").fit(X, sets)
        assert chain.entropy_ == balanced.entropy_ == 6.0
        assert chain.depth_ == q - 1
        assert chain.mean_decisions_ > q / 2
        assert balanced.depth_ == 6
        assert balanced.mean_decisions_ == 6.0

    @pytest.mark.parametrize(
        "sets",
        [
            [tuple(range(k)) for k in range(1, 65)],
            [tuple(j for j in range(64) if j != k) for k in range(64)],
        ],
        ids=["nested", "all but one"],
    )
    def test_balanced_depth_is_logarithmic_where_no_label_is_rare(self, sets):
        tree = AnnotationTree(SHAPE, rule="balanced").fit(separable(sets), sets)
        assert tree.depth_ <= np.log(64) / np.log(4 / 3) + 1
        assert tree.mean_decisions_ <= tree.entropy_ + 1

    def test_a_chain_deeper_than_the_recursion_limit(self):
        sets = [(k,) for k in range(1200)]
        X = sp.identity(1200, format="csr")
        tree = AnnotationTree(SHAPE).fit(X, sets)
        assert tree.depth_ == 1199
        assert len(tree.predict(X)) == 1200

    def test_few_examples_make_a_leaf_with_its_most_frequent_set(self):
        tree = AnnotationTree(SHAPE, min_examples=5).fit(separable(FIGURE), FIGURE)
        leaves = [tree.nodes_[tree.nodes_[0].yes], tree.nodes_[tree.nodes_[0].no]]
        assert [leaf.labels for leaf in leaves] == [(0, 1), (3,)]
        assert sum((leaf.sets for leaf in leaves), start=type(leaves[0].sets)()).total() == len(FIGURE)

    @pytest.mark.parametrize("rule", ["frequent", "balanced"])
    def test_learns_what_can_be_learned(self, rule):
        rng = np.random.default_rng(0)
        sets = [tuple(np.flatnonzero(row)) for row in rng.random((300, 5)) < 0.3]
        tree = AnnotationTree(BudgetedParameters(5), rule=rule).fit(separable(sets), sets)
        right = [a == b for a, b in zip(tree.predict(separable(sets, seed=1)), sets, strict=True)]
        assert np.mean(right) > 0.97

    def test_csr_and_permuted_columns_agree(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(60, 9))
        Y = sp.csr_matrix((X[:, :4] > 0.5).astype(float))
        order = rng.permutation(9)
        parameters = BudgetedParameters(2, max_planes=2)
        answer = AnnotationTree(parameters).fit(X, Y).predict(X)
        assert AnnotationTree(parameters).fit(sp.csr_matrix(X), Y).predict(sp.csr_matrix(X)) == answer
        assert AnnotationTree(parameters).fit(X[:, order], Y).predict(X[:, order]) == answer


def test_label_sets_of_every_kind_of_input():
    sets = [(0, 2), (), (1,)]
    dense = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    stored_zero = sp.csr_matrix((np.array([1.0, 0.0, 1.0, 1.0]), [0, 1, 2, 1], [0, 3, 3, 4]), shape=(3, 3))
    for Y in (sets, [[2, 0, 2], [], {1}], dense, sp.csr_matrix(dense), stored_zero):
        assert as_label_sets(Y) == sets
    assert np.array_equal(as_indicator(sets).toarray(), dense)


def test_entropy():
    assert entropy([1, 1, 2]) == 1.5
    assert entropy([7]) == 0.0


def test_no_examples_and_unknown_rules_are_refused():
    for tree in (PowersetTree(QUICK), AnnotationTree(QUICK)):
        with pytest.raises(ValueError, match="at least one example"):
            tree.fit(np.empty((0, 2)), [])
    with pytest.raises(ValueError, match="'rare'"):
        AnnotationTree(QUICK, rule="rare")
