"""A trained model as the command line keeps it: the estimator and what it needs to read DATA."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood import model_file
from sapwood.cli.examples import Examples
from sapwood.text import TextVectorizer


@dataclass(frozen=True)
class Model:
    """An estimator, its vectorizer if it reads text, and the propensities of its labels."""

    estimator: Any
    vectorizer: TextVectorizer | None = None
    propensities: NDArray[np.float64] | None = None  # in the order of the estimator's classes_

    def rows(self, examples: Examples) -> Any:
        """Give the feature rows of `examples`, as wide as the model."""
        if examples.kind == "jsonl":
            if self.vectorizer is None:
                raise ValueError(f"{examples.source}: the model was trained on feature vectors, not on text")
            return self.vectorizer.transform(examples.texts)
        if self.vectorizer is not None:
            raise ValueError(f"{examples.source}: the model was trained on text: give it JSON Lines")
        return self._widened(examples)

    def save(self, path: Path) -> None:
        """Write everything to one file."""
        tensors: dict[str, NDArray[Any]] = {}
        metadata: dict[str, Any] = {}
        if self.propensities is not None:
            tensors["propensities"] = self.propensities
        if self.vectorizer is not None:
            metadata["text"] = self.vectorizer.settings()
            tensors |= {f"text.{name}": tensor for name, tensor in self.vectorizer.tensors().items()}
        self.estimator.save(path, extra_tensors=tensors, extra_metadata=metadata)

    def _widened(self, examples: Examples) -> Any:
        rows, width = examples.rows, self.estimator.n_features_in_
        # svmlight does not state its width, so its last features may be missing from a file.
        if rows.shape[1] > width or (rows.shape[1] < width and examples.kind == "xmc"):
            raise ValueError(
                f"{examples.source}: the rows have {rows.shape[1]} features, the model was trained on {width}"
            )
        rows.resize(rows.shape[0], width)
        return rows


def load_model(path: Path) -> Model:
    """Read what `Model.save` wrote, or what an estimator saved by itself."""
    estimator = sapwood.load(path)
    stored = model_file.read(path, verify=False)  # sapwood.load has done so
    text = stored.metadata.get("text")
    tensors = {
        name.removeprefix("text."): tensor
        for name, tensor in stored.tensors.items()
        if name.startswith("text.")
    }
    return Model(
        estimator=estimator,
        vectorizer=None if text is None else TextVectorizer.from_state(text, tensors),
        propensities=stored.tensors.get("propensities"),
    )
