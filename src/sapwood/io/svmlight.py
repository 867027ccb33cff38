"""The text format of svmlight and LIBSVM."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse

from sapwood import _core
from sapwood.io.files import Path, feed_file, parse_errors_name, write_file
from sapwood.io.matrices import (
    FeatureArrays,
    LabelArrays,
    check_same_length,
    feature_arrays,
    feature_matrix,
    label_arrays,
    label_blocks,
    label_matrix,
)


def read_svmlight(
    path: Path,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    multilabel: bool = False,
) -> tuple[csr_matrix, Any]:
    """Read svmlight text, plain or compressed with gzip.

    A line is ``label[,label...] [qid:id] index:value ... [# comment]``. Query ids are skipped, as are
    comments, which may hold any bytes, and lines with nothing else. Indices may stand in any order, as it
    means nothing, and are sorted (scikit-learn and LIBSVM refuse such rows); an index twice in a row is an
    error, as it is for them. Zeros that are written are stored.

    Parameters
    ----------
    path : str or path-like
        The file. Its first bytes tell whether it is compressed.
    n_features : int, optional
        The number of columns; by default, as many as the largest index needs. Give it to read a test set with
        the width of its training set.
    zero_based : bool or "auto", default "auto"
        Whether indices begin at 0 or at 1. "auto" takes them to begin at 1 unless a 0 occurs; it errs on a
        file that begins at 0 and whose first column is empty.
    multilabel : bool, default False
        Whether a row may have any number of labels, whole numbers from 0.

    Returns
    -------
    X : csr_matrix of float32, shape (n, n_features)
        Its indices are sorted.
    y : ndarray of float64, shape (n,), or csr_matrix of float32, shape (n, n_labels)
        The labels; with ``multilabel=True``, a matrix with a one in column j where a row has label j.

    Raises
    ------
    ParseError
        If the file is not svmlight text with finite numbers, or is empty. It tells line and column.

    Examples
    --------
    >>> import os, tempfile
    >>> from sapwood.io import read_svmlight
    >>> path = os.path.join(tempfile.mkdtemp(), "two.svm")
    >>> with open(path, "w") as file:
    ...     _ = file.write("7 1:0.5 3:2  # a comment\\n-1 2:0.25\\n")
    >>> X, y = read_svmlight(path)
    >>> X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]], dtype=float32)
    >>> y
    array([ 7., -1.])
    """
    if n_features is not None and not 0 <= n_features < 2**31:
        raise ValueError(f"n_features must be from 0 to {2**31 - 1}, not {n_features}")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', not {zero_based!r}")
    with parse_errors_name(path):
        parser = _core.SvmlightParser(
            n_features=None if n_features is None else index(n_features),
            zero_based=None if zero_based == "auto" else bool(zero_based),
            multilabel=bool(multilabel),
        )
        feed_file(parser, path)
        rows, targets, labels, width, n_labels = parser.finish()
    return feature_matrix(rows, width), label_matrix(labels, n_labels) if multilabel else targets


def write_svmlight(
    path: Path, X: ArrayLike | csr_matrix, y: ArrayLike | csr_matrix, *, zero_based: bool = False
) -> None:
    """Write svmlight text; what is read back is the same to the bit.

    The file appears complete or not at all: it is written under another name in the same folder and then
    renamed.

    Parameters
    ----------
    path : str or path-like
        The file. It is compressed with gzip if its name ends in ``.gz``.
    X : array-like or sparse matrix of shape (n, d)
        Written as float32, in the fewest digits that tell it from its neighbours. Zeros stored in a sparse
        matrix are written.
    y : array-like of shape (n,), or indicator matrix of shape (n, n_labels)
        One number per row, or a matrix whose non-zero columns are the labels of a row. The file does not tell
        how many columns a matrix has, nor can it hold a row that has neither labels nor features: see
        `write_xmc` for that.
    zero_based : bool, default False
        Whether the first column of X is called 0 in the file, or 1.

    Examples
    --------
    >>> import os, tempfile
    >>> from sapwood.io import write_svmlight
    >>> path = os.path.join(tempfile.mkdtemp(), "two.svm")
    >>> write_svmlight(path, [[0.5, 0, 2], [0, 1 / 3, 0]], [7, -1])
    >>> print(open(path).read(), end="")
    7 1:0.5 3:2
    -1 2:0.33333334
    """
    check_same_length(X, y, "y")
    rows = feature_arrays(X)
    if len(rows[2]) == 1:
        raise ValueError("X has no rows: svmlight text cannot say so")
    base = 0 if zero_based else 1
    if issparse(y) or np.ndim(y) == 2:
        write_file(path, label_blocks(_labels_without_empty_rows(y, rows), rows, base=base))
    else:
        write_file(path, _target_blocks(_targets(y), rows, base=base))


def _targets(y: ArrayLike) -> NDArray[np.float64]:
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        raise ValueError(
            f"y must be one number per row or a matrix, not {labels.dtype} of shape {labels.shape}"
        )
    targets = np.ascontiguousarray(labels, dtype=np.float64)
    if not np.isfinite(targets).all():
        raise ValueError(f"y is not finite in row {np.flatnonzero(~np.isfinite(targets))[0]}")
    if labels.dtype.kind in "iu" and not (targets.astype(labels.dtype) == labels).all():
        raise ValueError("y has whole numbers beyond 2**53, which a reader's float64 cannot tell apart")
    return targets


def _labels_without_empty_rows(Y: ArrayLike | csr_matrix, rows: FeatureArrays) -> LabelArrays:
    labels = label_arrays(Y)
    empty = np.flatnonzero((np.diff(labels[1]) == 0) & (np.diff(rows[2]) == 0))
    if len(empty) > 0:
        raise ValueError(
            f"row {empty[0]} has neither labels nor features, and readers skip blank lines: use write_xmc"
        )
    return labels


def _target_blocks(targets: NDArray[np.float64], rows: FeatureArrays, *, base: int) -> Iterator[bytes]:
    row = 0
    while row < len(targets):
        block, row = _core.write_target_rows(targets, *rows, row=row, base=base)
        yield block
