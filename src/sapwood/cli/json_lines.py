"""Texts and labels from JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

INT64 = range(-(2**63), 2**63)
LABEL_FIELDS = ("label", "labels")


def read_json_lines(
    lines: Iterable[bytes], name: str, *, text_field: str, label_field: str | None, with_labels: bool
) -> tuple[list[str], Any]:
    """Read the texts and, `with_labels`, the labels: an array of one a row, or a list of lists.

    Errors call the file `name`.

    Without a `label_field`, labels are in `label` or `labels`, whichever the first row has.
    Blank lines are passed over.
    """
    texts: list[str] = []
    labels: list[Any] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _parse(line)
            texts.append(_text(row, text_field))
            if with_labels:
                label_field = label_field or next((name for name in LABEL_FIELDS if name in row), "label")
                labels.append(_label(row, label_field))
                _check_alike(labels[0], labels[-1], label_field)
        except ValueError as error:
            raise ValueError(f"{name}:{number}: {error}") from error
    if not with_labels:
        return texts, None
    _check_one_kind(name, labels)
    return texts, labels if labels and isinstance(labels[0], list) else np.asarray(labels)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from error
    if not isinstance(row, dict):
        raise ValueError("expected a JSON object")
    return row


def _field(row: dict[str, Any], name: str) -> Any:
    if name not in row:
        raise ValueError(f"no field {name!r}, only {', '.join(map(repr, row)) or 'an empty object'}")
    return row[name]


def _text(row: dict[str, Any], name: str) -> str:
    text = _field(row, name)
    if not isinstance(text, str):
        raise ValueError(f"field {name!r} must be a string")
    return text


def _label(row: dict[str, Any], name: str) -> Any:
    label = _field(row, name)
    for one in label if isinstance(label, list) else [label]:
        if not isinstance(one, str) and not (type(one) is int and one in INT64):
            raise ValueError(f"field {name!r} must hold strings or 64-bit integers")
    return label


def _check_alike(first: Any, label: Any, name: str) -> None:
    if isinstance(first, list) is not isinstance(label, list):
        raise ValueError(f"field {name!r} is a list in some rows and one label in others")


def _check_one_kind(name: str, labels: list[Any]) -> None:
    kinds = {type(one) for label in labels for one in (label if isinstance(label, list) else [label])}
    if len(kinds) > 1:
        raise ValueError(f"{name}: some labels are strings and some are integers")
