"""The same question put in any form gets the same answer."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from contract_cases import (
    N_FEATURES,
    N_LABELS,
    answers,
    every_estimator,
    every_multilabel_estimator,
    every_multilabel_variant,
    every_reproducible_variant,
    every_variant,
    indicator,
    label_lists,
    make_rows,
    one_of_each,
    takes_several_labels,
    tensors,
)
from sklearn.base import clone

import sapwood

X, CODES = make_rows()
NAMES = np.array([f"label {code:02d}" for code in range(N_LABELS)])


def forms(matrix):
    """One matrix in all forms that an estimator takes."""
    wide = matrix.astype(np.float64)
    yield "dense float32", matrix.toarray()
    yield "dense float64", wide.toarray()
    yield "Fortran order", np.asfortranarray(matrix.toarray())
    yield "strided", np.repeat(matrix.toarray(), 2, axis=1)[:, ::2]
    yield "read-only", frozen(matrix.toarray())
    yield "misaligned", misaligned(matrix.toarray())
    yield "nested lists", matrix.toarray().tolist()
    yield "CSR float64", wide
    yield "CSR array", sp.csr_array(matrix)
    yield "CSR 64-bit indices", with_indices(matrix, np.int64, np.int64)
    yield "CSR mixed indices", with_indices(matrix, np.int32, np.int64)
    yield "CSR float64, 64-bit indices", with_indices(wide, np.int64, np.int64)
    yield "CSC", matrix.tocsc()
    yield "COO", matrix.tocoo()
    yield "LIL", matrix.tolil()
    yield "big-endian", matrix.toarray().astype(">f4")


def with_indices(matrix, indices, indptr):
    out = matrix.copy()
    out.indices, out.indptr = out.indices.astype(indices), out.indptr.astype(indptr)
    return out


def frozen(array):
    array.flags.writeable = False
    return array


def misaligned(array):
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    out = np.ndarray(array.shape, np.float32, room, offset=1)
    out[:] = array
    assert not out.flags.aligned
    return out


@every_variant
def test_every_form_of_a_matrix_gets_the_same_answers(estimator):
    model = clone(estimator).fit(X, CODES)
    labels, scores = model.predict_topk(X, k=5)
    for name, matrix in forms(X):
        got = model.predict_topk(matrix, k=5)
        np.testing.assert_allclose(got[1], scores, rtol=1e-5, atol=1e-6, err_msg=name)
        assert (got[0][:, 0] == labels[:, 0]).all(), name


@every_reproducible_variant
def test_every_form_of_a_matrix_trains_the_same_model(estimator, tmp_path):
    model = clone(estimator).fit(X, CODES)
    state, scores = tensors(model, tmp_path), model.predict_proba(X)
    for name, matrix in forms(X):
        other = clone(estimator).fit(matrix, CODES)
        if sp.issparse(matrix):
            assert tensors(other, tmp_path) == state, name
        np.testing.assert_allclose(other.predict_proba(X), scores, atol=0.02, err_msg=name)


def labellings() -> list:
    return list(_labellings())


def _labellings():
    yield "int", CODES
    yield "negative", CODES - 6
    yield "uint8", CODES.astype(np.uint8)
    yield "large", CODES * 10**12
    yield "float", CODES.astype(np.float64)
    yield "str", NAMES[CODES]
    yield "object", NAMES[CODES].astype(object)
    yield "list of str", NAMES[CODES].tolist()
    yield "unicode", np.array([f"étiquette\0{code}日本" for code in range(N_LABELS)])[CODES]
    yield "bool", CODES % 2 == 0
    yield "two", CODES % 2


@pytest.mark.parametrize(("kind", "y"), labellings(), ids=[kind for kind, _ in labellings()])
@every_variant
def test_labels_of_any_kind(estimator, kind, y):
    model = clone(estimator).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(np.asarray(y)))
    predicted = model.predict(X)
    assert predicted.shape == (X.shape[0],)
    assert (predicted == np.asarray(y)).mean() > 0.9
    assert model.score(X, y) == (predicted == np.asarray(y)).mean()
    assert model.predict_topk(X, k=2)[0].dtype == model.classes_.dtype
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


def test_multilabel_forms_agree():
    lists = label_lists(CODES)
    dense = indicator(lists)
    for estimator in filter(takes_several_labels, one_of_each()):
        by_lists = clone(estimator).fit(X, lists)
        by_dense = clone(estimator).fit(X, dense)
        by_sparse = clone(estimator).fit(X, sp.csr_matrix(dense))
        by_nested = clone(estimator).fit(X, dense.tolist())
        predicted = by_dense.predict(X)
        assert isinstance(predicted, np.ndarray)
        assert predicted.dtype == dense.dtype
        assert (predicted == dense).mean() > 0.95
        sparse = by_sparse.predict(X)
        assert sp.issparse(sparse)
        np.testing.assert_array_equal(sparse.toarray(), predicted)
        np.testing.assert_array_equal(by_nested.predict(X), predicted)
        assert [sorted(row.tolist()) for row in by_lists.predict(X)] == [
            np.flatnonzero(row).tolist() for row in predicted
        ]
        assert (
            by_lists.score(X, lists) == by_dense.score(X, dense) == by_sparse.score(X, sp.csr_matrix(dense))
        )


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.lil_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
@every_multilabel_estimator
def test_indicators_of_any_form(estimator, form, dtype):
    dense = indicator(label_lists(CODES), dtype)
    expected = clone(estimator).fit(X, dense).predict_topk(X)
    got = clone(estimator).fit(X, form(dense)).predict_topk(X)
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], expected[1])


@every_multilabel_variant
def test_lists_of_strings_with_repeats_and_empty_rows(estimator):
    lists = [[NAMES[code] for code in labels] for labels in label_lists(CODES)]
    plain = clone(estimator).fit(X, lists)
    messy = [(*reversed(row), row[0]) if i % 2 else set(row) for i, row in enumerate(lists)]
    same = clone(estimator).fit(X, messy)
    assert answers(same, X) == answers(plain, X)
    lists[3] = lists[50] = []
    model = clone(estimator).fit(X, lists)
    assert answers(clone(estimator).fit(X, pd.Series(lists)), X) == answers(model, X)
    predicted = model.predict(X)
    assert len(predicted) == X.shape[0]
    assert all(row.dtype == NAMES.dtype for row in predicted)
    right = sum(set(got.tolist()) == set(wanted) for got, wanted in zip(predicted, lists, strict=True))
    assert right > 0.8 * len(lists)


@every_multilabel_estimator
def test_indicator_with_columns_and_rows_without_ones(estimator):
    dense = np.zeros((X.shape[0], 9), dtype=int)
    dense[::2, 4], dense[1::3, 7] = 1, 1
    model = clone(estimator).fit(X, dense)
    np.testing.assert_array_equal(model.classes_, np.arange(9))
    predicted, proba = model.predict(X), model.predict_proba(X)
    assert predicted.shape == proba.shape == dense.shape
    assert not predicted[:, [0, 1, 2, 3, 5, 6, 8]].any()


@every_variant
def test_rows_of_zeros(estimator):
    with_zeros = X.copy()
    with_zeros.data[: with_zeros.indptr[5]] = 0
    empty = sp.csr_matrix(X.shape, dtype=np.float32)
    model = clone(estimator).fit(with_zeros, CODES)
    for matrix in (empty, empty.toarray(), with_zeros):
        labels, scores = model.predict_topk(matrix, k=N_LABELS)
        assert np.isfinite(scores).all()
        assert all(len(set(row)) == N_LABELS for row in labels.tolist())
    blind = clone(estimator).fit(empty, CODES)
    assert np.isfinite(blind.predict_proba(X)).all()


@every_variant
def test_one_label(estimator):
    model = clone(estimator).fit(X, np.zeros(X.shape[0], dtype=int))
    assert model.predict(X).tolist() == [0] * X.shape[0]
    np.testing.assert_allclose(model.predict_proba(X), 1)
    assert model.predict_topk(X, k=7)[0].shape == (X.shape[0], 1)


@every_variant
def test_one_row(estimator):
    model = clone(estimator).fit(X[:1], ["oak"])
    assert model.predict(X[:3]).tolist() == ["oak"] * 3
    if not takes_several_labels(estimator):
        return
    several = clone(estimator).fit(X[:1], [["oak", "elm", "fir"]])
    assert sorted(several.predict_topk(X[:1])[0][0].tolist()) == ["elm", "fir", "oak"]


@every_variant
def test_one_column(estimator):
    column = X[:, :1].toarray() + np.float32(1)
    model = clone(estimator).fit(column, CODES)
    assert np.isfinite(model.predict_proba(column)).all()


@every_variant
@pytest.mark.parametrize("k", [1, 3, N_LABELS - 1, N_LABELS, N_LABELS + 1, 10**6, np.int64(4)])
def test_topk_of_any_size(estimator, k):
    model = clone(estimator).fit(X, CODES)
    labels, scores = model.predict_topk(X, k=k)
    assert labels.shape == scores.shape == (X.shape[0], min(k, N_LABELS))
    assert scores.dtype == np.float32
    assert (np.diff(scores, axis=1) <= 0).all()
    assert ((scores >= 0) & (scores <= 1 + 1e-6)).all()
    assert all(len(set(row)) == len(row) for row in labels.tolist())
    if k == 1:
        assert labels[:, 0].tolist() == model.predict(X).tolist()


@every_variant
@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None])
def test_topk_of_no_size(estimator, k):
    model = clone(estimator).fit(X, CODES)
    with pytest.raises(ValueError, match="k must be"):
        model.predict_topk(X, k=k)


# Weights


@every_reproducible_variant
def test_a_row_of_weight_zero_is_not_there(estimator):
    wrong = sp.vstack([X, X[:24]], format="csr")
    labels = np.concatenate([CODES, (CODES[:24] + 5) % N_LABELS])
    weight = np.concatenate([np.ones(len(CODES)), np.zeros(24)])
    # The shape of a tree may see such rows, the solver may not.
    single_root = {"max_leaf": 128, "n_trees": 1}
    known = estimator.get_params()
    estimator = clone(estimator).set_params(**{k: v for k, v in single_root.items() if k in known})
    expected = clone(estimator).fit(X, CODES).predict_proba(X)
    got = clone(estimator).fit(wrong, labels, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(got, expected, atol=0.02)


@every_reproducible_variant
def test_equal_weights_change_nothing(estimator):
    expected = clone(estimator).fit(X, CODES).predict_proba(X)
    got = clone(estimator).fit(X, CODES, sample_weight=np.ones(len(CODES))).predict_proba(X)
    np.testing.assert_allclose(got, expected, atol=1e-5)


@every_estimator
def test_weights_that_differ_matter(estimator):
    doubled = sp.vstack([X, X], format="csr")
    labels = np.concatenate([CODES, (CODES + 1) % N_LABELS])
    weight = np.concatenate([np.full(len(CODES), 0.01), np.full(len(CODES), 1.0)])
    model = clone(estimator).fit(doubled, labels, sample_weight=weight)
    assert (model.predict(X) == labels[len(CODES) :]).mean() > 0.9


# Copies


@every_variant
@pytest.mark.parametrize("kind", ["codes", "names", "lists", "indicator"])
def test_copies_give_the_same_answers_to_the_bit(estimator, kind, tmp_path):
    if kind in ("lists", "indicator") and not takes_several_labels(estimator):
        return
    lists = label_lists(CODES)
    y = {"codes": CODES, "names": NAMES[CODES], "lists": lists, "indicator": indicator(lists)}[kind]
    model = clone(estimator).fit(X, y)
    expected = answers(model, X)
    path = tmp_path / "oak.model"
    model.save(path)
    copies = [
        pickle.loads(pickle.dumps(model)),
        pickle.loads(pickle.dumps(model, protocol=2)),
        copy.deepcopy(model),
        copy.copy(model),
        sapwood.load(path),
        sapwood.load(path, mmap=False),
        sapwood.load(path, verify=False),
        pickle.loads(pickle.dumps(sapwood.load(path))),
    ]
    for other in copies:
        assert type(other) is type(model)
        assert other.classes_.dtype == model.classes_.dtype
        assert other.n_features_in_ == N_FEATURES
        assert answers(other, X) == expected
    sapwood.load(path).save(path)  # over the file it is mapped from
    assert answers(sapwood.load(path), X) == expected
    assert sapwood.load(path).get_params() == model.get_params()


@every_reproducible_variant
def test_a_loaded_model_can_be_fitted_again(estimator, tmp_path):
    model = clone(estimator).fit(X, CODES)
    model.save(tmp_path / "m")
    again = sapwood.load(tmp_path / "m").fit(X, NAMES[CODES])
    assert answers(again, X) == answers(clone(estimator).fit(X, NAMES[CODES]), X)


@every_estimator
def test_load_in_another_process(estimator, tmp_path):
    model = clone(estimator).fit(X, NAMES[CODES])
    model.save(tmp_path / "m")
    sp.save_npz(tmp_path / "x.npz", X)
    script = (
        "import sys, sapwood, scipy.sparse as sp; "
        "print(sapwood.load(sys.argv[1]).predict_proba(sp.load_npz(sys.argv[2])).tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "m", tmp_path / "x.npz"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == model.predict_proba(X).tobytes().hex()


@every_reproducible_variant
def test_the_same_seed_gives_the_same_model_for_any_n_jobs(estimator, tmp_path):
    expected = tensors(clone(estimator).fit(X, CODES), tmp_path)
    for n_jobs in (1, 2, 3, -1):
        model = clone(estimator).set_params(n_jobs=n_jobs).fit(X, CODES)
        assert tensors(model, tmp_path) == expected, n_jobs
        assert answers(model, X) == answers(clone(estimator).fit(X, CODES), X), n_jobs


@every_estimator
@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_n_jobs_that_is_none(estimator, n_jobs):
    with pytest.raises(ValueError, match="n_jobs"):
        clone(estimator).set_params(n_jobs=n_jobs).fit(X, CODES)


@every_estimator
def test_more_threads_than_anyone_has(estimator):
    model = clone(estimator).set_params(n_jobs=10**10).fit(X, CODES)
    assert answers(model, X) == answers(clone(estimator).fit(X, CODES), X)


# Threads and processes


@every_variant
def test_predicting_does_not_change_the_model(estimator, tmp_path):
    model = clone(estimator).fit(X, CODES)
    state, rest = tensors(model, tmp_path), set(vars(model))
    answers(model, X)
    model.score(X, CODES)
    assert tensors(model, tmp_path) == state
    assert set(vars(model)) == rest


@every_variant
def test_predicting_from_many_threads(estimator):
    model = clone(estimator).fit(X, CODES)
    expected = answers(model, X)
    many = sp.vstack([X] * 20, format="csr")  # above the size that gets a thread of its own
    expected_many = answers(model, many)
    with ThreadPoolExecutor(8) as pool:
        assert all(got == expected for got in pool.map(lambda _: answers(model, X), range(32)))
        assert all(got == expected_many for got in pool.map(lambda _: answers(model, many), range(8)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@every_estimator
def test_a_forked_child_predicts_and_trains(estimator):
    model = clone(estimator).set_params(n_jobs=2).fit(X, CODES)
    many = sp.vstack([X] * 20, format="csr")
    expected = answers(model, many)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        trained = clone(estimator).set_params(n_jobs=2).fit(X, CODES)
        sender.send([answers(model, many) == expected, answers(trained, many) == expected])

    child = context.Process(target=work)
    child.start()
    try:
        assert receiver.poll(60), "the child hangs or is dead"
        assert receiver.recv() == [True, True]
    finally:
        child.kill()
        child.join()
