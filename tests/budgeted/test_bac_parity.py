"""The core's solver against the reference: the same planes, the same objective."""

import numpy as np
import scipy.sparse as sp
from budgeted_cases import OPTIONS, linear, solve
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood.reference.budgeted import BudgetedParameters


def reference(X, y, fold=None, n_folds=1, **options):
    options = {**OPTIONS, **options}
    weight = "balanced" if options.pop("balanced") else None
    options["max_iter"] = options.pop("max_steps")
    train = np.ones((len(y), 1), bool) if fold is None else fold[:, None] != np.arange(n_folds)
    return BudgetedParameters(class_weight=weight, **options).solve(X.astype(np.float64), y, train)


def same(core, ref, rel=1e-6):
    assert [p.tolist() for p in core["planes"]] == [p.tolist() for p in ref.planes]
    assert core["columns"].tolist() == ref.features.tolist()
    np.testing.assert_allclose(core["objective"], ref.objective, rtol=rel)
    np.testing.assert_allclose(core["bound"], ref.bound, rtol=rel)
    np.testing.assert_allclose(core["weights"], ref.coef, atol=1e-5)
    np.testing.assert_allclose(core["offset"], ref.offset, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**20),
    st.integers(5, 60),
    st.integers(1, 20),
    st.sampled_from(["squared_hinge", "logistic"]),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 5, 9]),
    st.sampled_from([0.3, 1.0]),
)
def test_same_planes_and_objective_as_the_reference(
    seed, n, m, loss, budget, fit_offset, balanced, n_folds, density
):
    X, y = linear(seed, n, m, density)
    fold = np.random.default_rng(seed).integers(0, n_folds, n).astype(np.uint8) if n_folds > 1 else None
    options = {
        "budget": budget,
        "loss": loss,
        "fit_offset": fit_offset,
        "balanced": balanced,
        "tol": 1e-2,
        "max_planes": 8,
    }
    expected = reference(X, y, fold, n_folds, **options)
    same(solve(X, y, fold, n_folds, **options), expected)
    same(solve(sp.csr_matrix(X), y, fold, n_folds, **options), expected)
