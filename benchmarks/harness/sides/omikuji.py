# ruff: noqa: D102 - the methods are described in harness.sides.Side
"""Omikuji; the options of a fit are its hyper-parameters, `{"densify": true}` at load buys speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from omikuji import Model, _ThreadPoolHandle, ffi, lib

from harness.arrays import as_indicator
from harness.sides import BEAM, TOP_K, Side, pad


class Omikuji(Side):
    """It trains from a text file only: writing and parsing that file are preparation, not part of the fit."""

    package = "omikuji"

    def prepare_training(self, X: Any, Y: Any, n_labels: int, model: Path) -> Any:
        text = model.with_suffix(".xmc")
        write_xmc(text, X, as_indicator(Y, n_labels))
        pool = _ThreadPoolHandle(self.threads)
        rows = lib.load_omikuji_data_set(str(text).encode(), pool.ptr)
        text.unlink()
        if rows == ffi.NULL:
            raise RuntimeError("Omikuji cannot load the training rows")
        return ffi.gc(rows, lib.free_omikuji_data_set), pool

    def fit(self, data: Any) -> None:
        rows, pool = data
        parameters = Model.default_hyper_param()
        for name, value in self.options.items():
            setattr(parameters, name, value)
        self.model = Model(lib.train_omikuji_model(rows, parameters, pool.ptr))

    def save(self, model: Path) -> None:
        self.model.save(str(model))

    def load(self, model: Path) -> None:
        self.model = Model.load(str(model))
        self.model.init_prediction_thread_pool(self.threads)
        if self.options.get("densify"):
            self.model.densify_weights(n_threads=self.threads)

    def prepare_batch(self, X: Any) -> Any:
        return [self.prepare_row(X[i]) for i in range(X.shape[0])]

    def prepare_row(self, row: Any) -> Any:
        return list(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def predict_batch(self, batch: Any) -> Any:
        # There is no call for a batch: a loop over rows is what its users write.
        return [self.predict_row(row) for row in batch]

    def predict_row(self, row: Any) -> Any:
        return self.model.predict(row, beam_size=BEAM, top_k=TOP_K)

    def top_labels(self, answers: Any) -> np.ndarray:
        return pad([[label for label, _ in row] for row in answers])


def write_xmc(path: Path, X: Any, Y: Any) -> None:
    """Write the XMC repository format, without a space after the labels of a row that has no features.

    Omikuji 0.5.2 splits at every single space and refuses the whole file for one such space.
    """
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for i in range(X.shape[0]):
            row = slice(X.indptr[i], X.indptr[i + 1])
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]))
            pairs = (f"{j}:{value:.9g}" for j, value in zip(X.indices[row], X.data[row], strict=True))
            file.write(" ".join([labels, *pairs]) + "\n")


SIDE = Omikuji
