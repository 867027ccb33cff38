"""BudgetedClassifier: its objective, its certificate, its choice of columns."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from budgeted_cases import linear, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from sapwood import BudgetedClassifier
from sapwood.budgeted import classifier

seeds = st.integers(0, 2**20)


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from(["squared_hinge", "logistic"]), st.booleans(), st.integers(1, 12))
def test_objective_never_rises_and_the_gap_closes(seed, loss, fit_offset, budget):
    X, y = linear(seed, 50, 12)
    found = solve(X, y, budget=budget, loss=loss, fit_offset=fit_offset, tol=1e-4, max_planes=500)
    assert np.all(np.diff(found["objective"]) <= 0)
    assert np.all(np.diff(found["bound"]) >= 0)
    gap = found["objective"][-1] - found["bound"][-1]
    assert -1e-9 <= gap <= 1e-4 * found["objective"][-1]


@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from([0.01, 1.0, 10.0]), st.booleans())
def test_with_enough_budget_it_is_liblinears_svm(seed, C, is_sparse):
    X, y = linear(seed, 60, 10)
    svm = LinearSVC(C=C, dual=True, fit_intercept=False, tol=1e-9, max_iter=10**6, random_state=0).fit(X, y)
    w = svm.coef_[0]
    expected = 0.5 * w @ w + C * np.sum(np.maximum(0, 1 - y * (X @ w)) ** 2)
    model = BudgetedClassifier(budget=10, C=C, tol=1e-5, fit_offset=False, normalize=False)
    model.fit(sp.csr_matrix(X) if is_sparse else X, y)
    assert model.objective_[0] == pytest.approx(expected, rel=1e-4)
    assert model.n_planes_[0] == 1


def test_with_enough_budget_and_an_offset_it_is_the_svm_with_a_free_intercept():
    """LIBLINEAR regularises its intercept; a large intercept_scaling makes that vanish."""
    X, y = linear(3, 80, 10)
    svm = LinearSVC(intercept_scaling=1e2, tol=1e-8, dual=True, max_iter=10**6, random_state=0).fit(X, y)
    w, b = svm.coef_[0], svm.intercept_[0]
    expected = 0.5 * w @ w + np.sum(np.maximum(0, 1 - y * (X @ w + b)) ** 2)
    model = BudgetedClassifier(budget=10, tol=1e-5, normalize=False).fit(X, y)
    assert model.objective_[0] == pytest.approx(expected, rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 40), st.booleans(), st.sampled_from([1, 4, 11]))
def test_first_plane_is_the_exact_top_of_the_column_sums(seed, budget, is_sparse, n_folds):
    """Few values, so that many columns tie: the smaller column is taken."""
    rng = np.random.default_rng(seed)
    X = rng.choice(np.array([0, 0, 1, 2], dtype=np.float32), (30, 40))
    y = np.where(rng.random(30) < 0.5, -1.0, 1.0)
    y[:2] = -1, 1
    fold = (np.arange(30) % n_folds).astype(np.uint8) if n_folds > 1 else None
    options = {"budget": budget, "fit_offset": False, "max_planes": 1}
    found = solve(sp.csr_matrix(X) if is_sparse else X, y, fold, n_folds, **options)
    learns = np.ones((30, 1)) if fold is None else fold[:, None] != np.arange(n_folds)
    scores = np.sum((X.T @ (y[:, None] * 2 * learns)) ** 2, axis=1)  # alpha = 2 C at w = 0
    order = np.lexsort((np.arange(40), -scores))[:budget]
    expected = np.sort(order[scores[order] > 0])
    assert ([p.tolist() for p in found["planes"]] or [[]])[0] == expected.tolist()


@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from(["squared_hinge", "logistic"]))
def test_permuted_columns_and_other_forms_give_the_same_answer(seed, loss):
    X, y = linear(seed, 60, 30)
    order = np.random.default_rng(seed).permutation(30)
    options = {"budget": 3, "loss": loss}
    plain = BudgetedClassifier(**options).fit(X, y)
    permuted = BudgetedClassifier(**options).fit(X[:, order], y)
    sparse = BudgetedClassifier(**options).fit(sp.csr_matrix(X), y)
    assert sorted(order[permuted.selected_features_]) == plain.selected_features_.tolist()
    assert sparse.selected_features_.tolist() == plain.selected_features_.tolist()
    f = plain.decision_function(X)
    np.testing.assert_allclose(permuted.decision_function(X[:, order]), f, atol=1e-5)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), f, atol=1e-5)


def labelled(seed=0, n=240, n_labels=6):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_labels
    X = 0.2 * rng.normal(size=(n, 3 * n_labels)).astype(np.float32)
    X[np.arange(n), 3 * codes] += 1
    return X, codes


@pytest.mark.parametrize("multiclass", ["one_vs_all", "groups"])
def test_several_labels_any_threads(multiclass):
    X, y = labelled()
    one = BudgetedClassifier(budget=2, multiclass=multiclass, random_state=0).fit(X, y)
    two = BudgetedClassifier(budget=2, multiclass=multiclass, random_state=0, n_jobs=2).fit(X, y)
    assert one.score(X, y) > 0.95
    assert one.coef_.shape == (6 if multiclass == "one_vs_all" else 5, 18)
    np.testing.assert_array_equal(one.coef_.toarray(), two.coef_.toarray())
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_allclose(one.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    assert np.all(one.gap_ <= 0.011 * one.objective_)
    said = one.explain(X[:1])
    assert said.label == one.predict(X[:1])[0]
    assert len(said.steps) == 1 if multiclass == "one_vs_all" else len(said.steps) >= 2


def test_decisions_are_what_the_coefficients_say():
    X, y = labelled()
    model = BudgetedClassifier(normalize=False).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-5)
    step = model.explain(X[:1]).steps[0]
    assert step.score == pytest.approx(sum(part.amount for part in step.contributions) + step.offset)


def test_groups_are_for_one_label_a_row():
    X, y = labelled()
    with pytest.raises(ValueError, match="one label a row"):
        BudgetedClassifier(multiclass="groups").fit(X, [[label, 0] for label in y])


def test_only_chosen_columns_are_copied():
    """Twenty million columns: a float for each would be 80 MB, and a bit is 2.5 MB."""
    rng = np.random.default_rng(0)
    X = sp.random(50, 20_000_000, density=1e-5, format="csr", dtype=np.float32, random_state=rng)
    y = np.where(np.arange(50) % 2 == 0, "a", "b")
    X = sp.hstack([X, sp.csr_matrix((y == "a").astype(np.float32)[:, None])], format="csr")
    model = BudgetedClassifier(budget=2, max_planes=3).fit(X, y)
    assert 20_000_000 in model.selected_features_
    assert model.score(X, y) == 1


def test_examples_in_the_docstrings():
    assert doctest.testmod(classifier).failed == 0
