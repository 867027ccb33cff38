"""From what users hold to what the core reads: the rows of a data matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sapwood import _core


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> _core.Rows:
    """Check a data matrix and give the core's view of it.

    float32 data, C-ordered or CSR, are not copied, whatever their indices. With `reset` the estimator notes the
    number of columns (and their names), otherwise it must be the one noted.
    """
    if not _is_ready(X) or hasattr(estimator, "feature_names_in_"):
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float32, np.float64],
            order="C",
            ensure_all_finite=False,  # the core does it, and says where
            reset=reset,
        )
    elif X.shape[0] == 0 or X.shape[1] == 0:
        what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
        raise ValueError(f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required.")
    elif reset:
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    rows = _sparse_rows(X) if sp.issparse(X) else _core.Rows.dense(_as_float32(X))
    rows.check()
    return rows


def _is_ready(X: Any) -> bool:
    """Whether the core can read X as it is: the common case, and the one that must be quick."""
    if isinstance(X, np.ndarray):
        return X.dtype == np.float32 and X.ndim == 2 and bool(X.flags.c_contiguous)
    return sp.issparse(X) and X.format == "csr" and X.dtype == np.float32 and X.ndim == 2


def _sparse_rows(X: Any) -> _core.Rows:
    if not X.has_canonical_format:  # columns out of order or named twice in a row: their sum is meant
        X = X.copy()
        X.sum_duplicates()
    return _core.Rows.csr(X.indptr, X.indices, _as_float32(X.data), X.shape[1])


def _as_float32(values: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    with np.errstate(over="ignore"):  # too large for float32 becomes infinity, which the core refuses
        return np.ascontiguousarray(values, dtype=np.float32)
