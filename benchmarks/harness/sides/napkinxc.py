# ruff: noqa: D102 - the methods are described in harness.sides.Side
"""napkinXC; `model` in the options names the class (PLT, BR), the rest are its parameters.

`"online_tree": "onlineBestScore"` makes of PLT the online PLT, which its Python module cannot name but can run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import napkinxc.models
import numpy as np

from harness.arrays import as_indicator
from harness.sides import TOP_K, Side


class NapkinXC(Side):
    """Its fit writes the model while it learns, so that time is counted; there is nothing left to save."""

    package = "napkinxc"

    def prepare_training(self, X: Any, Y: Any, n_labels: int, model: Path) -> Any:
        self.open(model)
        Y = as_indicator(Y, n_labels)
        return X, [row.tolist() for row in np.split(Y.indices, Y.indptr[1:-1])]

    def open(self, model: Path) -> None:
        """Make the model object: napkinXC ties it to its folder from the start."""
        parameters = {"threads": self.threads, "seed": 0, **self.options}
        model_class = getattr(napkinxc.models, parameters.pop("model"))
        online_tree = parameters.pop("online_tree", None)
        self.model = model_class(str(model), **parameters)
        if online_tree is not None:
            self.model._model.set_args(["--model", "oplt", "--treeType", online_tree])

    def fit(self, data: Any) -> None:
        self.model.fit(*data)

    def save(self, model: Path) -> None:
        pass

    def load(self, model: Path) -> None:
        self.open(model)
        self.model.load()

    def predict_batch(self, batch: Any) -> Any:
        return self.model.predict(batch, top_k=TOP_K)


SIDE = NapkinXC
