"""What a tree records: its decisions while learning, and the account of one prediction."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from sklearn.exceptions import NotFittedError

Kind = Literal["route", "target", "split", "swap", "stop", "candidates", "grow"]


class Event(NamedTuple):
    """One decision: `nodes` and `labels` are exact, and so are `numbers` (sums of weights, targets).

    route       nodes (from, to)
    target      nodes (router,); numbers: the target of each lane, 0 where nothing is learned
    split       nodes (leaf, its new children ...)
    swap        nodes (j, s, s_PA, s_GPA, s_SIB); numbers (C_j, max_i l_j(i), C_s, C_r)
    stop        nodes (where it stopped, the child it did not enter)
    candidates  nodes (where,); labels: the candidates in order
    grow        nodes (the leaf that was split, left, right); labels: the label now left, the label now right
    """

    example: int  # 0 for the first example learned
    kind: Kind
    nodes: tuple[int, ...]
    labels: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()


class Trace:
    """The decisions of a tree in order, if asked for."""

    def __init__(self, wanted: bool) -> None:
        self.events: list[Event] = []
        self.example = -1
        self._wanted = wanted

    def add(
        self,
        kind: Kind,
        nodes: tuple[int, ...],
        labels: tuple[int, ...] = (),
        numbers: tuple[float, ...] = (),
    ) -> None:
        """Note a decision about the example being learned."""
        if self._wanted:
            self.events.append(Event(self.example, kind, nodes, labels, numbers))


Ranking = list[tuple[int, float]]  # (label, score), the best first


class Step(NamedTuple):
    """One router met on the way down: its scores (one for two children, one a child for more)."""

    node: int
    margins: tuple[float, ...]
    child: int


class Explanation(NamedTuple):
    """How a prediction came about. `node` is where the descent ended."""

    steps: tuple[Step, ...]
    node: int
    stopped: Literal["leaf", "recall", "empty child"]
    ranking: Ranking

    @property
    def label(self) -> int:
        """The label predicted."""
        return self.ranking[0][0]


def check_weight(weight: float) -> None:
    """An importance weight is finite and not negative."""
    if not math.isfinite(weight) or weight < 0.0:
        raise ValueError(f"weight must be finite and not negative, got {weight}")


def check_learned(labels: int) -> None:
    """Nothing can be predicted before something has been learned."""
    if labels == 0:
        raise NotFittedError("this tree has learned no example yet; call learn first")
