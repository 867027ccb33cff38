"""FastXML: what must hold of its trees; and HOMER's descent by threshold."""

import numpy as np
import pytest
import scipy.sparse as sp

from sapwood import FastXMLClassifier, LabelTreeClassifier, inspect


def clusters(n_groups=8, n_rows=400, width=40, seed=0):
    """Groups of rows that share features and labels."""
    random = np.random.default_rng(seed)
    group = random.integers(0, n_groups, n_rows)
    X = (random.random((n_rows, width)) < 0.1).astype(np.float32)
    Y = np.zeros((n_rows, 2 * n_groups), int)
    for row, g in enumerate(group):
        X[row, 3 * g : 3 * g + 3] = 1
        Y[row, [2 * g, 2 * g + 1]] = random.random(2) < (0.95, 0.6)
    return X, Y


X, Y = clusters()


def test_leaves_hold_the_mean_label_vectors_of_their_rows():
    model = FastXMLClassifier(n_trees=4, random_state=0).fit(X, Y)
    leaves = model.trees_.core.leaves(model._rows(X), normalize=True, n_threads=1)
    a = model.trees_.arrays
    assert (
        len(np.unique(leaves)) == model.trees_.n_leaves
    )  # every leaf has rows, and each tree leaves of its own
    for leaf in np.unique(leaves):
        rows = (leaves == leaf).any(axis=1)
        here = slice(*a["leaf_begin"][leaf : leaf + 2])
        mean = np.zeros(Y.shape[1])
        mean[a["leaf_labels"][here]] = a["leaf_scores"][here]
        np.testing.assert_allclose(mean, Y[rows].mean(axis=0), atol=1e-6)


def test_a_ranking_is_the_mean_over_the_trees():
    model = FastXMLClassifier(n_trees=6, random_state=0).fit(X, Y)
    leaves = model.trees_.core.leaves(model._rows(X), normalize=True, n_threads=1)
    a = model.trees_.arrays
    dense = np.zeros((model.trees_.n_leaves, Y.shape[1]))
    for leaf in range(model.trees_.n_leaves):
        here = slice(*a["leaf_begin"][leaf : leaf + 2])
        dense[leaf, a["leaf_labels"][here]] = a["leaf_scores"][here]
    np.testing.assert_allclose(model.predict_proba(X), dense[leaves].mean(axis=1), atol=1e-6)


def test_it_learns_to_rank():
    Z, truth = clusters(seed=1)
    model = FastXMLClassifier(random_state=0).fit(X, Y)
    carriers = truth.any(axis=1)
    assert model.score(Z[carriers], truth[carriers]) > 0.9


def test_a_node_never_raises_the_share_of_wrong_neighbours():
    """Splits keep rows with like labels together: leaves are purer than the whole."""
    model = FastXMLClassifier(n_trees=1, random_state=0).fit(X, Y)
    leaves = model.trees_.core.leaves(model._rows(X), normalize=True, n_threads=1)[:, 0]
    within = np.mean([Y[leaves == leaf].var(axis=0).sum() for leaf in leaves])
    assert within < 0.5 * Y.var(axis=0).sum()


def test_leaf_labels_and_max_leaf():
    few = FastXMLClassifier(n_trees=3, leaf_labels=2, random_state=0).fit(X, Y)
    assert np.diff(few.trees_.arrays["leaf_begin"]).max() <= 2
    small = FastXMLClassifier(n_trees=3, max_leaf=400, random_state=0).fit(X, Y)
    assert small.trees_.n_leaves == 3
    assert small.trees_.n_nodes == 0
    np.testing.assert_allclose(small.predict_proba(X[:1])[0], Y.mean(axis=0), atol=1e-6)


def test_sparse_weights_and_any_form_of_input():
    models = [
        FastXMLClassifier(n_trees=3, random_state=0, n_jobs=n_jobs).fit(form(X), Y)
        for form in (np.asarray, sp.csr_matrix)
        for n_jobs in (1, 2)
    ]
    assert all((model.trees_.arrays["weights"] != 0).all() for model in models)
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    for model in models[2:]:
        np.testing.assert_allclose(model.predict_proba(X), models[0].predict_proba(X), atol=1e-6)
    sparser = FastXMLClassifier(n_trees=3, C=0.1, random_state=0).fit(X, Y)
    assert len(sparser.trees_.arrays["weights"]) < len(models[0].trees_.arrays["weights"])


def test_explanation_and_inspection():
    model = FastXMLClassifier(n_trees=3, random_state=0).fit(X, Y)
    told = model.explain(X[:1])
    assert told.score == pytest.approx(np.mean(told.shares), rel=1e-5)
    assert len(told.paths) == 3
    assert all((step.score > 0) == step.answer for path in told.paths for step in path)
    assert inspect.tree(model)["leaves"] == model.trees_.n_leaves


@pytest.mark.parametrize("name", ["n_trees", "max_leaf", "leaf_labels", "C", "passes"])
def test_parameters_out_of_range(name):
    with pytest.raises(ValueError, match=name):
        FastXMLClassifier(**{name: 0}).fit(X, Y)


def homer_by_hand(model, x):
    """Enter every child whose score is above 0."""
    rows = model._rows(x)
    reached, stack = [], [int(model.forest_.arrays["roots"][0])]
    while stack:
        children, scores = model.forest_.core.node_scores(rows, row=0, node=stack.pop(), normalize=True)
        for child, score in zip(children.tolist(), scores.tolist(), strict=True):
            if score > 0:
                (stack if child >= 0 else reached).append(child)
    return sorted(~label for label in reached)


def test_homer_enters_every_child_that_says_yes():
    model = LabelTreeClassifier(preset="homer", random_state=0).fit(X, Y)
    for form in (X, sp.csr_matrix(X)):
        answer = model.predict(form)
        for row in range(0, len(X), 20):
            assert np.flatnonzero(answer[row]).tolist() == homer_by_hand(model, X[row : row + 1])
    assert (model.predict(X) == Y).mean() > 0.9
    np.testing.assert_array_equal(model.set_params(n_jobs=3).predict(X), answer)
    one = LabelTreeClassifier(preset="homer", random_state=0).fit(X, Y.argmax(axis=1))
    assert one.predict(X).shape == (len(X),)  # one label a row: the best, by beam
