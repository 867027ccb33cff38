"""`sapwood predict MODEL DATA`: the best labels of every row and their scores."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from sapwood._replacing import replacing
from sapwood.cli.arguments import AsJson, Data, ModelFile, TextField
from sapwood.cli.console import status
from sapwood.cli.examples import read_examples
from sapwood.cli.files import STANDARD_STREAM, check_writable
from sapwood.cli.model import load_model

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
    if output is not None and not _is_stream(output):
        check_writable(output)
    trained = load_model(model)
    examples = read_examples(data, text_field=text_field, with_labels=False)
    rows = trained.rows(examples)
    with status("predicting"):
        labels, scores = trained.estimator.predict_topk(rows, k=min(k, len(trained.estimator.classes_)))
    write = _json_line if as_json else _tab_line
    with _opened(output) as file:
        file.writelines(write(row).encode(errors="backslashreplace") for row in _ranked(labels, scores))


def _is_stream(output: Path) -> bool:
    """Whether it is written to and not replaced: /dev/stdout, say, or a pipe."""
    return output == STANDARD_STREAM or (output.exists() and not output.is_file() and not output.is_dir())


def _opened(output: Path | None) -> AbstractContextManager[BinaryIO]:
    if output is None or output == STANDARD_STREAM:
        return nullcontext(sys.stdout.buffer)
    return output.open("wb") if _is_stream(output) else replacing(output)


def _ranked(labels: Any, scores: Any) -> Iterator[Row]:
    for row_labels, row_scores in zip(labels.tolist(), scores.tolist(), strict=True):
        yield [(label, f"{score:.6g}") for label, score in zip(row_labels, row_scores, strict=True)]


def _tab_line(row: Row) -> str:
    return "\t".join(f"{str(label).translate(ESCAPES)}\t{score}" for label, score in row) + "\n"


def _json_line(row: Row) -> str:
    line = {"labels": [label for label, _ in row], "scores": [float(score) for _, score in row]}
    return json.dumps(line, ensure_ascii=False) + "\n"
