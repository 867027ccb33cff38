"""`sapwood evaluate MODEL DATA`: how good the rankings of a model are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix

from sapwood import metrics
from sapwood.cli.arguments import AsJson, Data, LabelField, ModelFile, TextField
from sapwood.cli.console import Stopwatch, say, status
from sapwood.cli.examples import label_pairs, read_examples
from sapwood.cli.model import Model, load_model

DEPTHS = (1, 3, 5)

RANKING_SCORES = {
    "P": metrics.precision_at_k,
    "nDCG": metrics.ndcg_at_k,
    "recall": metrics.recall_at_k,
}


def evaluate(
    model: ModelFile,
    data: Data,
    as_json: AsJson = False,
    text_field: TextField = "text",
    label_field: LabelField = None,
) -> None:
    """Score a model on labelled examples: precision (plain, propensity-scored), nDCG, recall at 1, 3, 5."""
    trained = load_model(model)
    examples = read_examples(data, text_field=text_field, label_field=label_field)
    rows = trained.rows(examples)
    depths = [k for k in DEPTHS if k <= len(trained.estimator.classes_)]
    with status("predicting"):
        watch = Stopwatch()
        ranking, _ = trained.estimator.predict_topk(rows, k=depths[-1])
        seconds = watch.seconds()
    scores = _scores(trained, examples.labels, ranking, depths)
    if as_json:
        print(json.dumps({"examples": len(examples), "seconds": seconds, **scores}))
    else:
        Console().print(_table(scores, depths))
        say(f"{len(examples):,} examples, {1e6 * seconds / len(examples):.1f} microseconds to predict one")


def _scores(model: Model, labels: Any, ranking: Any, depths: list[int]) -> dict[str, float]:
    scores = {
        f"{name}@{k}": score(labels, ranking, k) for name, score in RANKING_SCORES.items() for k in depths
    }
    if model.propensities is not None:
        classes, weights = model.estimator.classes_, 1 / model.propensities
        known = _indicator(labels, classes)
        for k in depths:
            scores[f"psP@{k}"] = metrics.propensity_scored_precision_at_k(
                known, ranking, k, weights=weights, labels=classes
            )
    if isinstance(labels, np.ndarray):
        scores["accuracy"] = scores["P@1"]  # with one true label a row, they are one thing
    return scores


def _indicator(labels: Any, classes: Any) -> csr_matrix:
    """Mark the true labels among `classes`: a label that training never met has no propensity."""
    rows, values = label_pairs(labels)
    column = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([column.get(label, -1) for label in values.tolist()], dtype=np.int64)
    n_rows = labels.shape[0] if hasattr(labels, "shape") else len(labels)
    known = codes >= 0
    indicator = csr_matrix((np.ones(known.sum()), (rows[known], codes[known])), shape=(n_rows, len(classes)))
    indicator.data[:] = 1  # a label that stands twice in a row
    return indicator


def _table(scores: dict[str, float], depths: list[int]) -> Table:
    table = Table("%", *(f"@{k}" for k in depths))
    for column in table.columns[1:]:
        column.justify = "right"
    for name in dict.fromkeys(name.split("@")[0] for name in scores if "@" in name):
        table.add_row(name, *(f"{100 * scores[f'{name}@{k}']:.2f}" for k in depths))
    if "accuracy" in scores:
        table.add_section()
        table.add_row("accuracy", f"{100 * scores['accuracy']:.2f}")
    return table
