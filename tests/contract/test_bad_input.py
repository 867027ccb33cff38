"""Bad input gets an exception that says what is wrong, and the model is as it was."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from contract_cases import (
    N_LABELS,
    answers,
    every_estimator,
    every_reproducible_variant,
    make_rows,
    tensors,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

X, CODES = make_rows()
DENSE = X.toarray()


def with_value(value, row=3, column=5):
    dense = DENSE.copy()
    dense[row, column] = value
    return dense


def csr(data, indices, indptr, shape):
    """CSR without scipy's checks."""
    out = sp.csr_matrix(shape, dtype=np.float32)
    out.data = np.asarray(data, dtype=np.float32)
    out.indices, out.indptr = np.asarray(indices, dtype=np.int32), np.asarray(indptr, dtype=np.int32)
    return out


def spoiled(part, at, value, form=X):
    out = form.copy()
    getattr(out, part)[at] = value
    return out


def bad_matrices():
    one = with_value(np.nan)
    yield "NaN", one, r"NaN.*row 3, column 5"
    yield "infinity", with_value(np.inf), r"infinity.*row 3, column 5"
    yield "minus infinity", with_value(-np.inf), r"infinity.*row 3, column 5"
    yield "NaN in float64", one.astype(np.float64), r"NaN.*row 3, column 5"
    yield "too large for float32", with_value(0).astype(np.float64) + 1e300, r"infinity"
    yield "NaN in CSR", sp.csr_matrix(one), r"NaN.*row 3, column 5"
    yield "NaN in CSR float64", sp.csr_matrix(one.astype(np.float64)), r"NaN.*row 3, column 5"
    yield "negative index", spoiled("indices", 7, -1), "negative"
    yield "index beyond the columns", spoiled("indices", 7, X.shape[1]), "beyond|column"
    yield "index far beyond the columns", spoiled("indices", 7, 2**31 - 1), "beyond|column"
    yield "64-bit index beyond", with_wide_indices(2**40), "beyond|column"
    yield "64-bit index negative", with_wide_indices(-(2**40)), "negative"
    yield "CSR float64 negative index", spoiled("indices", 7, -1, X.astype(np.float64)), "negative"
    yield "indptr descends", spoiled("indptr", 4, 10**6), "indptr"
    yield "indptr negative", spoiled("indptr", 0, -5), "indptr"
    yield "indptr runs over the end", spoiled("indptr", -1, 10**8), "indptr"
    yield "indptr too short", csr(X.data, X.indices, X.indptr[:-1], X.shape), "indptr"
    yield "indptr too long", csr(X.data, X.indices, [*X.indptr, X.indptr[-1]], X.shape), "indptr"
    yield "indptr empty", csr([], [], [], X.shape), "indptr"
    yield "data too short", csr(X.data[:-1], X.indices, X.indptr, X.shape), "differ"
    yield "indices too short", csr(X.data, X.indices[:-1], X.indptr, X.shape), "differ"
    yield "CSC with a row beyond", spoiled("indices", 7, 10**6, X.tocsc()), "indices|index|row"
    yield "CSC with a negative row", spoiled("indices", 7, -(10**6), X.tocsc()), "indices|index|row"
    yield "CSC with a wild indptr", spoiled("indptr", 4, 10**6, X.tocsc()), "indptr|index"
    yield "COO with a row beyond", spoiled("row", 7, 10**6, X.tocoo()), "row|index"
    yield "COO with a negative column", spoiled("col", 7, -(10**6), X.tocoo()), "column|index"
    yield "no rows", DENSE[:0], "0 sample"
    yield "no columns", DENSE[:, :0], "0 feature"
    yield "no rows in CSR", X[:0], "0 sample"
    yield "no columns in CSR", X[:, :0], "0 feature"
    yield "1-D", DENSE[0], "2D"
    yield "3-D", DENSE[None], "dim"
    yield "strings", DENSE.astype(str), "string|number"
    yield "bytes", DENSE.astype("S"), "bytes|string|number"
    yield "objects", np.full(X.shape, object()), "float|number|object"
    yield "objects that are strings", np.full(X.shape, "1.5", dtype=object), "string|float|number"
    yield "complex", DENSE.astype(complex), "[Cc]omplex"
    yield "complex CSR", X.astype(complex), "[Cc]omplex"
    yield "dates", np.zeros(X.shape, dtype="datetime64[s]"), "number|datetime|dtype"
    yield "records", np.zeros(X.shape, dtype=[("a", "f4")]), "number|dtype|void"
    yield "ragged", [[1.0, 2.0], [1.0]], "inhomogeneous|sequence"
    yield "None", None, "None|array"
    yield "text", "oak", "array|string|number"
    yield "a number", 3.5, "array|scalar"


