import gzip
import os
import pickle
import stat

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from io_cases import assert_same, finite32, on_disk, write
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sapwood import _core
from sapwood.io import ParseError, read_svmlight, write_svmlight
from sapwood.io.files import feed_file


@st.composite
def matrices(draw, max_rows=6, max_columns=8):
    shape = draw(st.tuples(st.integers(1, max_rows), st.integers(1, max_columns)))
    dense = draw(hnp.arrays(np.float32, shape, elements=finite32, fill=st.just(np.float32(0))))
    return sp.csr_matrix(dense)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("svmlight")


@on_disk
@given(X=matrices(), data=st.data(), zero_based=st.booleans(), ending=st.sampled_from(["", ".gz"]))
def test_round_trip(folder, X, data, zero_based, ending):
    y = data.draw(
        hnp.arrays(np.float64, X.shape[0], elements=st.floats(allow_nan=False, allow_infinity=False))
    )
    path = folder / f"round_trip.svm{ending}"
    write_svmlight(path, X, y, zero_based=zero_based)
    X_read, y_read = read_svmlight(path, n_features=X.shape[1], zero_based=zero_based)
    assert_same(X_read, X)
    np.testing.assert_array_equal(y_read, y)


@on_disk
@given(X=matrices(), data=st.data())
def test_multilabel_round_trip(folder, X, data):
    X = sp.hstack([np.ones((X.shape[0], 1), dtype=np.float32), X], format="csr")  # no row may be blank
    Y = data.draw(hnp.arrays(np.bool_, (X.shape[0], 5)))
    Y[0, 4] = True
    path = folder / "multilabel.svm"
    write_svmlight(path, X, Y)
    X_read, Y_read = read_svmlight(path, n_features=X.shape[1], multilabel=True)
    assert_same(X_read, X)
    assert_same(Y_read, sp.csr_matrix(Y, dtype=np.float32))


@on_disk
@given(X=matrices(), data=st.data())
def test_scikit_learn_reads_what_is_written_and_the_reverse(folder, X, data):
    y = data.draw(hnp.arrays(np.int64, X.shape[0], elements=st.integers(-(2**53), 2**53)))
    path = os.fspath(folder / "parity.svm")
    write_svmlight(path, X, y)
    X_theirs, y_theirs = load_svmlight_file(path, n_features=X.shape[1], dtype=np.float32, zero_based=False)
    assert_same(X_theirs, X)
    np.testing.assert_array_equal(y_theirs, y)

    dump_svmlight_file(X, y, path, zero_based=False)
    X_ours, y_ours = read_svmlight(path, n_features=X.shape[1], zero_based=False)
    assert_same(X_ours, X)
    np.testing.assert_array_equal(y_ours, y)


@pytest.mark.parametrize(
    "text",
    [
        "1 1:0.5 3:2\n-1 2:1e-3\n",
        "1 0:0.5 3:2\n-1 2:1e-3",
        "# first\n\n 1.5 qid:3 1:1. # more: 7\r\n+2\t4:+.5\n",
        "1\n2 5:0\n",
        "1 2:1e-50 3:123456789012345678901234567890\n",
    ],
)
@pytest.mark.parametrize("zero_based", ["auto", True])
def test_same_as_scikit_learn(tmp_path, text, zero_based):
    path = write(tmp_path / "a.svm", text)
    X_theirs, y_theirs = load_svmlight_file(os.fspath(path), dtype=np.float32, zero_based=zero_based)
    X, y = read_svmlight(path, zero_based=zero_based)
    assert_same(X, X_theirs)
    np.testing.assert_array_equal(y, y_theirs)


def test_multilabel_is_an_indicator_of_scikit_learns_tuples(tmp_path):
    path = write(tmp_path / "a.svm", "3,1 1:1\n2:1\n 2:1\n0 1:3\n")
    _, tuples = load_svmlight_file(os.fspath(path), multilabel=True)
    _, Y = read_svmlight(path, multilabel=True)
    assert Y.shape == (4, 4)
    assert Y.dtype == np.float32
    assert [tuple(row.indices) for row in Y] == tuples


