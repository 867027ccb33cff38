"""LabelTreeClassifier; the options of a fit are its parameters, those of a load are set after loading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import sapwood
from harness.sides import TOP_K, Side
from sapwood import LabelTreeClassifier


class Sapwood(Side):
    """The estimator as a user calls it."""

    package = "sapwood"

    def fit(self, data: Any) -> None:
        X, Y = data
        parameters = {"n_jobs": self.threads, "random_state": 0, **self.options}
        self.model = LabelTreeClassifier(**parameters).fit(X, Y)

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
