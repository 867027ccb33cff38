"""Label sets and the code lengths of section 6.3, shared by the two sparse coding trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

LabelSet = tuple[int, ...]
"""Labels of an example, ascending."""


def as_label_sets(Y: Any) -> list[LabelSet]:
    """Return one label set a row of Y: a CSR or dense indicator, or an iterable of label collections."""
    if sp.issparse(Y):
        Y = sp.csr_matrix(Y)
        rows = (Y.indices[a:b][Y.data[a:b] != 0] for a, b in zip(Y.indptr, Y.indptr[1:], strict=False))
    elif isinstance(Y, np.ndarray):
        rows = (np.flatnonzero(row) for row in Y)
    else:
        rows = iter(Y)
    return [tuple(sorted({int(label) for label in row})) for row in rows]


def as_indicator(sets: Sequence[LabelSet]) -> Any:
    """Return the CSR indicator of label sets, examples x labels."""
    indptr = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.intp)
    indices = np.array([label for s in sets for label in s], dtype=np.intp)
    width = int(indices.max()) + 1 if len(indices) else 0
    return sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(sets), width))


def entropy(counts: Iterable[int]) -> float:
    """Return H of section 6.3.1 in bits, for classes that are seen this often."""
    p = np.array([c for c in counts if c > 0], dtype=np.float64)
    p /= p.sum()
    return float(-np.sum(p * np.log2(p))) + 0.0
