"""Several passes over a set of examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sapwood.reference.linear import Row
from sapwood.reference.random import SplitMix64


class Learner(Protocol):
    """Anything that learns one example at a time."""

    def learn(self, x: Row, y: int, weight: float = 1.0) -> None:
        """Learn an example."""


def learn_passes(
    model: Learner,
    rows: Sequence[Row],
    labels: Sequence[int],
    weights: Sequence[float] | None = None,
    *,
    passes: int = 1,
    shuffle: SplitMix64 | None = None,
) -> None:
    """Learn the examples `passes` times: in order or, given random numbers, each time in a new order."""
    n = len(rows)
    for _ in range(passes):
        for i in shuffle.permutation(n) if shuffle is not None else range(n):
            model.learn(rows[i], labels[i], 1.0 if weights is None else weights[i])