@on_disk
@given(X=matrices(), data=st.data())
def test_order_of_features_means_nothing(folder, X, data):
    lines = []
    for row in X:
        pairs = [f"{j}:{v!r}" for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)]
        lines.append(" ".join(["1", *data.draw(st.permutations(pairs))]))
    path = write(folder / "shuffled.svm", "\n".join(lines))
    X_read, _ = read_svmlight(path, n_features=X.shape[1], zero_based=True)
    assert_same(X_read, X)
    assert X_read.has_sorted_indices


@on_disk
@given(X=matrices(), block_size=st.sampled_from([1, 2, 7, 4096]))
def test_block_boundaries_do_not_matter(folder, X, block_size):
    path = folder / "blocks.svm"
    write_svmlight(path, X, np.linspace(-1, 1, X.shape[0]))
    parsed = []
    for size in (block_size, 1 << 20):
        parser = _core.SvmlightParser(n_features=None, zero_based=None, multilabel=False)
        feed_file(parser, path, block_size=size)
        (values, indices, indptr), targets, *_ = parser.finish()
        parsed.append([values.tobytes(), indices.tobytes(), indptr.tobytes(), targets.tobytes()])
    assert parsed[0] == parsed[1]


ERRORS = {
    "word for a value": ("1 1:1\n2 2:x\n", {}, 2, 5, "expected a finite number, found 'x'"),
    "nan": ("1 1:nan\n", {}, 1, 5, "found 'nan'"),
    "inf": ("1 1:-inf\n", {}, 1, 5, "found '-inf'"),
    "beyond float32": ("1 1:1e39\n", {}, 1, 5, "range of a float32"),
    "no colon": ("1 1 2\n", {}, 1, 4, "expected ':'"),
    "no value": ("1 1:\n", {}, 1, 5, "the end of the line"),
    "text after a value": ("1 1:2x\n", {}, 1, 6, "expected a blank"),
    "negative index": ("1 -3:1\n", {}, 1, 3, "non-negative feature index"),
    "index too large": ("1 2147483647:1\n", {}, 1, 3, "at most 2147483646"),
    "index twice": ("1 5:1 5:2\n", {}, 1, 7, "appears twice"),
    "index twice, apart": ("1 5:1 2:2 5:2\n", {}, 1, 11, "appears twice"),
    "byte that is not ASCII": ("1 1:1\n1 é:1\n", {}, 2, 3, "byte 0xC3"),
    "byte order mark": ("\ufeff1 1:1\n", {}, 1, 1, "byte 0xEF"),
    "NUL": ("1 1:1\0\n", {}, 1, 6, "byte 0x00"),
    "several labels": ("1,2 1:1\n", {}, 1, 2, "multilabel=True"),
    "no label": ("1:1\n", {}, 1, 1, "no label"),
    "label that is no number": ("cat 1:1\n", {}, 1, 1, "expected a finite label, found 'cat'"),
    "bad query id": ("1 qid:x 1:1\n", {}, 1, 7, "query id"),
    "empty file": ("", {}, 1, 1, "no rows"),
    "empty gzip": (gzip.compress(b""), {}, 1, 1, "no rows"),
    "gzip of two bytes": (b"\x1f\x8b", {}, 1, 1, "damaged after this point: they end too early"),
    "comments only": ("# nothing\n", {}, 2, 1, "no rows"),
    "negative label": ("-1 1:1\n", {"multilabel": True}, 1, 1, "non-negative label"),
    "comma without label": ("1, 1:1\n", {"multilabel": True}, 1, 3, "non-negative label"),
    "index 0, one-based": ("1 0:1\n", {"zero_based": False}, 1, 3, "zero_based=True"),
    "beyond n_features": ("1 3:1 9:1\n", {"n_features": np.int64(8)}, 1, 7, "beyond n_features=8"),
    "beyond n_features, found later": ("1 8:1\n1 0:1\n", {"n_features": 8}, 1, 3, "beyond n_features=8"),
}


