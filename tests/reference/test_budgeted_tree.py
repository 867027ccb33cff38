"""Section 5: the supervised budgeted tree and its pruning."""

import numpy as np
import pytest
import scipy.sparse as sp

from sapwood.reference.budgeted import BudgetedParameters
from sapwood.reference.budgeted_tree import BudgetedTree, deal_folds, vote


def xor(n=600, noise=10, seed=0, flip=0.0):
    """Section 8.1.1: two informative Gaussian features, uniform noise."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(n, 2)), rng.random((n, noise))])
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < flip, -y, y)


ONE_FEATURE = BudgetedParameters(1, max_planes=1, class_weight="balanced", tol=1e-2)
TWO_FEATURES = BudgetedParameters(2, max_planes=2, tol=1e-2)


def leaves(tree, index=0):
    node = tree.nodes_[index]
    return leaves(tree, node.left) + leaves(tree, node.right) if node.has_children else [node]


def test_grows_until_pure_or_no_longer_split():
    X, y = xor(n=300)
    tree = BudgetedTree(ONE_FEATURE, prune=False).fit(X, y)
    assert np.array_equal(tree.predict(X), y)
    assert sum(leaf.n_examples for leaf in leaves(tree)) == len(y)
    assert all(leaf.bac is None for leaf in leaves(tree))
    for node in tree.nodes_:
        if node.has_children:
            left, right = tree.nodes_[node.left], tree.nodes_[node.right]
            assert left.n_examples + right.n_examples == node.n_examples
            assert min(left.n_examples, right.n_examples) > 0


def test_separates_xor_that_no_plane_separates():
    X, y = xor(n=1500, seed=3)
    test, answer = xor(n=500, seed=4)
    tree = BudgetedTree(ONE_FEATURE).fit(X, y)
    assert np.mean(tree.predict(test) != answer) < 0.08


@pytest.mark.parametrize("parameters", [ONE_FEATURE, TWO_FEATURES])
@pytest.mark.parametrize("seed", range(3))
def test_pruning_never_raises_the_summed_cv_error(parameters, seed):
    X, y = xor(n=300, seed=seed, flip=0.2)
    tree = BudgetedTree(parameters, random_state=seed).fit(X, y)
    full = BudgetedTree(parameters, random_state=seed)
    full._remove_children = lambda: None
    full.fit(X, y)
    assert tree.cv_error_ <= tree.unpruned_cv_error_
    assert len(tree.nodes_) <= len(full.nodes_)
    # no node is left whose children err more than itself
    error = tree._subtree_errors()
    for node in tree.nodes_:
        if node.has_children:
            assert error[node.left] + error[node.right] <= node.own_error


def test_pruning_cuts_back_noise():
    """Labels without any signal: what is grown on them is removed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.choice([-1.0, 1.0], 200)
    whole = BudgetedTree(TWO_FEATURES, prune=False).fit(X, y)
    assert len(BudgetedTree(TWO_FEATURES).fit(X, y).nodes_) < len(whole.nodes_)


def test_cv_error_is_that_of_classifiers_which_have_not_seen_the_example():
    X, y = xor(n=200, seed=1)
    tree = BudgetedTree(TWO_FEATURES, max_depth=1).fit(X, y)
    fold = deal_folds(y, 5, np.random.default_rng(0))
    parameters = TWO_FEATURES
    solution = parameters.solve(X, y, fold[:, None] != np.arange(5))
    held_out = solution.decision(X)[np.arange(len(y)), fold]
    assert tree.nodes_[0].own_error == np.sum((held_out > 0) != (y > 0))


def test_folds_are_stratified():
    y = np.where(np.arange(103) % 3 == 0, 1.0, -1.0)
    fold = deal_folds(y, 5, np.random.default_rng(0))
    for sign in (-1.0, 1.0):
        assert np.ptp(np.bincount(fold[y == sign])) <= 1


def test_vote_counts_signs_and_the_mean_decides_a_tie():
    decisions = np.array([[1.0, 1.0, -9.0], [1.0, -2.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    assert vote(decisions).tolist() == [True, False, True, False]


def test_csr_dense_and_permuted_columns_agree():
    X, y = xor(n=300, seed=2)
    order = np.random.default_rng(0).permutation(X.shape[1])
    plain = BudgetedTree(TWO_FEATURES).fit(X, y)
    sparse = BudgetedTree(TWO_FEATURES).fit(sp.csr_matrix(X), y)
    permuted = BudgetedTree(TWO_FEATURES).fit(X[:, order], y)
    assert np.array_equal(plain.predict(X), sparse.predict(sp.csr_matrix(X)))
    assert np.array_equal(plain.predict(X), permuted.predict(X[:, order]))
    assert plain.features_.tolist() == sparse.features_.tolist() == sorted(order[permuted.features_])


def test_same_seed_same_tree_and_depth_is_kept():
    X, y = xor(n=300, seed=5, flip=0.1)
    one, other = (BudgetedTree(TWO_FEATURES, max_depth=3, random_state=7).fit(X, y) for _ in range(2))
    assert [n.n_examples for n in one.nodes_] == [n.n_examples for n in other.nodes_]
    assert max(node.depth for node in one.nodes_) <= 3


def test_max_features_bounds_the_columns_of_the_whole_tree():
    X, y = xor(n=400, noise=30, seed=6, flip=0.1)
    free = BudgetedTree(TWO_FEATURES, prune=False).fit(X, y)
    bound = BudgetedTree(TWO_FEATURES, prune=False, max_features=6).fit(X, y)
    assert len(free.features_) > 6 >= len(bound.features_)
    assert len(bound.nodes_) > 3
    with pytest.raises(ValueError, match="max_features is 3"):
        BudgetedTree(TWO_FEATURES, max_features=3).fit(X, y)


def test_one_class_is_a_leaf():
    X, _ = xor(n=20)
    tree = BudgetedTree(TWO_FEATURES).fit(X, np.ones(20))
    assert len(tree.nodes_) == 1
    assert np.all(tree.predict(X) == 1.0)
    assert len(tree.features_) == 0


def test_equal_examples_of_both_classes_end_in_a_leaf():
    tree = BudgetedTree(TWO_FEATURES).fit(np.ones((12, 3)), [1.0, -1.0, -1.0] * 4)
    assert len(tree.nodes_) == 1
    assert np.all(tree.predict(np.ones((2, 3))) == -1.0)
