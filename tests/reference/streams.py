"""Streams of examples: drawn by hypothesis one by one (short, shrinks well) or from a seed (long)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

Pairs = list[tuple[int, float]]


class Example(NamedTuple):
    x: Pairs
    y: int
    weight: float


UNIT = (1.0,)
WEIGHTS = (0.25, 1.0, 2.0, 3.0)

_values = st.sampled_from([-2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 2.0])
_rows = st.dictionaries(st.integers(0, 4), _values, max_size=4).map(lambda row: sorted(row.items()))


def streams(weights: tuple[float, ...] = UNIT, longest: int = 160) -> st.SearchStrategy[list[Example]]:
    """Any stream: up to ten labels."""
    example = st.builds(Example, _rows, st.integers(0, 9), st.sampled_from(weights))
    drawn = st.lists(example, min_size=1, max_size=30)
    seeded = st.builds(
        seeded_stream, st.integers(0, 10**6), st.integers(1, longest), st.integers(1, 10), st.just(weights)
    )
    return st.one_of(drawn, seeded)


def seeded_stream(seed: int, length: int, labels: int, weights: tuple[float, ...] = UNIT) -> list[Example]:
    """Runs of one label between mixed stretches, so that leaves grow old and are left behind."""
    rng = np.random.default_rng(seed)
    stream: list[Example] = []
    y = 0
    for _ in range(length):
        if rng.random() < 0.6:
            y = int(rng.integers(labels))
        x = [(j, float(rng.normal() + (y >> j & 1))) for j in range(4) if rng.random() < 0.8]
        stream.append(Example(x, y, float(rng.choice(weights))))
    return stream


def dense_problem(
    labels: int, learn: int, test: int, columns: int = 12, noise: float = 0.35
) -> tuple[list[Example], list[Example]]:
    """Noisy copies of one random direction a label."""
    rng = np.random.default_rng(7)
    directions = rng.standard_normal((labels, columns))
    y = rng.integers(0, labels, learn + test)
    x = directions[y] + noise * rng.standard_normal((learn + test, columns))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    examples = [
        Example(list(enumerate(row.tolist())), int(label), 1.0) for row, label in zip(x, y, strict=True)
    ]
    return examples[:learn], examples[learn:]