@pytest.mark.parametrize(("text", "options", "line", "column", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_tell_file_line_and_column(tmp_path, text, options, line, column, message):
    path = write(tmp_path / "bad.svm", text)
    with pytest.raises(ParseError, match=message) as caught:
        read_svmlight(path, **options)
    error = caught.value
    assert (error.path, error.line, error.column) == (os.fspath(path), line, column)
    assert str(error).startswith(f"{path}, line {line}, column {column}: ")
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("damage", ["truncated", "changed", "bad header", "rubbish after"])
def test_damaged_gzip(tmp_path, damage):
    whole = gzip.compress(b"1 1:0.25 2:0.5\n" * 10_000)
    content = {
        "truncated": whole[:-20],
        "changed": whole[:-8] + bytes(8),
        "bad header": whole[:2] + b"\x07" + whole[3:],
        "rubbish after": whole + b"rubbish",
    }[damage]
    with pytest.raises(ParseError, match=r"line \d+, column \d+: the gzip data are damaged"):
        read_svmlight(write(tmp_path / "bad.svm.gz", content))


def test_gzip_is_known_by_its_bytes_and_may_have_several_members(tmp_path):
    path = write(tmp_path / "no_ending", gzip.compress(b"1 1:1\n2 ") + gzip.compress(b"3:1\n"))
    X, y = read_svmlight(path)
    assert X.shape == (2, 3)
    np.testing.assert_array_equal(y, [1, 2])


@pytest.mark.parametrize("options", [{"n_features": -1}, {"n_features": 2**31}, {"zero_based": "no"}])
def test_options_are_checked(tmp_path, options):
    with pytest.raises(ValueError, match="must be"):
        read_svmlight(write(tmp_path / "a.svm", "1 1:1\n"), **options)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "missing")


REFUSED = {
    "nan in X": ([[1, np.nan]], [1], "row 0, column 1"),
    "too large for float32": ([[0, 1.0], [1e300, 1]], [1, 2], "row 1, column 0"),
    "X is no matrix": ([1, 2], [1, 2], "must be a matrix"),
    "complex X": ([[1j]], [1], "real numbers"),
    "lengths differ": ([[1], [2]], [1, 2, 3], "same rows"),
    "no rows": (np.zeros((0, 3)), [], "no rows"),
    "words in y": ([[1]], ["cat"], "one number per row"),
    "nan in y": ([[1], [1]], [0, np.nan], "row 1"),
    "y beyond float64": ([[1]], [2**53 + 1], "beyond"),
    "row that would be blank": ([[1], [0]], [[1], [0]], "use write_xmc"),
}


@pytest.mark.parametrize(("X", "y", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_written_is_refused_and_the_file_is_as_it_was(tmp_path, X, y, message):
    path = write(tmp_path / "a.svm", "as it was")
    with pytest.raises(ValueError, match=message):
        write_svmlight(path, X, y)
    assert os.listdir(tmp_path) == ["a.svm"]
    assert path.read_text() == "as it was"


def test_inconsistent_sparse_matrix_is_refused(tmp_path):
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    X.indptr[1] = 100
    with pytest.raises(ValueError, match=r"indptr|index pointer"):
        write_svmlight(tmp_path / "a.svm", X, [1, 2, 3])


def test_repeats_in_a_sparse_matrix_are_summed_and_the_matrix_is_not_changed(tmp_path):
    X = sp.csr_matrix((np.array([1, 2, 4], dtype=np.float32), [2, 0, 2], [0, 3]), shape=(1, 3))
    write_svmlight(tmp_path / "a.svm", X, [1])
    assert (tmp_path / "a.svm").read_text() == "1 1:2 3:5\n"
    assert X.indices.tolist() == [2, 0, 2]


def test_write_keeps_links_and_permissions(tmp_path):
    target = write(tmp_path / "target.svm", "old")
    target.chmod(0o600)
    link = tmp_path / "link.svm"
    link.symlink_to(target)
    write_svmlight(link, [[1]], [1])
    assert link.is_symlink()
    assert target.read_text() == "1 1:1\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_same_data_same_gzip(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_svmlight(tmp_path / name, [[1]], [1])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_parse_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(ParseError("a.svm", 3, 4, "what is wrong")))
    assert str(error) == "a.svm, line 3, column 4: what is wrong"
