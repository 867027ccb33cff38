"""How much weight of each label a node has seen, and what follows from it: top labels, entropy."""

from __future__ import annotations

import math


class LabelCounts:
    """Sums of importance weights per label, in float64, added in the order of arrival.

    Labels are codes, numbered as they are first seen. Wherever two labels tie, the lower code comes first.
    """

    def __init__(self) -> None:
        self.counts: dict[int, float] = {}
        self.total = 0.0
        self._sum_phi = 0.0  # sum of c ln c

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, label: int) -> float:
        return self.counts.get(label, 0.0)

    def add(self, label: int, weight: float) -> None:
        """Count an example."""
        self._sum_phi += phi_increase(self[label], weight)
        self.counts[label] = self[label] + weight
        self.total += weight

    def ranked(self) -> list[int]:
        """All labels, the heaviest first, ties to the lower code."""
        return sorted(self.counts, key=lambda label: (-self.counts[label], label))

    def top(self, size: int) -> list[int]:
        """The `size` heaviest labels."""
        return self.ranked()[:size]

    def top_mass(self, size: int) -> float:
        """Their weight, summed from the heaviest down."""
        mass = 0.0
        for label in self.top(size):
            mass += self.counts[label]
        return mass

    def heaviest(self) -> float:
        """max_i l(i)."""
        return max(self.counts.values(), default=0.0)

    def entropy(self) -> float:
        """H in nats, from sums kept in O(1): ln n - (sum c ln c) / n. Rounding never makes it negative."""
        if self.total == 0.0:
            return 0.0
        return max(0.0, math.log(self.total) - self._sum_phi / self.total)

    def cost(self, label: int, weight: float) -> float:
        """(n + w) H' - n H: what one more example of the label adds to the node's total entropy.

        With phi(a) = a ln a, n H = phi(n) - sum phi(c): all labels but one cancel, so it costs O(1) and two
        nodes with the same n and c have the same cost to the bit, whatever their histories.
        """
        return phi_increase(self.total, weight) - phi_increase(self[label], weight)


def phi_increase(a: float, w: float) -> float:
    """phi(a + w) - phi(a) for phi(a) = a ln a, without its cancellation."""
    if a == 0.0:
        return w * math.log(w)
    return a * math.log1p(w / a) + w * math.log(a + w)
