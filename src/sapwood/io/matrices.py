"""Between scipy's sparse matrices and the arrays of the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse

from sapwood import _core

FeatureArrays = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]
LabelArrays = tuple[NDArray[np.int32], NDArray[np.int64]]

_MAX_WIDTH = 2**31 - 1


def feature_matrix(arrays: FeatureArrays, n_features: int) -> csr_matrix:
    """Make a CSR matrix of rows that are sorted and without repeats."""
    values, indices, indptr = arrays
    X = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_features))
    X.has_canonical_format = True
    return X


def label_matrix(arrays: LabelArrays, n_labels: int) -> csr_matrix:
    """Make the CSR indicator of rows of labels.

    It is float32: its sums and its products with X neither overflow, as int8 would, nor widen.
    """
    indices, indptr = arrays
    return feature_matrix((np.ones(len(indices), dtype=np.float32), indices, indptr), n_labels)


def feature_arrays(X: ArrayLike | csr_matrix) -> FeatureArrays:
    """Check a matrix that is to be written, and take it apart."""
    X = _canonical(X, "X")
    with np.errstate(over="ignore"):
        values = X.data.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        row = int(np.searchsorted(X.indptr, first, side="right")) - 1
        raise ValueError(
            f"X has {X.data[first]} in row {row}, column {X.indices[first]}: only numbers that are finite "
            "as float32 can be written"
        )
    return values, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)


def label_arrays(Y: ArrayLike | csr_matrix) -> LabelArrays:
    """Take an indicator matrix apart; its labels are the columns that are not zero."""
    Y = _canonical(Y, "Y")
    if not Y.data.all():
        Y = Y.copy()
        Y.eliminate_zeros()
    return Y.indices.astype(np.int32, copy=False), Y.indptr.astype(np.int64, copy=False)


def label_blocks(labels: LabelArrays, rows: FeatureArrays, *, base: int) -> Iterator[bytes]:
    """Write rows as ``label,label... index:value ...``, the first column being called ``base``."""
    values, indices, indptr = rows
    row = 0
    while row < len(indptr) - 1:
        block, row = _core.write_label_rows(*labels, values, indices, indptr, row=row, base=base)
        yield block


def check_same_length(X: Any, y: Any, name: str) -> None:
    """Raise if the targets are not one per row of X."""
    if np.shape(X)[:1] != np.shape(y)[:1]:
        raise ValueError(f"X has shape {np.shape(X)} but {name} {np.shape(y)}: both must have the same rows")


def _canonical(matrix: ArrayLike | csr_matrix, name: str) -> csr_matrix:
    if not issparse(matrix) and np.ndim(matrix) != 2:
        raise ValueError(f"{name} must be a matrix, but has {np.ndim(matrix)} dimensions")
    rows = csr_matrix(matrix)
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, not {rows.dtype}")
    rows.check_format(full_check=True)
    if rows.shape[1] > _MAX_WIDTH:
        raise ValueError(f"{name} has {rows.shape[1]} columns; a file can hold {_MAX_WIDTH}")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
