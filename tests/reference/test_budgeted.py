"""Section 4: the budget-aware classifier."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sapwood.reference.budgeted import (
    LOSSES,
    Budgeted,
    BudgetedParameters,
    Problem,
    shrink_norms,
    solve_bac,
    worst_case,
)

finite = st.floats(0.0, 100.0, allow_subnormal=False)


def signs_and_examples(seed, n=80, m=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.6)
    y = np.where(X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n) > -0.3, 1.0, -1.0)
    return X, y


def support_norm(w, budget):
    """The k-support norm (Argyriou, Foygel, Srebro 2012): what BAC's relaxation over E regularises with."""
    z = np.sort(np.abs(w))[::-1]
    k = min(budget, len(z))
    for r in range(k):
        tail = z[k - r - 1 :].sum() / (r + 1)
        if (k - r - 1 == 0 or z[k - r - 2] > tail) and tail >= z[k - r - 1]:
            return np.sqrt(np.sum(z[: k - r - 1] ** 2) + (r + 1) * tail**2)
    raise AssertionError("some r must fit")


def primal(loss, C, penalty, X, y, w, b):
    return penalty + C * float(np.sum(LOSSES[loss].value(y * (X @ w + b))))


class TestWorstCase:
    @given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(1, 35))
    def test_is_the_exact_top_b_ties_to_the_smaller_column(self, scores, budget):
        scores = np.array(scores, dtype=float)
        order = sorted(range(len(scores)), key=lambda j: (-scores[j], j))
        expected = sorted(j for j in order[:budget] if scores[j] > 0)
        assert worst_case(scores, budget).tolist() == expected

    def test_first_plane_holds_the_columns_most_correlated_with_the_residual_of_zero(self):
        X, y = signs_and_examples(0)
        model = Budgeted(BudgetedParameters(3, max_planes=1)).fit(X, y)
        b = y.mean()
        alpha = 2 * np.maximum(0, 1 - y * b)
        scores = ((alpha * y) @ X) ** 2
        assert set(model.solution_.planes[0]) == set(np.argsort(-scores)[:3])


class TestProx:
    @settings(deadline=None, max_examples=60)
    @given(st.lists(finite, min_size=1, max_size=8), st.floats(1e-3, 1e3))
    def test_matches_a_numerical_optimiser(self, norms, tau):
        norms = np.array(norms)

        def value(r):
            return 0.5 * np.sum((r - norms) ** 2) + 0.5 * tau * np.sum(r) ** 2

        r = shrink_norms(norms, tau)
        found = minimize(
            value,
            norms / (1 + tau * len(norms)),
            jac=lambda r: r - norms + tau * np.sum(r),
            bounds=[(0, None)] * len(norms),
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 1000},
        )
        assert np.all(r >= 0)
        assert value(r) <= found.fun + 1e-9 * (1 + abs(found.fun))

    @given(st.lists(finite, min_size=1, max_size=20), st.floats(1e-6, 1e6))
    def test_fulfils_the_optimality_conditions(self, norms, tau):
        norms = np.array(norms)
        r = shrink_norms(norms, tau)
        slack = r - norms + tau * r.sum()
        scale = 1e-9 * (1 + norms.max()) * (1 + tau)
        assert np.all(slack >= -scale)
        assert np.all(np.abs(slack[r > 0]) <= scale)