def with_wide_indices(value):
    out = X.copy()
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    out.indices[7] = value
    return out


BAD = list(bad_matrices())


@pytest.mark.parametrize(("name", "matrix", "message"), BAD, ids=[name for name, *_ in BAD])
@every_estimator
def test_bad_matrix(estimator, name, matrix, message, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError), match=message):
            clone(estimator).fit(matrix, CODES)
        model = clone(estimator).fit(X, CODES)
        state, expected = tensors(model, tmp_path), answers(model, X)
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(matrix, CODES)
        for predict in (model.predict, model.predict_topk, model.predict_proba):
            with pytest.raises((ValueError, TypeError), match=message):
                predict(matrix)
    assert tensors(model, tmp_path) == state
    assert answers(model, X) == expected


@every_estimator
def test_other_width_than_fitted(estimator):
    model = clone(estimator).fit(X, CODES)
    for matrix in (X[:, :-1], sp.hstack([X, X], format="csr"), DENSE[:, :-1], np.hstack([DENSE, DENSE])):
        with pytest.raises(ValueError, match=f"{matrix.shape[1]} features, but .* is expecting {X.shape[1]}"):
            model.predict(matrix)


@every_reproducible_variant
def test_columns_out_of_order_or_named_twice(estimator, tmp_path):
    backwards = X.copy()
    doubled = []
    for row in range(X.shape[0]):
        here = slice(*X.indptr[row : row + 2])
        backwards.indices[here] = X.indices[here][::-1]
        backwards.data[here] = X.data[here][::-1]
        doubled.append((np.repeat(X.data[here] / 2, 2), np.repeat(X.indices[here], 2)))
    twice = csr(
        np.concatenate([d for d, _ in doubled]),
        np.concatenate([i for _, i in doubled]),
        2 * X.indptr,
        X.shape,
    )
    model = clone(estimator).fit(X, CODES)
    state, expected = tensors(model, tmp_path), answers(model, X)
    for matrix in (backwards, twice, backwards.astype(np.float64), twice.astype(np.float64)):
        before = matrix.indices.copy()
        assert answers(model, matrix) == expected
        assert tensors(clone(estimator).fit(matrix, CODES), tmp_path) == state
        np.testing.assert_array_equal(matrix.indices, before)  # the user's own stays as it is


@every_estimator
def test_a_matrix_that_only_says_that_it_is_in_order(estimator):
    model = clone(estimator).fit(X, CODES)
    liar = X.copy()
    assert liar.has_canonical_format  # scipy keeps the answer
    for row in range(X.shape[0]):
        here = slice(*X.indptr[row : row + 2])
        liar.indices[here] = X.indices[here][::-1]
        liar.data[here] = X.data[here][::-1]
    assert answers(model, liar) == answers(model, X)


