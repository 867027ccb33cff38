"""How an online tree came to its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RouterStep:
    """One router met on the way down.

    Attributes
    ----------
    node : int
        Its node.
    margin : float
        Its score: above 0 goes right.
    child : int
        The node that it sent the row to.
    """

    node: int
    margin: float
    child: int


@dataclass(frozen=True)
class TreeExplanation:
    """Why a row got its label.

    Attributes
    ----------
    label
        The label predicted.
    steps : list of RouterStep
        The routers from the root down.
    node : int
        The node where the way ended.
    candidates : list of (label, score)
        What that node answers with, best first.
    """

    label: Any
    steps: list[RouterStep]
    node: int
    candidates: list[tuple[Any, float]]
