"""The sides of a comparison, one module each; a module is imported only in the environment of its library."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

TOP_K = 5
BEAM = 10


class Side:
    """One library behind the calls that the worker makes.

    Only `fit`, `load`, `predict_batch` and `predict_row` are timed; the rest turns arrays into what the
    library takes and its answers into arrays. The default is a library that takes the arrays as they are.
    """

    package: str

    def __init__(self, options: dict[str, Any], threads: int) -> None:
        self.options = options
        self.threads = threads

    def seconds(self) -> float:
        """CPU seconds spent so far: the clock that the worker reads before and after a call.

        A side whose library cannot learn without parsing keeps a clock that stops while it parses.
        """
        return time.process_time()

    def prepare_training(self, X: Any, Y: Any, n_labels: int, model: Path) -> Any:
        """Give `fit` its argument. Y is 1-D for multiclass data, a CSR indicator for multilabel data."""
        return X, Y

    def fit(self, data: Any) -> None:
        """Learn from what `prepare_training` gave."""
        raise NotImplementedError

    def save(self, model: Path) -> None:
        """Write the fitted model, a file or a folder."""
        raise NotImplementedError

    def load(self, model: Path) -> None:
        """Read it again, in another process."""
        raise NotImplementedError

    def prepare_batch(self, X: Any) -> Any:
        """Give `predict_batch` its argument."""
        return X

    def prepare_row(self, row: Any) -> Any:
        """Give `predict_row` its argument; `row` is a CSR matrix of one row."""
        return row

    def predict_batch(self, batch: Any) -> Any:
        """Predict the best TOP_K labels of all rows."""
        raise NotImplementedError

    def predict_row(self, row: Any) -> Any:
        """Predict the best TOP_K labels of one row."""
        return self.predict_batch(row)

    def top_labels(self, answers: Any) -> np.ndarray:
        """Give the best TOP_K labels of each row of a batch, best first, -1 where there are fewer."""
        return pad(answers)


def of(name: str) -> type[Side]:
    """Import a side, and with it its library."""
    side: type[Side] = importlib.import_module(f"harness.sides.{name}").SIDE
    return side


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Write ragged lists of labels as an array of shape (rows, TOP_K), -1 where a list ends early."""
    labels = np.full((len(rows), TOP_K), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        labels[i, : len(row)] = row[:TOP_K]
    return labels