class TestOffset:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", range(5))
    def test_is_the_minimiser_whatever_the_start(self, loss, seed):
        rng = np.random.default_rng(seed)
        X, y = signs_and_examples(seed)
        scores = X @ rng.normal(size=(X.shape[1], 2)) * 10.0 ** rng.integers(-2, 3)
        weight = (rng.random((len(y), 2)) < 0.8).astype(float)
        problem = Problem(X, y, weight, 1.0, LOSSES[loss], True)
        found = problem.offset(scores, np.zeros(2))
        best = problem.total_loss(scores, found)
        for step in (1e-3, -1e-3):
            assert problem.total_loss(scores, found + step) >= best - 1e-9 * best
        assert problem.offset(scores, np.array([1e3, -1e3])) == pytest.approx(found, rel=1e-6, abs=1e-8)
        balance = y @ (weight * problem.dual_ratio(scores, found))
        assert np.abs(balance).max() < 1e-10

    @pytest.mark.parametrize("loss", LOSSES)
    def test_newton_does_not_run_from_end_to_end_of_the_bracket(self, loss):
        """From b = 1 the step goes to where only the positive examples have loss, and from there back."""
        y = np.array([1.0] * 6 + [-1.0])
        scores = np.array([[0.0]] * 6 + [[-1.999]])
        problem = Problem(None, y, np.array([[7 / 12]] * 6 + [[3.5]]), 10.0, LOSSES[loss], True)
        b = problem.offset(scores, np.array([1.0]))
        slopes = problem.loss.slope(y[:, None] * (scores + b))
        assert y @ (problem.weight * slopes) == pytest.approx([0.0], abs=1e-12)

    @settings(deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from([-1.0, 1.0]), st.integers(-30, 30)), min_size=2, max_size=8),
        st.integers(-20, 20),
        st.sampled_from(sorted(LOSSES)),
    )
    def test_balances_the_classes_wherever_the_kinks_are(self, examples, start, loss):
        y = np.array([sign for sign, _ in examples])
        y[:2] = (-1.0, 1.0)
        scores = np.array([[score / 10] for _, score in examples])
        problem = Problem(None, y, np.ones((len(y), 1)), 1.0, LOSSES[loss], True)
        b = problem.offset(scores, np.array([start / 10]))
        assert y @ problem.loss.slope(y[:, None] * (scores + b)) == pytest.approx([0.0], abs=1e-10)


