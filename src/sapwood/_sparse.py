"""Sparse matrices that are what they say. scipy trusts their arrays, and its conversions write where these point to."""

from __future__ import annotations

from typing import Any


def check_structure(matrix: Any, name: str) -> None:
    """Raise ValueError unless every index of a sparse matrix lies within it."""
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.copy().check_format(full_check=True)  # the copy, as scipy mends small things in place
        elif matrix.format == "coo":
            _check_coordinates(matrix)
    except ValueError as error:
        raise ValueError(f"{name} is damaged: {error}") from None


def _check_coordinates(matrix: Any) -> None:
    if not len(matrix.row) == len(matrix.col) == len(matrix.data):
        raise ValueError("its row, column and data arrays differ in length")
    for axis, indices, size in (
        ("row", matrix.row, matrix.shape[0]),
        ("column", matrix.col, matrix.shape[1]),
    ):
        if len(indices) and not 0 <= indices.min() <= indices.max() < size:
            raise ValueError(f"it has a {axis} index out of range")
