# ruff: noqa: D102 - the methods are described in harness.sides.Side
"""Vowpal Wabbit. `method` in the options is one of its reductions to labels; `passes` and `step` are spelled alike
on all sides, `flags` are passed on as they are.

It is timed without its parser: examples are parsed PREPARED at a time, off the clock, which then runs while they are
learned or predicted by the direct calls of its Python module, without the checks of `Workspace.learn`. That is faster
than its own loop over a cache file minus a run with `--noop` (debian_maintainer, --recall_tree: 26 us, not 35).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from vowpalwabbit.pyvw import Example, Workspace, pylibvw

from harness.sides import TOP_K, Side, pad

PREPARED = 256  # as many as its own parser keeps ready
MULTILABEL = "plt"


class VW(Side):
    """One reduction of VW on one thread; only `plt` takes several labels a row, and only it ranks them."""

    package = "vowpalwabbit"

    def __init__(self, options: dict[str, Any], threads: int) -> None:
        super().__init__(options, threads)
        self.spent = 0.0

    def seconds(self) -> float:
        """CPU seconds spent learning and predicting, without parsing."""
        return self.spent

    def prepare_training(self, X: Any, Y: Any, n_labels: int, model: Path) -> Any:
        method = self.options["method"]
        loss = " --loss_function logistic" if method == MULTILABEL else ""
        flags = self.options.get("flags", "-b 24")
        step = f" -l {self.options['step']}" if "step" in self.options else ""
        self.workspace = Workspace(f"--{method} {n_labels} --quiet{loss}{step} {flags}")
        return lines(X, self._labels(Y))

    def _labels(self, Y: Any) -> list[str]:
        """Labels as it writes them: from 1, or for `plt` from 0 and with commas."""
        if self.options["method"] != MULTILABEL:
            return [str(code + 1) for code in Y.tolist()]
        if not sp.issparse(Y):
            return [str(code) for code in Y.tolist()]
        return [",".join(map(str, row.tolist())) for row in np.split(Y.indices, Y.indptr[1:-1])]

    def fit(self, data: Any) -> None:
        for _ in range(self.options.get("passes", 1)):
            for _ in self._timed(pylibvw.vw.learn, data):
                pass

    def _timed(self, call: Callable[[Workspace, Example], None], data: list[str]) -> Iterator[Example]:
        """Parse, call on the clock, give out the examples, release them."""
        workspace = self.workspace
        for start in range(0, len(data), PREPARED):
            examples = [workspace.parse(line) for line in data[start : start + PREPARED]]
            began = time.process_time()
            for example in examples:
                call(workspace, example)
            self.spent += time.process_time() - began
            yield from examples
            for example in examples:
                workspace.finish_example(example)

    def save(self, model: Path) -> None:
        self.workspace.save(str(model))

    def load(self, model: Path) -> None:
        ranked = f" --top_k {TOP_K} --loss_function logistic" if self._ranks() else ""
        self.workspace = Workspace(f"-t -i {model} --quiet{ranked}")

    def _ranks(self) -> bool:
        return bool(self.options["method"] == MULTILABEL)

    def prepare_batch(self, X: Any) -> Any:
        return lines(X, [""] * X.shape[0])

    def prepare_row(self, row: Any) -> Any:
        return self.prepare_batch(row)[0]

    def predict_batch(self, batch: Any) -> Any:
        kind = self.workspace.get_prediction_type()
        return [example.get_prediction(kind) for example in self._timed(pylibvw.vw.predict, batch)]

    def predict_row(self, row: Any) -> Any:
        return self.workspace.predict(row)  # from text: it has no other input

    def top_labels(self, answers: Any) -> np.ndarray:
        return pad(answers) if self._ranks() else pad([[code - 1] for code in answers])


def lines(X: Any, labels: list[str]) -> list[str]:
    """Write rows as its text."""
    indices, values, bounds = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
    text = []
    for label, a, b in zip(labels, bounds, bounds[1:], strict=False):
        pairs = (f"{j}:{value:.9g}" for j, value in zip(indices[a:b], values[a:b], strict=True))
        text.append(f"{label} | {' '.join(pairs)}")
    return text


SIDE = VW
