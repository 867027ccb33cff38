"""What every estimator with `partial_fit` keeps to: labels may appear at any time, and learning is a loop over rows."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from contract_cases import (
    N_LABELS,
    answers,
    is_reproducible,
    label_lists,
    make_rows,
    name_of,
    tensors,
    variants,
)
from sklearn.base import clone

import sapwood

X, CODES = make_rows()
# A stream in which half of the labels only appear after a third of the rows.
EARLY = np.flatnonzero(CODES < N_LABELS // 2)[:32]
ORDER = np.concatenate([EARLY, np.setdiff1d(np.arange(X.shape[0]), EARLY)])
X, LATE = X[ORDER], CODES[ORDER]
WEIGHT = np.random.default_rng(0).integers(0, 3, X.shape[0]).astype(np.float32)
WEIGHT[0] = 1
PASSES = 5
ONLINE = [estimator for estimator in variants() if hasattr(estimator, "partial_fit")]
every_reproducible = pytest.mark.parametrize(
    "estimator", [estimator for estimator in ONLINE if is_reproducible(estimator)], ids=name_of
)
every_online = pytest.mark.parametrize("estimator", ONLINE, ids=name_of)


def learned(estimator, bounds, labels=LATE, weight=None):
    """A model that has learned the rows in chunks that end at the bounds."""
    model = clone(estimator)
    for start, stop in zip([0, *bounds], [*bounds, X.shape[0]], strict=True):
        part = None if weight is None else weight[start:stop]
        model.partial_fit(X[start:stop], labels[start:stop], sample_weight=part)
    return model


@every_reproducible
def test_chunks_do_not_matter(estimator, tmp_path):
    once = learned(estimator, [], weight=WEIGHT)
    for bounds in ([1, 2, 50], range(1, X.shape[0])):
        parts = learned(estimator, bounds, weight=WEIGHT)
        assert tensors(parts, tmp_path) == tensors(once, tmp_path)
        assert parts.classes_.tolist() == once.classes_.tolist()
        assert answers(parts, X) == answers(once, X)
        assert parts.progressive_loss_ == once.progressive_loss_


@every_online
def test_progressive_loss_is_that_of_predicting_before_learning(estimator):
    model = clone(estimator).partial_fit(X[:1], LATE[:1], sample_weight=WEIGHT[:1])
    wrong = 1.0
    for i in range(1, X.shape[0]):
        if WEIGHT[i]:
            wrong += float(WEIGHT[i]) * (model.predict(X[i])[0] != LATE[i])
            model.partial_fit(X[i], LATE[i : i + 1], sample_weight=WEIGHT[i : i + 1])
    assert model.progressive_loss_ == wrong / WEIGHT.sum(dtype=np.float64)


@every_online
def test_fit_has_no_progressive_loss(estimator):
    model = clone(estimator)
    for unready in (model, clone(estimator).fit(X, LATE)):
        with pytest.raises(AttributeError, match="partial_fit"):
            _ = unready.progressive_loss_


@every_reproducible
def test_learning_goes_on_after_loading(estimator, tmp_path):
    whole = learned(estimator, [40])
    first = clone(estimator).partial_fit(X[:40], LATE[:40])
    first.save(tmp_path / "half.model")
    rest = sapwood.load(tmp_path / "half.model").partial_fit(X[40:], LATE[40:])
    assert tensors(rest, tmp_path) == tensors(whole, tmp_path)
    assert rest.progressive_loss_ == whole.progressive_loss_


@every_online
def test_labels_are_known_by_their_first_row(estimator):
    names = np.array([f"label {code:02d}" for code in range(N_LABELS)])[LATE]
    model = clone(estimator)
    for start, stop in pairwise((0, 1, 30, X.shape[0])):
        model.partial_fit(X[start:stop], names[start:stop])
        assert set(model.classes_) == set(names[:stop])
        assert set(model.predict(X)) <= set(names[:stop])
    for _ in range(PASSES):
        model.partial_fit(X, names)
    assert model.score(X, names) > 0.8


@every_online
def test_labels_seen_earlier_stay_as_they_were(estimator):
    """`classes_` grows in place: neither what was handed out before nor a copy may notice."""
    model = clone(estimator).partial_fit(X[:20], LATE[:20].astype(str))
    model.partial_fit(X[20:40], [f"{code} again" for code in LATE[20:40]])
    before, names = model.classes_, model.classes_.tolist()
    other = pickle.loads(pickle.dumps(model)).partial_fit(X[:1], ["other"])
    model.partial_fit(X[:2], ["new", "newer"])
    assert before.tolist() == names
    assert model.classes_.tolist() == [*names, "new", "newer"]
    assert other.classes_.tolist() == [*names, "other"]


@every_online
def test_a_refused_call_changes_nothing(estimator, tmp_path):
    model = clone(estimator).partial_fit(X[:40], LATE[:40])
    before = tensors(model, tmp_path), model.progressive_loss_, model.classes_.tolist()
    bad = X[40:].copy()
    bad.data[3] = np.nan
    for rows, labels in (
        (bad, LATE[40:]),
        (X[40:], LATE[:3]),
        (X[40:, :5], LATE[40:]),
        (X[40:], LATE[40:].astype(str)),
        (X[40:], LATE[40:].astype(np.uint64)),
    ):
        with pytest.raises(ValueError, match=r"NaN|samples|features|strings|uint64"):
            model.partial_fit(rows, labels)
        assert (tensors(model, tmp_path), model.progressive_loss_, model.classes_.tolist()) == before


@every_online
def test_several_labels_a_row(estimator):
    lists = label_lists(LATE)
    try:
        model = clone(estimator).partial_fit(X[:50], lists[:50])
    except ValueError as error:
        assert "label" in str(error)  # noqa: PT017 - a method for one label a row says so
        return
    model.partial_fit(X[50:], lists[50:])
    assert 0 <= model.progressive_loss_ <= 1
    predicted = model.predict(sp.csr_matrix(X))
    assert len(predicted) == X.shape[0]
    for _ in range(PASSES):
        model.partial_fit(X, lists)
    assert model.score(X, lists) > 0.8
