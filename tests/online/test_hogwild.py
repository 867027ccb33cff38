"""`parallel="hogwild"`: no two models are the same, but counts are exact, trees are sound, and errors are alike."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import sapwood
from sapwood import LOMTreeClassifier, RecallTreeClassifier, model_file

N_LABELS, N_ROWS, N_COLUMNS = 60, 4000, 300


def make_rows(seed):
    """Rows of three columns that tell the label and five that do not; few labels have most rows."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(2, N_LABELS + 2)
    labels = random.choice(N_LABELS, N_ROWS, p=share / share.sum())
    columns = np.hstack(
        [4 * labels[:, None] + random.integers(0, 4, (N_ROWS, 3)), random.integers(0, N_COLUMNS, (N_ROWS, 5))]
    )
    values = random.uniform(0.5, 1, columns.shape).astype(np.float32)
    rows = np.repeat(np.arange(N_ROWS), columns.shape[1])
    X = sp.csr_matrix((values.ravel(), (rows, columns.ravel())), shape=(N_ROWS, N_COLUMNS))
    return X, labels


X, LABELS = make_rows(0)
X_TEST, LABELS_TEST = make_rows(1)
CASES = [
    RecallTreeClassifier(random_state=0),
    RecallTreeClassifier(max_candidates=6, arity=2, path_features="path", cross_path=True, random_state=0),
    LOMTreeClassifier(random_state=0),
    LOMTreeClassifier(max_internal=90, swap_resistance=1, random_state=0),
]
every_case = pytest.mark.parametrize("estimator", CASES, ids=repr)


def hogwild(estimator, n_jobs=2, **kwargs):
    return clone(estimator).set_params(parallel="hogwild", n_jobs=n_jobs, **kwargs)


def tensors(model, path):
    model.save(path)
    return {name: t.tobytes() for name, t in model_file.read(path).tensors.items()}


@every_case
def test_errors_are_alike(estimator):
    def mean_error(one):
        return 1 - np.mean([one.fit(X, LABELS).score(X_TEST, LABELS_TEST) for _ in range(3)])

    alone = mean_error(clone(estimator))
    assert alone < 0.5
    for n_jobs in (2, 3):
        assert abs(mean_error(hogwild(estimator, n_jobs)) - alone) < 0.08


@every_case
def test_progressive_loss_is_alike(estimator):
    alone = clone(estimator).partial_fit(X, LABELS).progressive_loss_
    assert abs(hogwild(estimator).partial_fit(X, LABELS).progressive_loss_ - alone) < 0.08


@every_case
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_exact(estimator, weighted):
    weight = np.random.default_rng(0).integers(0, 3, N_ROWS) if weighted else np.ones(N_ROWS)
    model = hogwild(estimator, passes=2).fit(X, LABELS, sample_weight=weight)
    state = model._model.core.state()
    at_root = slice(*state["node_labels"][:2])
    counted = dict(
        zip(state["labels"][at_root], state["l" if "l" in state else "counts"][at_root], strict=True)
    )
    expected = 2 * np.bincount(LABELS, weight)
    assert counted == {label: count for label, count in enumerate(expected) if count}
    assert state["total"][0] == 2 * weight.sum()


@pytest.mark.parametrize("case", [2, 3])
def test_a_lom_tree_keeps_its_invariants(case):
    model = hogwild(CASES[case]).fit(X, LABELS)
    tree = model._model.core.tree()
    internal = np.flatnonzero(tree["left"] >= 0)
    assert len(internal) > 20
    assert len(internal) <= 90 or case == 2
    np.testing.assert_array_equal(
        tree["C"][internal], np.minimum(tree["C"][tree["left"][internal]], tree["C"][tree["right"][internal]])
    )
    assert (tree["C"] >= tree["floor"]).all()
    assert tree["recycles"].any() or case == 2


@every_case
def test_one_thread_learns_as_without(estimator, tmp_path):
    expected = tensors(clone(estimator).fit(X, LABELS), tmp_path / "one")
    for n_jobs in (None, 1):
        assert tensors(hogwild(estimator, n_jobs).fit(X, LABELS), tmp_path / "other") == expected


@every_case
def test_a_model_goes_on_after_loading(estimator, tmp_path):
    model = hogwild(estimator).partial_fit(X[:2000], LABELS[:2000])
    model.save(tmp_path / "half.model")
    again = sapwood.load(tmp_path / "half.model")
    assert again.parallel == "hogwild"
    np.testing.assert_array_equal(again.predict(X_TEST), model.predict(X_TEST))
    again.partial_fit(X[2000:], LABELS[2000:])
    assert again.score(X_TEST, LABELS_TEST) > 0.4


def test_dense_rows():
    for estimator in (RecallTreeClassifier(random_state=0), LOMTreeClassifier(random_state=0)):
        assert hogwild(estimator).fit(X.toarray(), LABELS).score(X_TEST.toarray(), LABELS_TEST) > 0.5


@every_case
def test_ctrl_c(estimator):
    model = hogwild(estimator).fit(X, LABELS)
    before = model.predict(X_TEST)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            model.set_params(passes=10**9).fit(X, LABELS)
            time.sleep(5)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    np.testing.assert_array_equal(model.predict(X_TEST), before)


def test_what_is_refused():
    with pytest.raises(ValueError, match="parallel must be one of None, 'hogwild', not 'pipeline'"):
        RecallTreeClassifier(parallel="pipeline").fit(X, LABELS)
    model = hogwild(LOMTreeClassifier()).partial_fit(X[:100], LABELS[:100])
    model._model.core.record()
    with pytest.raises(ValueError, match="records its events"):
        model.partial_fit(X[:100], LABELS[:100])
