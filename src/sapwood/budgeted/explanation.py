"""Why a row got its label: the few columns that were looked at, and what each of them said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True)
class Contribution:
    """What one column says of a row: `value` times `weight`.

    Attributes
    ----------
    feature : str
        Its name, or `x[j]`.
    value : float
        The row's entry, after the row was scaled to length 1 if the model does that.
    weight : float
        The classifier's weight, in the mean over the folds where there are several.
    """

    feature: str
    value: float
    weight: float

    @property
    def amount(self) -> float:
        """What it adds to the score."""
        return self.value * self.weight


@dataclass(frozen=True)
class Decision:
    """One classifier's say about a row.

    Attributes
    ----------
    node : int
        Its number in the model.
    score : float
        f(x): positive goes left. Where there are several folds, their mean.
    votes : int
        How many folds are positive; `folds` is how many there are.
    goes_left : bool
        What was decided: the majority of the folds.
    offset : float
        The part of the score that no column has.
    contributions : list of Contribution
        Of the columns that the row has, the largest first.
    """

    node: int
    score: float
    votes: int
    folds: int
    goes_left: bool
    offset: float
    contributions: list[Contribution]

    def __str__(self) -> str:
        terms = [f"{part.amount:+.3g} {part.feature}" for part in self.contributions]
        voted = f" ({self.votes} of {self.folds} votes)" if self.folds > 1 else ""
        sign = ">" if self.goes_left else "<="
        return f"{' '.join([*terms, f'{self.offset:+.3g}'])} = {self.score:.3g} {sign} 0{voted}"


@dataclass(frozen=True)
class BudgetedExplanation:
    """Why a row got its best label. `print` it.

    Attributes
    ----------
    label
        The label.
    score : float
        Its probability.
    steps : list of Decision
        What was decided on the way, root first.
    """

    label: Any
    score: float
    steps: list[Decision]

    def __str__(self) -> str:
        lines = [f"node {step.node}: {step}" for step in self.steps]
        return "\n".join([*lines, f"{self.label} ({self.score:.0%})"])


def feature_name(names: Sequence[str] | NDArray[Any] | None, column: int) -> str:
    """Name a column."""
    return f"x[{column}]" if names is None else str(names[column])


def entries(x: Any, *, normalize: bool) -> dict[int, float]:
    """Give the non-zero entries of the only row of a matrix, by column, as the core would read them."""
    if sp.issparse(x):
        row = sp.csr_matrix(x, dtype=np.float32, copy=True)
        row.sum_duplicates()
        columns, values = row.indices, row.data.astype(np.float64)
    else:
        dense = np.asarray(x, dtype=np.float32).reshape(-1)
        columns = np.flatnonzero(dense)
        values = dense[columns].astype(np.float64)
    length = float(np.sqrt(np.sum(values**2)))
    if normalize and length > 0:
        values = values / length
    return dict(zip(columns.tolist(), values.tolist(), strict=True))


def decide(
    node: int,
    x: dict[int, float],
    columns: NDArray[np.int32],
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
    names: Sequence[str] | NDArray[Any] | None,
) -> Decision:
    """Evaluate one classifier (columns x folds) on the entries of a row."""
    met = [place for place, column in enumerate(columns.tolist()) if column in x]
    values = np.array([x[int(columns[place])] for place in met])
    scores = offset + values @ weights[met]
    ballot, mean = int(np.sign(scores).sum()), float(scores.mean())
    contributions = [
        Contribution(feature_name(names, int(columns[place])), float(value), float(weights[place].mean()))
        for place, value in zip(met, values, strict=True)
    ]
    contributions.sort(key=lambda part: -abs(part.amount))
    return Decision(
        node=node,
        score=mean,
        votes=int(np.sum(scores > 0)),
        folds=len(scores),
        goes_left=ballot > 0 or (ballot == 0 and mean > 0),
        offset=float(offset.mean()),
        contributions=contributions,
    )
