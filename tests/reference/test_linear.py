import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.reference.linear import (
    CONSTANT,
    RAW,
    Loss,
    Regressor,
    Rule,
    derivative,
    features_of,
    probability,
    sigmoid,
)

LOSSES: list[Loss] = ["squared", "logistic", "absolute"]


def loss_value(loss: Loss, score: float, target: float) -> float:
    if loss == "squared":
        return (score - target) ** 2 / 2
    if loss == "absolute":
        return abs(score - target)
    return math.log1p(math.exp(-target * score))


@pytest.mark.parametrize("loss", LOSSES)
@given(score=st.floats(-20, 20), target=st.sampled_from([-1.0, 1.0]))
def test_derivative_is_that_of_the_loss(loss: Loss, score: float, target: float) -> None:
    h = 1e-6
    if loss == "absolute" and abs(score - target) < 2 * h:
        return
    slope = (loss_value(loss, score + h, target) - loss_value(loss, score - h, target)) / (2 * h)
    assert derivative(loss, score, target) == pytest.approx(slope, abs=1e-4)


def test_absolute_loss_rests_at_its_target() -> None:
    assert derivative("absolute", 1.0, 1.0) == 0.0


@given(st.floats(allow_nan=False))
def test_sigmoid_never_overflows(z: float) -> None:
    assert 0.0 <= sigmoid(z) <= 1.0
    assert sigmoid(z) == pytest.approx(1.0 - sigmoid(-z))


@pytest.mark.parametrize("loss", LOSSES)
@given(score=st.floats(-3, 3))
def test_probabilities_of_both_sides_add_up(loss: Loss, score: float) -> None:
    assert probability(loss, score) + probability(loss, -score) == pytest.approx(1.0)


def test_sgd_step_by_hand() -> None:
    r = Regressor(Rule(loss="squared", method="sgd", step=0.5))
    r.learn(features_of([(3, 2.0)]), 1.0, 3.0)  # slope -1, d = -3 x
    assert r.weights == {(RAW, 3): np.float32(3.0), (RAW, CONSTANT): np.float32(1.5)}


def test_adagrad_step_by_hand() -> None:
    r = Regressor(Rule(loss="squared", method="adagrad", step=0.5, initial=1.0))
    r.learn(features_of([(3, 2.0)]), -1.0, 1.0)  # slope 1, d = x
    assert r.squares == {(RAW, 3): np.float32(5.0), (RAW, CONSTANT): np.float32(2.0)}
    assert r.weights[RAW, 3] == -np.float32(1.0) / np.sqrt(np.float32(5.0))
    assert r.weights[RAW, CONSTANT] == -np.float32(0.5) / np.sqrt(np.float32(2.0))


@pytest.mark.parametrize("method", ["sgd", "adagrad"])
@pytest.mark.parametrize("loss", LOSSES)
def test_everything_stays_float32(loss: Loss, method: str) -> None:
    r = Regressor(Rule(loss=loss, method=method))  # type: ignore[arg-type]
    x = features_of([(0, 0.1), (1, 0.2)])
    for _ in range(3):
        r.learn(x, 1.0, 0.3)
    assert type(r.score(x)) is np.float32
    assert {type(w) for w in (*r.weights.values(), *r.squares.values())} == {np.float32}


@given(st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=40), st.sampled_from([1, 4, 16]))
def test_score_adds_in_the_stated_order(values: list[float], lanes: int) -> None:
    r = Regressor(Rule(lanes=lanes))
    r.weights = {(RAW, j): np.float32(0.1 * (j + 1)) for j in range(len(values))}
    r.weights[RAW, CONSTANT] = np.float32(0.3)
    weights = np.array([*(0.1 * (j + 1) for j in range(len(values))), 0.3], dtype=np.float32)
    products = weights * np.array([*values, 1.0], dtype=np.float32)
    padded = np.zeros(-(-len(products) // lanes) * lanes, dtype=np.float32)
    padded[: len(products)] = products
    sums = np.zeros(lanes, dtype=np.float32)
    for block in padded.reshape(-1, lanes):
        sums += block
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    assert r.score(features_of(list(enumerate(values)))) == sums[0]


def test_path_features_are_learned_and_scored() -> None:
    r = Regressor(Rule(loss="squared", method="sgd", step=0.25))
    path = [((7, CONSTANT), np.float32(1)), ((7, 0), np.float32(2))]
    r.learn(features_of([(0, 2.0)]), 1.0, 1.0, path)
    assert r.weights == {(RAW, 0): 0.5, (RAW, CONSTANT): 0.25, (7, CONSTANT): 0.25, (7, 0): 0.5}
    assert r.score(features_of([(0, 2.0)]), path) == 2.5
    assert r.score(features_of([(0, 2.0)])) == 1.25


def test_reset_forgets_weights_and_step_state() -> None:
    r = Regressor(Rule())
    x = features_of([(0, 1.0)])
    r.learn(x, 1.0, 1.0)
    r.reset()
    fresh = Regressor(Rule())
    r.learn(x, -1.0, 1.0)
    fresh.learn(x, -1.0, 1.0)
    assert (r.weights, r.squares) == (fresh.weights, fresh.squares)


def test_bad_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        Rule(step=0.0)
    with pytest.raises(ValueError, match="positive"):
        Rule(initial=0.0)
    with pytest.raises(ValueError, match="power of two"):
        Rule(lanes=3)
