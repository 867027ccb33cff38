"""What the two kinds of drawing share: which nodes are drawn, and what is written on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.inspect.table import ABSENT, Columns, HasNodes, nodes


@dataclass(frozen=True)
class Drawing:
    """The nodes down to a depth, parents before their children, siblings in their order.

    `children` holds the nodes drawn below each; `hidden` how many nodes are left out there.
    """

    table: Columns
    order: list[int]
    children: dict[int, list[int]]
    hidden: dict[int, int]
    captions: Sequence[Sequence[str]] | None = None

    def caption(self, node: int) -> list[str]:
        """The short lines written on a node."""
        if self.captions is not None:
            return list(self.captions[node])
        lines = [f"{node}"]
        if "majority" in self.table and self.table["majority"][node] is not None:
            lines.append(_cut(str(self.table["majority"][node])))
        elif "question" in self.table:
            lines.append(_cut(str(self.table["question"][node])))
        if "examples" in self.table:
            lines.append(_number(self.table["examples"][node]))
        elif "n_labels" in self.table:
            lines.append(f"{self.table['n_labels'][node]} labels")
        return lines

    def slots(self) -> dict[int, float]:
        """Where each node stands: those without children side by side, the others midway above their children."""
        slot: dict[int, float] = {}
        bare = [node for node in self.order if not self.children[node]]
        slot.update({node: float(place) for place, node in enumerate(bare)})
        for node in reversed(self.order):  # children before their parents
            children = self.children[node]
            if children:
                slot[node] = (slot[children[0]] + slot[children[-1]]) / 2
        return slot

    def figures(self, node: int) -> list[str]:
        """All that is known of a node, a line a figure."""
        known = [(name, column[node]) for name, column in self.table.items()]
        return [f"{name} {_number(value)}" for name, value in known if _is_worth_saying(value)]


def draw(model: HasNodes, max_depth: int, captions: Sequence[Sequence[str]] | None = None) -> Drawing:
    """Choose the nodes to draw."""
    if max_depth < 0:
        raise ValueError(f"max_depth must be 0 or more, not {max_depth}")
    table = nodes(model)
    below = _children(table)
    order: list[int] = []
    children: dict[int, list[int]] = {}
    hidden: dict[int, int] = {}
    stack = np.flatnonzero(table["parent"] == ABSENT)[::-1].tolist()
    while stack:
        node = stack.pop()
        order.append(node)
        children[node] = below[node] if table["depth"][node] < max_depth else []
        if not children[node] and below[node]:
            hidden[node] = _count(node, below)
        stack += children[node][::-1]
    return Drawing(table, order, children, hidden, captions)


def _children(table: Columns) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in table["node"]]
    for node in np.lexsort((table["place"], table["parent"])).tolist():
        parent = table["parent"][node]
        if parent != ABSENT:
            children[parent].append(node)
    return children


def _count(node: int, below: list[list[int]]) -> int:
    """How many nodes stand below one."""
    count, stack = 0, [node]
    while stack:
        children = below[stack.pop()]
        count += len(children)
        stack += children
    return count


def _is_worth_saying(value: Any) -> bool:
    return value is not None and not (isinstance(value, (np.floating, float)) and not np.isfinite(value))


def _number(value: Any) -> str:
    """A figure in four digits, anything else as it is."""
    if isinstance(value, (np.floating, float)):
        return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"
    return str(value)


def _cut(text: str, longest: int = 14) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def shades(drawing: Drawing, by: str | None) -> NDArray[np.float64]:
    """For each node a number from 0 to 1: where its figure lies between the smallest and the largest drawn."""
    table = drawing.table
    if by is None:
        by = next(name for name in ("entropy", "depth") if name in table)
    if by not in table or table[by].dtype.kind not in "fib":
        figures = [name for name, column in table.items() if column.dtype.kind in "fib"]
        raise ValueError(f"color must be one of {', '.join(figures)}, not {by!r}")
    values = np.asarray(table[by], dtype=np.float64)
    drawn = values[drawing.order]
    low, high = (np.nanmin(drawn), np.nanmax(drawn)) if np.isfinite(drawn).any() else (0.0, 0.0)
    if high == low:
        return np.zeros(len(values))
    return np.nan_to_num(np.clip((values - low) / (high - low), 0.0, 1.0))
