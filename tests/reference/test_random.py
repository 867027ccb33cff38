from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sapwood.reference.random import SplitMix64


def test_published_vector() -> None:
    source = SplitMix64(1234567)
    assert [source.next() for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**32))
def test_ranges(seed: int, n: int) -> None:
    source = SplitMix64(seed)
    assert 0.0 <= source.uniform() < 1.0
    assert 0 <= source.below(n) < n


@given(st.integers(0, 2**64 - 1), st.integers(0, 50))
def test_permutation_holds_every_number_once(seed: int, n: int) -> None:
    assert sorted(SplitMix64(seed).permutation(n)) == list(range(n))


def test_permutations_are_equally_likely() -> None:
    source = SplitMix64(3)
    seen = Counter(tuple(source.permutation(3)) for _ in range(3000))
    assert len(seen) == 6
    assert min(seen.values()) > 400
