"""`sapwood predict MODEL DATA`: the best labels of every row and their scores."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sapwood.cli.arguments import AsJson, Data, ModelFile, TextField
from sapwood.cli.console import status
from sapwood.cli.examples import read_examples
from sapwood.cli.files import check_writable
from sapwood.cli.model import load_model
from sapwood.io.files import replacing

TopK = Annotated[int, typer.Option("-k", min=1, help="How many labels a row.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write.", show_default="standard output"),
]

# Tabs and line ends would break a row in two.
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

Row = list[tuple[Any, str]]  # label and score, best first


def predict(
    model: ModelFile,
    data: Data,
    k: TopK = 5,
    output: Output = None,
    as_json: AsJson = False,
    text_field: TextField = "text",
) -> None:
    """Print the best labels of every row and their scores, a line a row: label, tab, score, tab, ..."""
    if output is not None:
        check_writable(output)
    trained = load_model(model)
    examples = read_examples(data, text_field=text_field, with_labels=False)
    rows = trained.rows(examples)
    with status("predicting"):
        labels, scores = trained.estimator.predict_topk(rows, k=min(k, len(trained.estimator.classes_)))
    write = _json_line if as_json else _tab_line
    with nullcontext(sys.stdout.buffer) if output is None else replacing(output) as file:
        file.writelines(write(row).encode() for row in _ranked(labels, scores))


def _ranked(labels: Any, scores: Any) -> Iterator[Row]:
    """Pair labels with scores; where a model had fewer than k to offer, the score is not finite."""
    for row_labels, row_scores in zip(labels.tolist(), scores.tolist(), strict=True):
        pairs: Iterable[tuple[Any, float]] = zip(row_labels, row_scores, strict=True)
        yield [(label, f"{score:.6g}") for label, score in pairs if np.isfinite(score)]


def _tab_line(row: Row) -> str:
    return "\t".join(f"{str(label).translate(ESCAPES)}\t{score}" for label, score in row) + "\n"


def _json_line(row: Row) -> str:
    line = {"labels": [label for label, _ in row], "scores": [float(score) for _, score in row]}
    return json.dumps(line, ensure_ascii=False) + "\n"
