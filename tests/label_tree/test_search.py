"""The beam search finds what a walk of the whole tree finds, and explains it."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood import LabelTreeClassifier, _core
from sapwood.label_tree.forest import probability

N_ROWS, N_FEATURES, N_LABELS = 160, 50, 40


def rows_and_labels(n_labels=N_LABELS, n_rows=N_ROWS, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_labels
    X = sp.random(n_rows, N_FEATURES, 0.1, "lil", np.float32, random)
    for row, label in enumerate(y):
        X[row, [(7 * label) % N_FEATURES, (11 * label + 3) % N_FEATURES]] = 1
    return X.tocsr(), y


X, Y = rows_and_labels()


def by_walking(model, row):
    """The probability of each label, by the definition: the mean over the trees of the product along the path."""
    forest = model.forest_
    rows = _core.Rows.dense(np.ascontiguousarray(X[row].toarray()))
    out = np.zeros(len(model.classes_))

    def walk(node, above):
        children, scores = forest.core.node_scores(rows, row=0, node=node, normalize=model.normalize)
        for child, score in zip(children.tolist(), scores.tolist(), strict=True):
            here = above * probability(score, forest.loss)
            if child < 0:
                out[~child] += here / len(forest.arrays["roots"])
            else:
                walk(child, here)

    for root in forest.arrays["roots"].tolist():
        walk(root, 1.0)
    return out


@pytest.mark.parametrize(
    "kwargs",
    [
        {"max_leaf": 2, "arity": 2},
        {"max_leaf": 3, "arity": 20},
        {"max_leaf": 100},
        {"max_leaf": 5, "n_trees": 3},
        {"max_leaf": 5, "solver": "adagrad", "loss": "logistic"},
        {"max_leaf": 5, "n_trees": 2, "weight_bits": 32, "normalize": False},
        {"tree": [[list(range(10)), 10, 11], list(range(12, 39)), 39]},
    ],
    ids=str,
)
def test_a_wide_beam_is_an_exhaustive_search(kwargs):
    model = LabelTreeClassifier(beam=1000, min_beam_share=0, random_state=0, **kwargs).fit(X, Y)
    labels, scores = model.predict_topk(X[:12], k=N_LABELS)
    for row in range(12):
        expected = by_walking(model, row)
        np.testing.assert_allclose(scores[row], expected[labels[row]], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(np.sort(expected)[::-1], scores[row], rtol=1e-4, atol=1e-7)


@settings(deadline=None, max_examples=25)
@given(
    arity=st.integers(2, 20),
    max_leaf=st.integers(1, 50),
    n_trees=st.integers(1, 3),
    beam=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    k=st.integers(1, N_LABELS),
    seed=st.integers(0, 3),
)
def test_every_search_gives_as_many_labels_as_it_is_asked_for(arity, max_leaf, n_trees, beam, share, k, seed):
    model = LabelTreeClassifier(
        arity=arity,
        max_leaf=max_leaf,
        n_trees=n_trees,
        beam=beam,
        min_beam_share=share,
        random_state=seed,
        passes=3,
    ).fit(X, Y)
    labels, scores = model.predict_topk(X[:6], k=k)
    assert labels.shape == (6, k)
    assert all(len(set(row)) == k for row in labels.tolist())
    assert (np.diff(scores, axis=1) <= 0).all()
    wide = model.set_params(beam=1000, min_beam_share=0).predict_topk(X[:6], k=N_LABELS)
    for row in range(6):  # a narrow search never gives a label a better score than it has
        best = dict(zip(wide[0][row].tolist(), wide[1][row].tolist(), strict=True))
        assert all(
            score <= best[label] * (1 + 1e-5) for label, score in zip(labels[row], scores[row], strict=True)
        )


def noise():
    """Rows that say nothing, so that the way down is open."""
    return sp.csr_matrix(np.random.default_rng(0).uniform(0, 1, X.shape).astype(np.float32))


def test_no_beam_scores_more_than_one_that_holds_all_nodes():
    model = LabelTreeClassifier(max_leaf=2, arity=2, min_beam_share=0, random_state=0).fit(X, Y)
    for rows in (X, noise()):
        best = [model.set_params(beam=beam).predict_topk(rows, k=1)[1] for beam in (1, 2, 5, 20, 1000)]
        for narrow in best[:-1]:
            assert (best[-1] >= narrow).all()
    assert (best[-1] > best[0]).any()


def test_min_beam_share_drops_unlikely_nodes():
    rows = noise()
    model = LabelTreeClassifier(max_leaf=2, arity=2, beam=20, random_state=0).fit(X, Y)
    all_nodes = model.set_params(min_beam_share=0).predict_topk(rows, k=1)[1]
    some = model.set_params(min_beam_share=0.05).predict_topk(rows, k=1)[1]
    greedy = model.set_params(min_beam_share=1).predict_topk(rows, k=1)[1]
    assert (greedy <= some).all()
    assert (some <= all_nodes).all()
    assert (greedy < all_nodes).any()
    one = model.set_params(min_beam_share=0, beam=1).predict_topk(rows, k=1)[1]
    np.testing.assert_array_equal(one, greedy)


@pytest.mark.parametrize(
    "kwargs", [{"max_leaf": 100}, {"max_leaf": 3}, {"max_leaf": 3, "loss": "logistic", "solver": "adagrad"}]
)
def test_an_explanation_multiplies_up_to_the_score(kwargs):
    names = np.array([f"label {i:02d}" for i in range(N_LABELS)])
    model = LabelTreeClassifier(random_state=0, **kwargs).fit(X, names[Y])
    for row in range(20):
        explanation = model.explain(X[row])
        label, score = model.predict_topk(X[row], k=1)
        assert explanation.label == label[0, 0] == model.predict(X[row])[0]
        assert explanation.score == pytest.approx(score[0, 0])
        (path,) = explanation.paths
        assert math.prod(step.probability for step in path) == pytest.approx(explanation.score, rel=1e-4)
        assert path[0].node == 0
        assert path[-1].n_labels == 1
        assert all(above.n_labels > below.n_labels for above, below in pairwise(path))
        assert all(0 <= step.rank < step.n_children for step in path)
        assert all(step.probability == pytest.approx(probability(step.score, model.loss)) for step in path)


def test_an_explanation_of_several_trees_is_their_mean():
    model = LabelTreeClassifier(n_trees=3, max_leaf=4, beam=1000, min_beam_share=0, random_state=0).fit(X, Y)
    for row in range(10):
        explanation = model.explain(X[row])
        assert len(explanation.paths) == 3
        products = [math.prod(step.probability for step in path) for path in explanation.paths]
        assert np.mean(products) == pytest.approx(explanation.score, rel=1e-4)


def test_trees_differ_and_their_mean_is_the_answer():
    model = LabelTreeClassifier(n_trees=3, max_leaf=4, beam=1000, min_beam_share=0, random_state=0).fit(X, Y)
    arrays = model.forest_.arrays
    assert len(arrays["roots"]) == 3
    scores = dict(zip(*(part[0].tolist() for part in model.predict_topk(X[0], k=N_LABELS)), strict=True))
    expected = by_walking(model, 0)
    assert [scores[label] for label in range(N_LABELS)] == pytest.approx(
        expected.tolist(), rel=1e-4, abs=1e-7
    )
    trees = [set(map(tuple, targets)) for targets in np.split(arrays["targets"].reshape(-1, 16), 3)]
    assert trees[0] != trees[1]


def test_probabilities_add_up():
    model = LabelTreeClassifier(max_leaf=4, random_state=0).fit(X, Y)
    proba = model.predict_proba(X)
    assert isinstance(proba, np.ndarray)
    assert proba.dtype == np.float32
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    assert (proba.argmax(axis=1) == model.predict(X)).all()


def test_probabilities_are_sparse_above_a_thousand_labels():
    n = 1500
    wide = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), np.arange(n))), (n, n))
    model = LabelTreeClassifier(random_state=0).fit(wide, np.arange(n))
    proba = model.predict_proba(wide[:50])
    assert sp.issparse(proba)
    assert proba.format == "csr"
    assert proba.has_canonical_format
    assert proba.shape == (50, n)
    np.testing.assert_allclose(np.asarray(proba.sum(axis=1)).ravel(), 1, rtol=1e-4)
    assert (np.asarray(proba.argmax(axis=1)).ravel() == model.predict(wide[:50])).all()
    assert proba.nnz < 50 * n
    at_limit = LabelTreeClassifier(random_state=0).fit(wide[:1000], np.arange(1000))
    assert isinstance(at_limit.predict_proba(wide[:2]), np.ndarray)


def test_multilabel_probabilities_are_each_labels_own():
    lists = [[int(label), (int(label) + 1) % N_LABELS] for label in Y]
    model = LabelTreeClassifier(beam=1000, min_beam_share=0, max_leaf=5, random_state=0).fit(X, lists)
    proba = model.predict_proba(X[:5])
    np.testing.assert_allclose(proba[0], by_walking(model, 0), rtol=1e-4, atol=1e-7)
    likely = [set(np.flatnonzero(row >= 0.5).tolist()) for row in proba]
    assert [set(row.tolist()) for row in model.predict(X[:5])] == likely


def test_more_likely_labels_than_any_first_look():
    """`predict` looks at the 16 best labels first, and at more where all of these are likely."""
    n = 30
    everything = np.ones((n, n), dtype=int)
    everything[0, 1:] = 0
    eye = np.eye(n, dtype=np.float32)
    model = LabelTreeClassifier(random_state=0, C=100.0, class_weight=None).fit(eye, everything)
    predicted = model.predict(eye)
    assert predicted[1:].sum(axis=1).min() > 16
