import gzip
import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from io_cases import assert_same, finite32, on_disk, write

from sapwood import _core
from sapwood.io import ParseError, read_xmc, write_xmc
from sapwood.io.files import feed_file


@st.composite
def data_sets(draw):
    n, d, L = (draw(st.integers(0, 6)) for _ in range(3))
    X = draw(hnp.arrays(np.float32, (n, d), elements=finite32, fill=st.just(np.float32(0))))
    Y = draw(hnp.arrays(np.bool_, (n, L)))
    return sp.csr_matrix(X), sp.csr_matrix(Y, dtype=np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("xmc")


@on_disk
@given(data_set=data_sets(), ending=st.sampled_from(["", ".gz"]))
def test_round_trip(folder, data_set, ending):
    X, Y = data_set
    path = folder / f"round_trip.txt{ending}"
    write_xmc(path, X, Y)
    X_read, Y_read = read_xmc(path)
    assert_same(X_read, X)
    assert_same(Y_read, Y)


@on_disk
@given(data_set=data_sets(), block_size=st.sampled_from([1, 2, 7, 4096]))
def test_block_boundaries_do_not_matter(folder, data_set, block_size):
    path = folder / "blocks.txt"
    write_xmc(path, *data_set)
    parsed = []
    for size in (block_size, 1 << 20):
        parser = _core.XmcParser()
        feed_file(parser, path, block_size=size)
        rows, labels, n_features, n_labels = parser.finish()
        parsed.append([*(array.tobytes() for array in (*rows, *labels)), n_features, n_labels])
    assert parsed[0] == parsed[1]


def test_rows_without_labels_or_features_and_rows_out_of_order(tmp_path):
    path = write(tmp_path / "a.txt", "5 4 6\n5,0,5 3:1 0:2\n 1:0.5\n\n2:7\n4\n\n \n")
    X, Y = read_xmc(path)
    np.testing.assert_array_equal(
        X.toarray(), [[2, 0, 0, 1], [0, 0.5, 0, 0], [0, 0, 0, 0], [0, 0, 7, 0], [0, 0, 0, 0]]
    )
    assert [row.indices.tolist() for row in Y] == [[0, 5], [], [], [], [4]]
    assert X.dtype == Y.dtype == np.float32
    assert X.has_sorted_indices
    assert Y.data.tolist() == [1, 1, 1]


def test_non_zero_columns_are_the_labels(tmp_path):
    Y = sp.csr_matrix((np.array([2, 0], dtype=np.int8), [1, 2], [0, 2]), shape=(1, 3))
    write_xmc(tmp_path / "a.txt", [[1, 0]], Y)
    assert (tmp_path / "a.txt").read_text() == "1 2 3\n1 0:1\n"
    assert Y.nnz == 2


def test_widest_indices(tmp_path):
    path = write(tmp_path / "a.txt", "1 2147483647 2147483647\n2147483646 2147483646:1\n")
    X, Y = read_xmc(path)
    assert X.shape == Y.shape == (1, 2**31 - 1)
    assert X.indices.tolist() == Y.indices.tolist() == [2**31 - 2]
    write_xmc(tmp_path / "b.txt", X, Y)
    assert (tmp_path / "b.txt").read_bytes() == path.read_bytes()


ERRORS = {
    "empty file": ("", 1, 1, "empty"),
    "blank header": ("\n", 1, 1, "number of rows"),
    "svmlight text": ("1 1:1\n", 1, 4, "blank after a count"),
    "two counts": ("2 3\n", 1, 4, "number of labels"),
    "four counts": ("2 3 4 5\n", 1, 7, "end of the header"),
    "negative count": ("2 -3 4\n", 1, 3, "number of features"),
    "count too large": ("1 4294967296 4\n", 1, 3, "at most 2147483647"),
    "promised rows": ("1000000000000000000 3 4\n0 0:1\n", 3, 1, "after 1 of the 1000000000000000000 rows"),
    "too many rows": ("1 3 4\n0 0:1\n1 1:1\n", 3, 1, "more than the 1"),
    "feature beyond the header": ("1 3 4\n0 0:1 3:1\n", 2, 7, "beyond the 3 features"),
    "label beyond the header": ("1 3 4\n0,4 0:1\n", 2, 3, "beyond the 4 labels"),
    "label where there are none": ("1 3 0\n0 0:1\n", 2, 1, "beyond the 0 labels"),
    "negative label": ("1 3 4\n-1 0:1\n", 2, 1, "non-negative label"),
    "comma without label": ("1 3 4\n1, 0:1\n", 2, 3, "non-negative label"),
    "comment": ("1 3 4\n0 0:1 # note\n", 2, 7, "found '#'"),
    "no colon": ("1 3 4\n 0 0:1\n", 2, 3, "expected ':'"),
    "nan": ("1 3 4\n0 0:nan\n", 2, 5, "finite number"),
    "index twice": ("1 3 4\n0 2:1 0:2 2:1\n", 2, 11, "appears twice"),
    "byte that is not ASCII": ("1 3 4\n0 0:1 é\n", 2, 7, "byte 0xC3"),
    "NUL": ("1 3 4\n0\0 0:1\n", 2, 2, "byte 0x00"),
}


@pytest.mark.parametrize(("text", "line", "column", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_tell_file_line_and_column(tmp_path, text, line, column, message):
    path = write(tmp_path / "bad.txt", text)
    with pytest.raises(ParseError, match=message) as caught:
        read_xmc(path)
    error = caught.value
    assert (error.path, error.line, error.column) == (os.fspath(path), line, column)


def test_truncated_gzip_tells_how_far_it_went(tmp_path):
    content = gzip.compress(b"1000 3 4\n" + b"0 0:1\n" * 1000)[:-8]
    with pytest.raises(ParseError, match=r"line 1002, column 1: the gzip data are damaged"):
        read_xmc(write(tmp_path / "bad.txt.gz", content))


@on_disk
@given(content=st.binary(max_size=200))
def test_any_bytes_give_data_or_a_parse_error(folder, content):
    path = write(folder / "any.txt", b"2 9 9\n" + content)
    try:
        X, Y = read_xmc(path)
    except ParseError:
        return
    X.check_format(full_check=True)
    Y.check_format(full_check=True)


def test_lengths_must_agree(tmp_path):
    with pytest.raises(ValueError, match="same rows"):
        write_xmc(tmp_path / "a.txt", [[1], [2]], [[1]])
    assert os.listdir(tmp_path) == []
