"""DATA: what the command line reads, whichever way it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from sapwood import io
from sapwood.cli.console import status
from sapwood.cli.files import STANDARD_STREAM, open_data, readable_again
from sapwood.cli.json_lines import read_json_lines

# Whole numbers below this are exact in float64.
EXACT = 2**53


@dataclass(frozen=True, kw_only=True)
class Examples:
    """What one file holds: feature rows, or texts."""

    source: str
    kind: Literal["svmlight", "xmc", "jsonl"]
    rows: Any = None  # CSR
    texts: list[str] = field(default_factory=list)
    labels: Any = None  # one a row: array; several: CSR indicator or list of lists

    def __len__(self) -> int:
        return len(self.texts) if self.rows is None else int(self.rows.shape[0])


def read_examples(
    path: Path, *, text_field: str = "text", label_field: str | None = None, with_labels: bool = True
) -> Examples:
    """Read svmlight, XMC or JSON Lines, plain or gzip."""
    name = "standard input" if path == STANDARD_STREAM else str(path)
    with status(f"reading {name}"), readable_again(path) as file, _parse_errors_name(name):
        kind = _kind(file, path.name, name)
        if kind == "jsonl":
            with open_data(file, name) as lines:
                texts, labels = read_json_lines(
                    lines, name, text_field=text_field, label_field=label_field, with_labels=with_labels
                )
            examples = Examples(source=name, kind=kind, texts=texts, labels=labels)
        else:
            rows, labels = io.read_xmc(file) if kind == "xmc" else _read_svmlight(file)
            examples = Examples(source=name, kind=kind, rows=rows, labels=labels)
    if not len(examples):
        raise ValueError(f"{name}: the file has no rows")
    return examples


@contextmanager
def _parse_errors_name(name: str) -> Iterator[None]:
    """Let errors of the parsers call the file as the person does."""
    try:
        yield
    except io.ParseError as error:
        raise io.ParseError(name, error.line, error.column, error.message) from None


def _kind(file: Path, file_name: str, name: str) -> Literal["svmlight", "xmc", "jsonl"]:
    if file_name.endswith((".jsonl", ".jsonl.gz")):
        return "jsonl"
    with open_data(file, name) as lines:
        begin = lines.readline(100)
    if begin.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    header = begin.split()
    return "xmc" if len(header) == 3 and all(number.isdigit() for number in header) else "svmlight"


def _read_svmlight(path: Path) -> tuple[csr_matrix, Any]:
    """Read one label a row or, where a row has none or several, an indicator."""
    try:
        rows, labels = io.read_svmlight(path)
    except io.ParseError as single:
        try:
            return io.read_svmlight(path, multilabel=True)
        except io.ParseError as several:  # which way was meant? The one that reads further
            raise max(several, single, key=lambda error: (error.line, error.column)) from None
    # Integers as they are in all but odd cases: 3, not 3.0.
    whole = (labels == np.rint(labels)) & (np.abs(labels) < EXACT)
    return rows, labels.astype(np.int64) if whole.all() else labels


def label_pairs(labels: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """List every (row, label) of multiclass or multilabel `labels`."""
    if issparse(labels):
        pairs = labels.tocoo()
        given = pairs.data != 0
        return pairs.row[given].astype(np.int64), pairs.col[given].astype(np.int64)
    if isinstance(labels, np.ndarray):
        return np.arange(len(labels)), labels
    rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
    return rows, np.asarray([label for row in labels for label in row])
