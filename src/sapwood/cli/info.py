"""`sapwood info MODEL`: what a model file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sapwood.cli.arguments import AsJson, ModelFile
from sapwood.cli.model import Model, load_model

LABELS_SHOWN = 5


def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Tell what a model is: its method, options, labels, features and size."""
    facts = _facts(load_model(model), model)
    if as_json:
        print(json.dumps(facts, default=str))
    else:
        Console().print(_table(facts))


def _facts(model: Model, path: Path) -> dict[str, Any]:
    estimator = model.estimator
    labels = estimator.classes_.tolist()
    return {
        "estimator": type(estimator).__name__,
        "labels": len(labels),
        "first labels": labels[:LABELS_SHOWN],
        "features": int(estimator.n_features_in_),
        "text": model.vectorizer and model.vectorizer.settings(),
        "bytes": path.stat().st_size,
        "options": estimator.get_params(deep=False),
    }


def _table(facts: dict[str, Any]) -> Table:
    table = Table(show_header=False)
    for name, value in facts.items():
        table.add_row(name, escape(_shown(value)))
    return table


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name}={one!r}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
