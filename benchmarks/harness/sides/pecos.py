# ruff: noqa: D102 - the methods are described in harness.sides.Side
"""PECOS XR-Linear; the options of a fit are for `XLinearModel.train`, those of a load for its `load`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from harness.arrays import as_indicator
from harness.sides import BEAM, TOP_K, Side, pad


class Pecos(Side):
    """PIFA label embedding, hierarchical k-means, one ranker per layer: the library's defaults."""

    package = "libpecos"

    def prepare_training(self, X: Any, Y: Any, n_labels: int, model: Path) -> Any:
        return X, as_indicator(Y, n_labels)

    def fit(self, data: Any) -> None:
        X, Y = data
        embedding = LabelEmbeddingFactory.create(Y, X, threads=self.threads)
        clusters = Indexer.gen(embedding, threads=self.threads)
        self.model = XLinearModel.train(X, Y, C=clusters, threads=self.threads, **self.options)

    def save(self, model: Path) -> None:
        self.model.save(str(model))

    def load(self, model: Path) -> None:
        self.model = XLinearModel.load(str(model), is_predict_only=True, **self.options)

    def predict_batch(self, batch: Any) -> Any:
        return self.model.predict(batch, only_topk=TOP_K, beam_size=BEAM, threads=self.threads)

    def top_labels(self, answers: Any) -> np.ndarray:
        rows = [answers[i] for i in range(answers.shape[0])]
        return pad([row.indices[np.argsort(-row.data, kind="stable")] for row in rows])


SIDE = Pecos