def bad_targets():
    n = len(CODES)
    yield "too few", CODES[:-1], "inconsistent"
    yield "too many", np.append(CODES, 1), "inconsistent"
    yield "too few lists", [[1]] * (n - 1), "inconsistent"
    yield "too few rows of an indicator", np.eye(n - 1, 3, dtype=int), "inconsistent"
    yield "None", None, "None"
    yield "empty", [], "y|label|sample"
    yield "a number", 3, "1d|array|label|list"
    yield "a string", "oak", "1d|array|label|list"
    yield "NaN", np.where(CODES == 1, np.nan, CODES), "NaN"
    yield "infinity", np.where(CODES == 1, np.inf, CODES), "NaN or infinity"
    yield "fractions", CODES + 0.5, "continuous|Unknown label type"
    yield "complex", CODES.astype(complex), "label"
    yield "dates", CODES.astype("datetime64[s]"), "label"
    yield "bytes", CODES.astype("S"), "label|bytes"
    yield "None among strings", ["oak", None] * (n // 2), "labels must .* not None .*1"
    yield "None among numbers", [1, None] * (n // 2), "labels must .* not None .*1"
    yield "NaN among strings", ["oak", np.nan] * (n // 2), "labels must .* not nan .*1"
    yield "numbers of 65 bits", [2**63, -1] * (n // 2), "64 bits"
    yield "strings among numbers", ["oak", 1] * (n // 2), "mix"
    yield "strings among numbers in objects", np.array(["oak", 1] * (n // 2), dtype=object), "mix"
    yield "strings among numbers in lists", [["oak"], [1]] * (n // 2), "mix"
    yield "numbers too large", [2**70] * n, "64 bits"
    yield "lists without labels", [[]] * n, "no labels"
    yield "lists in lists", [[[1]], [[2]]] * (n // 2), "1d|label|inhomogeneous|shape"
    yield "lists and labels", [[1], 2] * (n // 2), "label|inhomogeneous|sequence"
    yield "lists with NaN", [[1.0], [np.nan]] * (n // 2), "NaN"
    yield "dicts", [{"a": 1}] * n, "label"
    yield "indicator of twos", np.full((n, 3), 2), "indicator|multioutput|label"
    yield "indicator of NaN", np.full((n, 3), np.nan), "indicator|NaN|label"
    yield "indicator of nothing", np.zeros((n, 3)), "no labels"
    yield "indicator without columns", np.zeros((n, 0)), "no labels|label"
    yield "indicator of strings", np.full((n, 3), "a"), "indicator|label"
    yield "3-D", np.zeros((n, 2, 2)), "1d|indicator|shape|label"
    sparse = sp.csr_matrix(np.eye(n, N_LABELS))
    yield "sparse of twos", 2 * sparse, "indicator"
    yield "sparse of nothing", sp.csr_matrix((n, 3)), "no labels"
    yield "sparse without columns", sp.csr_matrix((n, 0)), "no labels"
    yield "sparse, column beyond", spoiled("indices", 1, N_LABELS, sparse), "index|indices|column"
    yield "sparse, column far beyond", spoiled("indices", 1, 2**31 - 1, sparse), "index|indices|column"
    yield "sparse, column negative", spoiled("indices", 1, -3, sparse), "index|indices|column"
    yield "sparse, wild indptr", spoiled("indptr", 3, 10**6, sparse), "indptr|index"
    yield "sparse, negative indptr", spoiled("indptr", 3, -(10**6), sparse), "indptr|index"
    yield "sparse COO, row beyond", spoiled("row", 1, 10**6, sparse.tocoo()), "row|index"
    yield "sparse CSC, row beyond", spoiled("indices", 1, 10**6, sparse.tocsc()), "index|indices|row"


BAD_TARGETS = list(bad_targets())


@pytest.mark.parametrize(("name", "y", "message"), BAD_TARGETS, ids=[name for name, *_ in BAD_TARGETS])
@every_estimator
def test_bad_labels(estimator, name, y, message, tmp_path):
    model = clone(estimator).fit(X, CODES)
    state, expected = tensors(model, tmp_path), answers(model, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(X[:, :20], y)
    assert tensors(model, tmp_path) == state
    assert answers(model, X) == expected


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(len(CODES)), "zero"),
        (np.ones(len(CODES) - 1), "sample_weight|inconsistent"),
        (np.ones((len(CODES), 2)), "1D|1d|dim"),
        (-np.ones(len(CODES)), "[Nn]egative"),
        (np.full(len(CODES), np.nan), "NaN"),
        (np.full(len(CODES), np.inf), "infinity"),
        (np.full(len(CODES), 1e300), "infinity|large"),
        (["heavy"] * len(CODES), "float|string|convert"),
    ],
    ids=["zeros", "too few", "2-D", "negative", "NaN", "infinity", "too large", "strings"],
)
@every_estimator
def test_bad_weights(estimator, weight, message, tmp_path):
    model = clone(estimator).fit(X, CODES)
    state, expected = tensors(model, tmp_path), answers(model, X)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, CODES, sample_weight=weight)
    assert tensors(model, tmp_path) == state
    assert answers(model, X) == expected


@every_reproducible_variant
@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1e-10, 1e10, 1e18, 1e30, 3e37])
def test_rows_of_any_size(estimator, scale):
    """Large and small numbers learn as well as middling ones, as each row is scaled to length 1."""
    scaled = (DENSE.astype(np.float64) * scale).astype(np.float32)
    if scale > 1e-40:
        model = clone(estimator).fit(scaled, CODES)
        np.testing.assert_allclose(
            model.predict_proba(scaled), clone(estimator).fit(X, CODES).predict_proba(X), atol=0.02
        )
    else:
        assert np.isfinite(clone(estimator).fit(scaled, CODES).predict_proba(scaled)).all()


@every_estimator
def test_not_fitted(estimator, tmp_path):
    for call in (
        lambda: estimator.predict(X),
        lambda: estimator.predict_topk(X),
        lambda: estimator.predict_proba(X),
        lambda: estimator.score(X, CODES),
        lambda: estimator.save(tmp_path / "m"),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not (tmp_path / "m").exists()


@every_estimator
def test_explain_takes_one_row(estimator):
    with pytest.raises(NotFittedError):
        estimator.explain(X[:1])
    model = clone(estimator).fit(X, CODES)
    with pytest.raises(ValueError, match="one row"):
        model.explain(X[:2])


@every_estimator
def test_score_of_other_lengths(estimator):
    model = clone(estimator).fit(X, CODES)
    with pytest.raises(ValueError, match="rows"):
        model.score(X, CODES[:-1])
    for bad in (np.ones(3), np.zeros(len(CODES)), -np.ones(len(CODES)), np.full(len(CODES), np.nan)):
        with pytest.raises(ValueError, match="sample_weight"):
            model.score(X, CODES, sample_weight=bad)
    assert model.score(X, CODES.astype(str)) == 0


@every_estimator
def test_save_where_nothing_can_be(estimator, tmp_path):
    model = clone(estimator).fit(X, CODES)
    for path, message in [(tmp_path / "no" / "such" / "folder", "No such file"), (tmp_path, "directory")]:
        with pytest.raises(OSError, match=message) as raised:
            model.save(path)
        assert raised.value.filename == str(path)
    assert answers(model, X)


@every_estimator
@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt, RuntimeError])
def test_a_fit_that_fails_midway_leaves_the_model(estimator, failure, tmp_path, monkeypatch):
    """The progress report is called from within the training: an exception there ends it."""
    model = clone(estimator).fit(X, CODES)
    state, expected, attributes = tensors(model, tmp_path), answers(model, X), dict(vars(model))

    class Fails:
        def __enter__(self):
            def report(done, total):
                raise failure

            return report

        def __exit__(self, *error):
            return False

    import sys

    module = sys.modules[type(model).__module__]
    if not hasattr(module, "progress"):
        pytest.skip("shows no progress")
    monkeypatch.setattr(module, "progress", lambda *_, **__: Fails())
    with pytest.raises(failure):
        model.fit(X[:, :20], CODES[::-1].astype(str))
    assert vars(model) == attributes
    assert tensors(model, tmp_path) == state
    assert answers(model, X) == expected
