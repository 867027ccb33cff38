"""Linear regressors that learn one example at a time by a stated rule.

Weights, features and scores are float32 and every operation on them rounds to float32: one multiplication,
then one addition, never fused. The derivative of the loss is taken in float64 and rounded once. A core that
keeps to this order has the same scores to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Loss = Literal["squared", "logistic", "absolute"]
Row = Iterable[tuple[int, float]]  # (column, value), in the order in which they are stored
Feature = tuple[int, int]  # (node, column): RAW is the input itself, any other node a path feature
Features = Sequence[tuple[Feature, np.float32]]

RAW = -1
CONSTANT = -1  # the column that is 1 in every row

_ZERO = np.float32(0)
_ONE = np.float32(1)


@dataclass(frozen=True)
class Rule:
    """How a regressor learns.

    sgd:      w_j <- w_j - step * d_j
    adagrad:  g_j <- g_j + d_j^2;  w_j <- w_j - (step * d_j) / sqrt(g_j),  g_j = initial before the first time

    where d_j = (weight * loss'(score, target)) * x_j. `lanes` is the number of partial sums of a dot product:
    1 adds in the order of the row (sparse rows, one lane a regressor), 16 is the order of a dense kernel.
    Ours: a derivative nearer to 0 than `tolerance` teaches nothing.
    """

    loss: Loss = "logistic"
    method: Literal["sgd", "adagrad"] = "adagrad"
    step: float = 0.5
    initial: float = 0.01
    lanes: int = 1
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not self.step > 0 or not self.initial > 0:
            raise ValueError(f"step and initial must be positive, got {self.step} and {self.initial}")
        if self.lanes < 1 or self.lanes & (self.lanes - 1):
            raise ValueError(f"lanes must be a power of two, got {self.lanes}")


def features_of(row: Row) -> Features:
    """The raw features of a row, rounded to float32, and the constant, last."""
    features = [((RAW, column), np.float32(value)) for column, value in row]
    features.append(((RAW, CONSTANT), _ONE))
    return features


def derivative(loss: Loss, score: float, target: float) -> float:
    """The loss's derivative in the score, for a target of -1 or +1, in float64."""
    if loss == "squared":  # (score - target)^2 / 2
        return score - target
    if loss == "absolute":  # |score - target|; 0 where it has no derivative
        return float(score > target) - float(score < target)
    return -target * sigmoid(-target * score)  # ln(1 + exp(-target * score))


def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)), never through the exponential of a positive number."""
    if z > 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


def probability(loss: Loss, score: float) -> float:
    """A score as the probability of +1: the logistic function; 1/2 + score, clipped, for other losses."""
    if loss == "logistic":
        return sigmoid(score)
    return min(1.0, max(0.0, 0.5 + score))


class Regressor:
    """One linear regressor. It starts from nothing: no weight, no step state."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.weights: dict[Feature, np.float32] = {}
        self.squares: dict[Feature, np.float32] = {}  # adagrad: sums of squared d_j

    def reset(self) -> None:
        """Forget the weights and the step state."""
        self.weights.clear()
        self.squares.clear()

    def score(self, x: Features, path: Features = ()) -> np.float32:
        """w . x: partial sums over x, folded in halves, then the path features one after the other."""
        sums = [_ZERO] * self.rule.lanes
        for position, (feature, value) in enumerate(x):
            sums[position % self.rule.lanes] += self.weights.get(feature, _ZERO) * value
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [low + high for low, high in zip(sums[:half], sums[half:], strict=True)]
        total: np.float32 = sums[0]
        for feature, value in path:
            total += self.weights.get(feature, _ZERO) * value
        return total

    def learn(self, x: Features, target: float, weight: float, path: Features = ()) -> None:
        """One step towards a target of -1 or +1."""
        slope = derivative(self.rule.loss, float(self.score(x, path)), target)
        if abs(slope) < self.rule.tolerance:
            return
        scale = np.float32(weight * slope)
        for feature, value in (*x, *path):
            d = scale * value
            if d != 0:
                old = self.weights.get(feature, _ZERO)
                self.weights[feature] = old - self._step(feature, d)

    def _step(self, feature: Feature, d: np.float32) -> np.float32:
        step: np.float32 = np.float32(self.rule.step) * d
        if self.rule.method == "adagrad":
            square = self.squares.get(feature, np.float32(self.rule.initial)) + d * d
            self.squares[feature] = square
            step /= np.sqrt(square)
        return step
