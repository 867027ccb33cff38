# ruff: noqa: D102 - the methods are described in harness.sides.Side
"""The online trees: `estimator` in the options names the class, the rest of a fit's options are its parameters.

They answer with one label a row, as Vowpal Wabbit does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import sapwood
import sapwood.online
from harness.sides import Side, pad


class SapwoodOnline(Side):
    """The estimator as a user calls it."""

    package = "sapwood"

    def fit(self, data: Any) -> None:
        X, Y = data
        options = dict(self.options)
        estimator = getattr(sapwood.online, options.pop("estimator"))
        self.model = estimator(n_jobs=self.threads, random_state=0, **options).fit(X, Y)

    def save(self, model: Path) -> None:
        self.model.save(model)

    def load(self, model: Path) -> None:
        self.model = sapwood.load(model)

    def predict_batch(self, batch: Any) -> Any:
        return self.model.predict(batch)

    def top_labels(self, answers: Any) -> np.ndarray:
        return pad(np.asarray(answers, dtype=np.int64)[:, None].tolist())


SIDE = SapwoodOnline
