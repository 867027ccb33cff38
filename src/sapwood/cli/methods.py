"""The methods that can be trained, and the command-line options of each, from their signatures."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import typer
from rich.markup import escape

import sapwood

# Where a person at the keyboard is better served by another default than a program is.
DEFAULTS = {"verbose": 1}


@dataclass(frozen=True)
class Option:
    """One option of a method: how it is typed, and what the estimator makes of it."""

    parameter: inspect.Parameter
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Method:
    """An estimator that can be trained by name."""

    name: str
    estimator: type[Any]

    @property
    def summary(self) -> str:
        """First paragraph of the estimator's documentation."""
        return _joined((inspect.getdoc(self.estimator) or "").split("\n\n")[0].splitlines())

    def options(self) -> dict[str, Option]:
        """Give its options by parameter name, in the order of the signature."""
        documented = parameter_help(inspect.getdoc(self.estimator) or "")
        parameters = inspect.signature(self.estimator, eval_str=True).parameters.values()
        return {p.name: self._option(p, documented.get(p.name, "")) for p in parameters}

    def create(self, options: dict[str, Option], typed: dict[str, Any]) -> Any:
        """Make the estimator from what was typed."""
        given = {name: value for name, value in typed.items() if value is not None}
        return self.estimator(**{name: options[name].read(value) for name, value in given.items()})

    def _option(self, parameter: inspect.Parameter, text: str) -> Option:
        typed_as, read = _typed_as(parameter.annotation, parameter.default)
        default = DEFAULTS.get(parameter.name, parameter.default)
        if typed_as is Path or default is inspect.Parameter.empty:
            default = None
        if typed_as is Path:
            text = f"{text} A JSON file.".strip()
        info = typer.Option(
            str(default) if get_origin(typed_as) is Literal and default is not None else default,
            _flag(parameter.name, typed_as),
            help=escape(text),
            rich_help_panel=f"Options of {self.name}",
        )
        typed_as = typed_as | None if default is None else typed_as
        return Option(
            inspect.Parameter(
                parameter.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=typed_as
            ),
            read,
        )


def methods() -> list[Method]:
    """Give every public classifier of the package."""
    names = [name for name in sapwood.__all__ if name.endswith("Classifier")]
    return [Method(method_name(name), getattr(sapwood, name)) for name in names]


def method_name(class_name: str) -> str:
    """Name a method after its class: `LabelTreeClassifier` is `label-tree`."""
    words = re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", class_name.removesuffix("Classifier")
    )
    return words.lower()


def parameter_help(doc: str) -> dict[str, str]:
    """Take the description of every parameter from a numpydoc docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, flags=re.MULTILINE | re.DOTALL)
    described: dict[str, list[str]] = {}
    names: list[str] = []
    for line in section[1].splitlines() if section else []:
        if line[:1].strip():
            names = [name.strip(" *") for name in line.split(":")[0].split(",")]
        for name in names:
            described.setdefault(name, []).extend([line] if line[:1] == " " else [])
    return {name: _joined(lines) for name, lines in described.items()}


def _flag(name: str, typed_as: Any) -> str:
    words = name.replace("_", "-")
    return f"--{words}/--no-{words}" if typed_as is bool else f"--{words}"


def _typed_as(annotation: Any, default: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Give the type that is typed for a parameter so annotated, and how to read its value from it."""
    may_be_none = NoneType in get_args(annotation)
    kinds = set(get_args(annotation)) if get_origin(annotation) in (Union, UnionType) else {annotation}
    kinds.discard(NoneType)
    typeable = [kind for kind in kinds if get_origin(kind) is Literal or kind in (int, float, str, bool)]
    kind = typeable[0] if len(typeable) == 1 else None
    if kind in (int, float, str, bool):
        return kind, kind
    if get_origin(kind) is Literal:
        choices = {str(choice): choice for choice in get_args(kind)}
        if may_be_none and default is not None:  # else what is not typed is None
            choices["none"] = None
        return Literal[tuple(choices)], choices.__getitem__
    return Path, _read_json


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error})") from error


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines).strip()