class TestSolution:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("fit_offset", [False, True])
    @pytest.mark.parametrize("budget", [1, 3, 12])
    def test_objective_never_rises_and_the_gap_closes(self, loss, fit_offset, budget):
        X, y = signs_and_examples(1)
        parameters = BudgetedParameters(budget, loss=loss, fit_offset=fit_offset, tol=1e-4, max_planes=500)
        model = Budgeted(parameters).fit(X, y)
        assert np.all(np.diff(model.objective_) <= 0)
        assert np.all(np.diff(model.bound_) >= 0)
        assert model.gap_ >= -1e-12
        assert model.gap_ <= 1e-4 * model.objective_[-1]

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("budget", [1, 2, 5, 12])
    def test_bound_and_objective_enclose_the_k_support_norm_problem(self, loss, budget):
        """An independent statement of the whole relaxed problem, minimised by nothing of ours."""
        X, y = signs_and_examples(2, n=40, m=6)
        C = 0.3
        model = Budgeted(BudgetedParameters(budget, C=C, loss=loss, tol=1e-5, max_planes=500)).fit(X, y)
        w = np.zeros(6)
        w[model.features_] = model.coef_
        penalty = 0.5 * support_norm(w, budget) ** 2
        value = primal(loss, C, penalty, X, y, w, model.offset_)
        assert model.bound_[-1] <= value <= model.objective_[-1] * (1 + 1e-12)
        for seed in range(5):
            rng = np.random.default_rng(seed)
            other, b = w + 0.1 * rng.normal(size=6), model.offset_ + 0.1 * rng.normal()
            assert model.bound_[-1] <= primal(loss, C, 0.5 * support_norm(other, budget) ** 2, X, y, other, b)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
    def test_with_enough_budget_it_is_the_squared_hinge_svm(self, seed, C):
        X, y = signs_and_examples(seed)
        svm = LinearSVC(
            loss="squared_hinge", C=C, dual=True, fit_intercept=False, tol=1e-9, max_iter=9**6, random_state=0
        ).fit(X, y)
        w = svm.coef_[0]
        parameters = BudgetedParameters(X.shape[1], C=C, fit_offset=False, tol=1e-6, max_iter=20000)
        model = Budgeted(parameters).fit(X, y)
        expected = primal("squared_hinge", C, 0.5 * w @ w, X, y, w, 0.0)
        assert len(model.solution_.planes) == 1
        assert model.objective_[-1] == pytest.approx(expected, rel=1e-5)
        assert model.coef_ == pytest.approx(w[model.features_], abs=1e-2)

    def test_offset_is_the_svms_with_a_free_intercept(self):
        """LIBLINEAR regularises the intercept; a large intercept_scaling makes that vanish."""
        X, y = signs_and_examples(3)
        svm = LinearSVC(
            loss="squared_hinge", dual=True, intercept_scaling=1e2, tol=1e-8, max_iter=10**6, random_state=0
        )
        svm.fit(X, y)
        w, b = svm.coef_[0], float(svm.intercept_[0])
        model = Budgeted(BudgetedParameters(X.shape[1], tol=1e-6, max_iter=20000)).fit(X, y)
        expected = primal("squared_hinge", 1.0, 0.5 * w @ w, X, y, w, b)
        assert model.objective_[-1] <= expected * (1 + 1e-6)
        assert model.objective_[-1] == pytest.approx(expected, rel=1e-4)
        assert model.offset_ == pytest.approx(b, abs=1e-2)

    def test_logistic_with_enough_budget_is_logistic_regression(self):
        X, y = signs_and_examples(4)
        other = LogisticRegression(C=2.0, tol=1e-10, max_iter=10**4).fit(X, y)
        w, b = other.coef_[0], float(other.intercept_[0])
        model = Budgeted(BudgetedParameters(X.shape[1], C=2.0, loss="logistic", tol=1e-7)).fit(X, y)
        assert model.objective_[-1] == pytest.approx(
            primal("logistic", 2.0, 0.5 * w @ w, X, y, w, b), rel=1e-6
        )

    def test_balanced_classes_are_scikit_learns(self):
        X, y = signs_and_examples(5)
        y = np.where(X[:, 0] + X[:, 1] > 1.0, 1.0, -1.0)
        svm = LinearSVC(class_weight="balanced", fit_intercept=False, tol=1e-9, max_iter=9**6)
        w = svm.fit(X, y).coef_[0]
        parameters = BudgetedParameters(12, fit_offset=False, class_weight="balanced", tol=1e-8)
        assert Budgeted(parameters).fit(X, y).coef_ == pytest.approx(w, abs=1e-3)

    def test_objective_is_what_the_coefficients_say(self):
        X, y = signs_and_examples(6)
        model = Budgeted(BudgetedParameters(2, tol=1e-4, max_planes=100)).fit(X, y)
        loss = np.sum(np.maximum(0, 1 - y * model.decision_function(X)) ** 2)
        penalty = 0.5 * model.solution_.plane_norms.sum() ** 2
        assert model.objective_[-1] == pytest.approx(penalty + loss, rel=1e-10)


