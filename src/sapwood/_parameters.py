"""Checks of the parameters that users set."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

MOST_NUMBER = 3.4e38  # of a 32-bit float
MOST_WHOLE = 2**31 - 1


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float = MOST_NUMBER,
) -> None:
    """Raise ValueError unless `value` is a finite number within the bounds."""
    bounds = [f"above {above}"] * (above is not None) + [f"of at least {least}"] * (least is not None)
    bounds += [f"at most {most}"]
    wanted = " ".join(["a number", " and ".join(bounds)])
    ok = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    ok = ok and (above is None or value > above) and (least is None or value >= least) and value <= most
    if not ok:
        raise ValueError(f"{name} must be {wanted}, not {value!r}")


def check_whole(name: str, value: Any, *, least: int) -> None:
    """Raise ValueError unless `value` is a whole number of at least `least` that the core can count to."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if int(value) > MOST_WHOLE:
        raise ValueError(f"{name} must be at most {MOST_WHOLE}, not {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise ValueError unless `value` is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
