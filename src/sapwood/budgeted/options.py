"""What a budget-aware classifier can be told, checked, and in the form the core takes."""

from __future__ import annotations

from typing import Any, Protocol

from sapwood._parameters import check_choice, check_number, check_whole

MOST_STEPS = 2000
"""Proximal steps for the weights of the planes at hand, if `tol` is not reached before."""


class HasOptions(Protocol):
    """An estimator with the parameters of a budget-aware classifier."""

    budget: int
    C: float
    loss: str
    fit_offset: bool
    class_weight: str | None
    tol: float
    max_planes: int


def check_options(estimator: HasOptions) -> None:
    """Raise ValueError that names the first parameter out of its range."""
    check_whole("budget", estimator.budget, least=1)
    check_number("C", estimator.C, above=0)
    check_choice("loss", estimator.loss, ("squared_hinge", "logistic"))
    check_choice("class_weight", estimator.class_weight, (None, "balanced"))
    check_number("tol", estimator.tol, above=0)
    check_whole("max_planes", estimator.max_planes, least=1)


def core_options(estimator: HasOptions) -> dict[str, Any]:
    """Give the options as the core takes them."""
    return {
        "budget": int(estimator.budget),
        "C": float(estimator.C),
        "loss": estimator.loss,
        "fit_offset": bool(estimator.fit_offset),
        "balanced": estimator.class_weight == "balanced",
        "tol": float(estimator.tol),
        "max_planes": int(estimator.max_planes),
        "max_steps": MOST_STEPS,
    }
