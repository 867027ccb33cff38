"""Data and calls that the tests of the budgeted methods share."""

import numpy as np
import scipy.sparse as sp

from sapwood import _core

OPTIONS = {
    "budget": 3,
    "C": 1.0,
    "loss": "squared_hinge",
    "fit_offset": True,
    "balanced": False,
    "tol": 1e-3,
    "max_planes": 50,
    "max_steps": 2000,
}


def view(X):
    if sp.issparse(X):
        return _core.Rows.csr(X.indptr, X.indices, X.data, X.shape[1])
    return _core.Rows.dense(X)


def solve(X, y, fold=None, n_folds=1, weight=None, scale=None, **options):
    """What the core finds for signs y."""
    signs, options = y.astype(np.int8), {**OPTIONS, **options}
    return _core.train_bac(
        view(X), signs, options, fold=fold, n_folds=n_folds, row_weight=weight, row_scale=scale
    )


def linear(seed, n, m, density=1.0):
    """float32 rows, and signs that a noisy plane gives them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * (rng.random((n, m)) < density)
    y = np.where(X @ rng.normal(size=m) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = -1, 1
    return X.astype(np.float32), y


def xor(seed=0, n=300, noise=10, flip=0.1):
    """Section 8.1.1: two informative Gaussian features, uniform noise."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(n, 2)), rng.random((n, noise))]).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < flip, -y, y)
