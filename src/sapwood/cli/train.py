"""`sapwood train METHOD DATA -o MODEL`: one command for every method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import issparse

from sapwood import metrics
from sapwood.cli.arguments import Data, LabelField, TextField
from sapwood.cli.console import Stopwatch, say, status
from sapwood.cli.examples import Examples, read_examples
from sapwood.cli.files import check_writable
from sapwood.cli.methods import Method, Option
from sapwood.cli.model import Model
from sapwood.text import TextVectorizer

Output = Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Where the model is written.")]
Ngrams = Annotated[int, typer.Option(min=1, help="JSON Lines: longest run of words that makes a feature.")]

# Rows that sapwood.metrics.propensities needs.
FEWEST = 3


def train_command(method: Method) -> Callable[..., None]:
    """Make the command that trains `method`, with the estimator's own options after the common ones."""
    options = method.options()

    def command(
        data: Data,
        output: Output,
        text_field: TextField = "text",
        label_field: LabelField = None,
        ngrams: Ngrams = 1,
        **typed: Any,
    ) -> None:
        check_writable(output)
        estimator = method.create(options, typed)
        estimator._check_parameters()  # before the data are read, which may take a while
        examples = read_examples(data, text_field=text_field, label_field=label_field)
        model, rows = _prepared(estimator, examples, ngrams)
        say(f"{method.name} learns from {rows.shape[0]:,} examples of {rows.shape[1]:,} features")
        watch = Stopwatch()
        estimator.fit(rows, examples.labels)
        seconds = watch.seconds()
        replace(model, propensities=_propensities(estimator, examples.labels)).save(output)
        say(
            f"{len(estimator.classes_):,} labels learned in {seconds:.2f} s; wrote {output} ({_size(output)})"
        )

    return _with_options(command, options)


def _with_options(command: Callable[..., None], options: dict[str, Option]) -> Callable[..., None]:
    """Replace the `**typed` of `command` by one keyword for each option."""
    signature = inspect.signature(command, eval_str=True)
    common = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*common, *(option.parameter for option in options.values())]
    )
    return command


def _prepared(estimator: Any, examples: Examples, ngrams: int) -> tuple[Model, Any]:
    """Give the model to be trained and its feature rows."""
    if examples.rows is not None:
        return Model(estimator), examples.rows
    vectorizer = TextVectorizer(ngrams=ngrams)
    with status("making features of the texts"):
        rows = vectorizer.fit_transform(examples.texts)
    return Model(estimator, vectorizer), rows


def _propensities(estimator: Any, labels: Any) -> NDArray[np.float64] | None:
    """Give the propensity of each of the estimator's classes; none if there are too few rows to say."""
    if issparse(labels):
        return metrics.propensities(labels)[estimator.classes_] if labels.shape[0] >= FEWEST else None
    return metrics.propensities(labels, labels=estimator.classes_) if len(labels) >= FEWEST else None


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"
