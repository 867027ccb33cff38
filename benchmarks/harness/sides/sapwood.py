# ruff: noqa: D102 - the methods are described in harness.sides.Side
"""Our estimators: `estimator` in the options of a fit names one, LabelTreeClassifier if none; the other options are its
parameters. Those of a load are set after loading.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import sapwood
from harness.sides import TOP_K, Side


class Sapwood(Side):
    """The estimator as a user calls it."""

    package = "sapwood"

    def fit(self, data: Any) -> None:
        X, Y = data
        parameters = {"n_jobs": self.threads, "random_state": 0, **self.options}
        estimator = getattr(sapwood, parameters.pop("estimator", "LabelTreeClassifier"))
        self.model = estimator(**parameters).fit(X, Y)

    def save(self, model: Path) -> None:
        self.model.save(model)

    def load(self, model: Path) -> None:
        self.model = sapwood.load(model)
        self.model.set_params(n_jobs=self.threads, **self.options)

    def predict_batch(self, batch: Any) -> Any:
        return self.model.predict_topk(batch, k=TOP_K)

    def top_labels(self, answers: Any) -> np.ndarray:
        labels, _ = answers
        return np.asarray(labels, dtype=np.int64)


SIDE = Sapwood
