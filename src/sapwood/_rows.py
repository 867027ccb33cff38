"""From what users hold to what the core reads: the rows of a data matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sapwood import _core
from sapwood._sparse import check_structure


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> _core.Rows:
    """Check a data matrix and give the core's view of it.

    float32 data, C-ordered or CSR, are not copied, whatever their indices. With `reset` the estimator notes the
    number of columns (and their names), otherwise it must be the one noted.
    """
    if not _is_ready(X) or hasattr(estimator, "feature_names_in_"):
        X = validate_data(
            estimator,
            _only_numbers(X),
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
    if sp.issparse(X):
        return _sparse_rows(X)
    rows = _core.Rows.dense(_as_float32(X))
    rows.check()
    rows.matrix = X
    return rows


def _is_ready(X: Any) -> bool:
    """Whether the core can read X as it is: the common case, and the one that must be quick."""
    if isinstance(X, np.ndarray):
        return X.dtype == np.float32 and X.ndim == 2 and bool(X.flags.c_contiguous and X.flags.aligned)
    return isinstance(X, (sp.csr_matrix, sp.csr_array)) and X.data.dtype == np.float32 and len(X.shape) == 2


def _only_numbers(X: Any) -> Any:
    """The same, unless it holds what numpy would take for numbers though no one meant so, such as text."""
    if sp.issparse(X):
        if X.format != "csr":  # CSR the core checks
            check_structure(X, "X")
        return X
    if isinstance(X, (list, tuple)):
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        is_text = X.dtype.kind == "O" and any(isinstance(value, (str, bytes)) for value in X.flat)
        if is_text or X.dtype.kind not in "biufcO":
            raise ValueError(f"X must hold numbers, not {'strings' if is_text else X.dtype}")
    return X


def _sparse_rows(X: Any) -> _core.Rows:
    if len(X.indptr) != X.shape[0] + 1:
        raise ValueError(f"X is damaged: its indptr has {len(X.indptr)} entries for {X.shape[0]} rows")
    rows = _view(X)
    rows.check()
    if rows.ascends():
        rows.matrix = X
        return rows
    # Columns out of order or named twice in a row: their sum is meant. A new matrix knows nothing of flags.
    X = sp.csr_matrix((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    X.sum_duplicates()
    rows = _view(X)
    rows.check()
    rows.matrix = X
    return rows


def _view(X: Any) -> _core.Rows:
    is_narrow = X.indptr.dtype == np.int32 and X.indices.dtype == np.int32
    indptr, indices = (_plain(part, np.int32 if is_narrow else np.int64) for part in (X.indptr, X.indices))
    return _core.Rows.csr(indptr, indices, _as_float32(X.data), X.shape[1])


def _as_float32(values: Any) -> NDArray[np.float32]:
    if values.dtype == np.float32:
        return _plain(values, np.float32)
    with np.errstate(over="ignore"):  # too large for float32 becomes infinity, which the core refuses
        return _plain(values, np.float32)


def _plain(values: Any, dtype: Any) -> NDArray[Any]:
    """The array itself if it can be read as it lies, else a copy that can."""
    array = np.ascontiguousarray(values, dtype=dtype)
    return array if array.flags.aligned else array.copy()
