"""The one source of random numbers: splitmix64, small enough to be restated in any language."""

from __future__ import annotations

_MASK = (1 << 64) - 1


class SplitMix64:
    """Steele, Lea and Flood (2014). Its whole state is one 64-bit number; all arithmetic is modulo 2^64."""

    def __init__(self, seed: int = 0) -> None:
        self.state = seed & _MASK

    def next(self) -> int:
        """A 64-bit number."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def uniform(self) -> float:
        """A float64 in [0, 1): the upper 53 bits."""
        return (self.next() >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        """A number in 0..n-1 for n <= 2^32: the upper 32 bits, scaled. Biased by less than n / 2^32."""
        return ((self.next() >> 32) * n) >> 32

    def permutation(self, n: int) -> list[int]:
        """0..n-1 in random order: Fisher and Yates from the end, one `below` a step."""
        order = list(range(n))
        for last in range(n - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