class TestUniversalPlanes:
    """Problem (11): folds with one feature selection."""

    @pytest.mark.parametrize("loss", LOSSES)
    def test_gap_closes_for_several_folds(self, loss):
        X, y = signs_and_examples(7)
        train = np.arange(len(y))[:, None] % 3 != np.arange(3)
        parameters = BudgetedParameters(3, loss=loss, tol=1e-4, max_planes=500)
        solution = parameters.solve(X, y, train)
        assert np.all(np.diff(solution.objective) <= 0)
        assert solution.objective[-1] - solution.bound[-1] <= 1e-4 * solution.objective[-1]

    def test_enough_budget_makes_the_folds_independent(self):
        X, y = signs_and_examples(8)
        train = np.arange(len(y))[:, None] % 3 != np.arange(3)
        parameters = BudgetedParameters(12, tol=1e-7, max_iter=20000)
        solution = parameters.solve(X, y, train)
        for v in range(3):
            alone = Budgeted(parameters).fit(X[train[:, v]], y[train[:, v]])
            assert solution.coef[:, v] == pytest.approx(alone.coef_, abs=2e-3)
            assert solution.offset[v] == pytest.approx(alone.offset_, abs=2e-3)

    def test_equal_folds_give_the_single_answer(self):
        X, y = signs_and_examples(9)
        parameters = BudgetedParameters(3, tol=1e-4, max_planes=500)
        twice = parameters.solve(X, y, np.ones((len(y), 2), dtype=bool))
        once = parameters.solve(X, y, np.ones((len(y), 1), dtype=bool))
        assert twice.objective[-1] == pytest.approx(2 * once.objective[-1], rel=2e-4)


class TestInput:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_csr_and_dense_agree(self, loss):
        X, y = signs_and_examples(10)
        parameters = BudgetedParameters(3, loss=loss, tol=1e-3, max_planes=50)
        dense, sparse = Budgeted(parameters).fit(X, y), Budgeted(parameters).fit(sp.csr_matrix(X), y)
        assert dense.features_.tolist() == sparse.features_.tolist()
        assert dense.coef_ == pytest.approx(sparse.coef_, abs=1e-6)
        assert dense.decision_function(sp.csr_matrix(X)) == pytest.approx(
            sparse.decision_function(X), abs=1e-6
        )

    def test_permuted_columns_give_the_permuted_answer(self):
        X, y = signs_and_examples(11)
        order = np.random.default_rng(0).permutation(X.shape[1])
        parameters = BudgetedParameters(3, tol=1e-3, max_planes=50)
        one, other = Budgeted(parameters).fit(X, y), Budgeted(parameters).fit(X[:, order], y)
        assert set(order[other.features_]) == set(one.features_)
        assert other.decision_function(X[:, order]) == pytest.approx(one.decision_function(X), abs=1e-6)

    def test_only_chosen_columns_are_made_dense(self):
        """A million columns: their dense form would be 400 MB."""
        rng = np.random.default_rng(0)
        X = sp.random(50, 10**6, density=1e-4, format="csr", random_state=rng)
        y = np.where(np.arange(50) % 2 == 0, 1.0, -1.0)
        X = sp.hstack([X, sp.csr_matrix(y[:, None])]).tocsr()
        model = Budgeted(BudgetedParameters(2, max_planes=3)).fit(X, y)
        assert 10**6 in model.features_
        assert len(model.features_) <= 6

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("sign", [-1.0, 1.0])
    def test_one_class_is_answered_without_features(self, loss, sign):
        X, _ = signs_and_examples(12)
        model = Budgeted(BudgetedParameters(3, loss=loss)).fit(X, np.full(len(X), sign))
        assert len(model.features_) == 0
        assert np.all(model.predict(X) == sign)

    def test_other_labels_are_refused(self):
        with pytest.raises(ValueError, match=r"entry 1 is 0"):
            Budgeted(1).fit(np.eye(2), [1, 0])

    def test_bad_parameters_are_refused(self):
        with pytest.raises(ValueError, match="at least 1"):
            BudgetedParameters(0)
        with pytest.raises(ValueError, match="hinge"):
            BudgetedParameters(1, loss="hinge")

    def test_max_planes_is_kept_and_the_gap_is_told(self):
        X, y = signs_and_examples(13)
        solution = solve_bac(
            X,
            y,
            np.ones((len(y), 1)),
            budget=1,
            C=1.0,
            loss="squared_hinge",
            fit_offset=True,
            tol=1e-6,
            max_planes=2,
            max_iter=1000,
        )
        assert len(solution.planes) == 2
        assert solution.objective[-1] - solution.bound[-1] > 1e-6 * solution.objective[-1]
