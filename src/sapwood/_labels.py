"""Labels of any kind, and the codes 0, 1, 2, ... that the core knows them by."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from sapwood._sparse import check_structure

Kind = Literal["multiclass", "indicator", "dense_indicator", "lists"]


@dataclass(frozen=True)
class Targets:
    """The labels of the rows of a training set.

    Attributes
    ----------
    kind : str
        How they were given: one label a row, a sparse or dense indicator, or lists of labels.
    classes : ndarray
        The labels in the order of their codes: sorted, or the columns of an indicator.
    indptr, codes : ndarray
        The codes of row i are ``codes[indptr[i]:indptr[i + 1]]``, none twice.
    dtype : dtype or None
        Of a dense indicator, to give predictions in the same.
    """

    kind: Kind
    classes: NDArray[Any]
    indptr: NDArray[np.int64]
    codes: NDArray[np.int32]
    dtype: np.dtype[Any] | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.indptr) - 1

    @property
    def mean_labels(self) -> float:
        """How many labels a row has on average."""
        return len(self.codes) / max(self.n_rows, 1)

    def counts(self) -> NDArray[np.int64]:
        """How many rows each label has."""
        return np.bincount(self.codes, minlength=len(self.classes))

    def as_indicator(self) -> Targets:
        """The same labels as the columns of an indicator, whatever they were given as."""
        return replace(self, kind="indicator", classes=np.arange(len(self.classes)), dtype=None)

    def indicator(self) -> Any:
        """Rows x labels, CSR of ones."""
        shape = (self.n_rows, len(self.classes))
        return sp.csr_matrix((np.ones(len(self.codes), np.float32), self.codes, self.indptr), shape=shape)


def read_targets(y: Any) -> Targets:
    """Read labels: one a row (1-D), a binary indicator (CSR or a 2-D array), or a list of labels for each row."""
    if sp.issparse(y):
        return _read_sparse(y)
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    if not isinstance(y, (list, tuple)):
        y = np.asarray(y)
    if holds_lists(y):
        return _read_dense(np.array([list(row) for row in y])) if _spells_indicator(y) else _read_lists(y)
    if not isinstance(y, np.ndarray):
        return _read_multiclass(y)
    if y.ndim == 2 and y.shape[1] == 1:
        message = "A column-vector y was passed when a 1d array was expected: it is taken as one label a row."
        warnings.warn(message, DataConversionWarning, stacklevel=3)
        y = y.ravel()
    if y.ndim == 2:
        return _read_dense(y)
    return _read_multiclass(y)


def holds_lists(y: Any) -> bool:
    """Whether y is a list (or object array) of lists of labels."""
    is_objects = isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1
    if not (isinstance(y, (list, tuple)) or is_objects) or len(y) == 0:
        return False
    return all(isinstance(row, (list, tuple, set, frozenset, np.ndarray)) for row in y)


def _spells_indicator(y: Sequence[Any]) -> bool:
    """Whether lists of one length hold zeros and ones, one of them twice in a row: no list of labels does that."""
    width = len(y[0])
    if width < 2 or any(isinstance(row, (set, frozenset)) or len(row) != width for row in y):
        return False
    digits = (0, 1)
    is_binary = all(
        isinstance(x, (bool, int, np.integer, np.bool_)) and x in digits for row in y for x in row
    )
    return is_binary and any(len(set(row)) < width for row in y)


def as_label_array(labels: Any) -> NDArray[Any]:
    """A 1-D array of int, float, bool or str labels; objects must be all strings or all numbers."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if array.dtype.kind == "O" or not (isinstance(labels, np.ndarray) or array.dtype.kind in "biu"):
        array = _alike(labels)
    if array.dtype.kind not in "biufU":
        raise ValueError(f"labels must be numbers or strings, not {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("Input y contains NaN or infinity.")
    return array


def _alike(labels: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Objects as an array of strings or of numbers: numpy would turn the 1 of [1, "a"] into "1"."""
    n_strings = sum(isinstance(label, str) for label in labels)
    if n_strings == len(labels):
        return np.asarray(labels, dtype=str) if n_strings else np.empty(0, dtype="<U1")
    for place, label in enumerate(labels):
        is_missing = n_strings > 0 and isinstance(label, float) and math.isnan(label)
        if is_missing or not isinstance(label, (str, int, float, np.number, np.bool_)):
            raise ValueError(f"labels must be numbers or strings, not {label!r} (place {place})")
    if n_strings:
        raise ValueError("labels mix strings and numbers: make them all of one kind")
    array = np.asarray(list(labels))
    if array.dtype.kind not in "biu" and all(isinstance(label, Integral) for label in labels):
        raise ValueError("y has labels that are too large: whole numbers must fit in 64 bits")
    return array


def _read_multiclass(y: Sequence[Any] | NDArray[Any]) -> Targets:
    labels = as_label_array(y)
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise ValueError("Unknown label type: continuous. Labels are whole numbers or strings.")
    classes, codes = np.unique(labels, return_inverse=True)
    return Targets("multiclass", classes, np.arange(len(labels) + 1), codes.astype(np.int32))


def _read_lists(y: Iterable[Any]) -> Targets:
    rows = [list(row) for row in y]
    sizes = np.array([len(row) for row in rows])
    flat = list(chain.from_iterable(rows))
    classes, codes = np.unique(as_label_array(flat), return_inverse=True)
    return _distinct("lists", classes, np.repeat(np.arange(len(rows)), sizes), codes, len(rows))


def _read_dense(y: NDArray[Any]) -> Targets:
    if y.dtype.kind not in "biuf" or not np.isin(y, (0, 1)).all():
        raise ValueError("a 2-D y must be an indicator of zeros and ones, rows x labels")
    rows, columns = np.nonzero(y)
    return _distinct("dense_indicator", np.arange(y.shape[1]), rows, columns, len(y), y.dtype)


def _read_sparse(y: Any) -> Targets:
    check_structure(y, "y")
    y = sp.coo_matrix(y)
    stored = y.data != 0
    if not np.isin(y.data[stored], (0, 1)).all():
        raise ValueError("a sparse y must be an indicator of zeros and ones, rows x labels")
    return _distinct("indicator", np.arange(y.shape[1]), y.row[stored], y.col[stored], y.shape[0])


def _distinct(
    kind: Kind,
    classes: NDArray[Any],
    rows: NDArray[Any],
    codes: NDArray[Any],
    n_rows: int,
    dtype: np.dtype[Any] | None = None,
) -> Targets:
    """Sort (row, code) pairs and drop repeats."""
    if len(classes) == 0:
        raise ValueError("y has no labels")
    keys = rows.astype(np.int64) * len(classes) + codes
    if not (keys[1:] > keys[:-1]).all():  # else in order and distinct, as most matrices are
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] > keys[:-1]])]
    indptr = np.searchsorted(keys, np.arange(n_rows + 1, dtype=np.int64) * len(classes))
    return Targets(kind, classes, indptr.astype(np.int64), (keys % len(classes)).astype(np.int32), dtype)
