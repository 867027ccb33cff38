"""The quality of a split and of a tree (LOMtree paper, section 2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sapwood.reference.label_counts import LabelCounts


class SplitQuality(NamedTuple):
    """Balance beta (Definition 2), purity factor alpha (Definition 1) and J(h) (equation 1)."""

    balance: float
    purity: float
    objective: float


def split_quality(routed: Mapping[int, float], right: Mapping[int, float]) -> SplitQuality | None:
    """From the weight of each label that a node routed and the part it sent right; None before the first."""
    total = math.fsum(routed.values())
    if total == 0.0:
        return None
    beta = math.fsum(right.values()) / total  # P(h(x) > 0)
    purity = objective = 0.0
    for label, weight in routed.items():
        pi = weight / total
        p = right.get(label, 0.0) / weight  # P(h(x) > 0 | label)
        purity += pi * min(p, 1.0 - p)
        objective += 2.0 * pi * abs(beta - p)
    return SplitQuality(beta, purity, objective)


def lemma_1_bound(quality: SplitQuality) -> float:
    """The largest purity factor that Lemma 1 allows.

    The proof takes beta <= 1/2 "without loss of generality", the printed bound does not: at beta = 1 it is
    negative. Here beta is the smaller side.
    """
    beta = min(quality.balance, 1.0 - quality.balance)
    if beta <= 0.0:
        return 0.5
    return min((2.0 - quality.objective) / (4.0 * beta) - beta, 0.5)


def tree_entropy(leaves: Iterable[LabelCounts]) -> float:
    """G_t (section 2.3): the leaves' entropies in nats, weighted by their shares of the examples."""
    seen = [leaf for leaf in leaves if leaf.total > 0.0]
    total = math.fsum(leaf.total for leaf in seen)
    return math.fsum(leaf.total / total * leaf.entropy() for leaf in seen)
