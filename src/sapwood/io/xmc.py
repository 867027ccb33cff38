"""The text format of the extreme classification repository."""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from sapwood import _core
from sapwood.io.files import Path, feed_file, parse_errors_name, write_file
from sapwood.io.matrices import (
    check_same_length,
    feature_arrays,
    feature_matrix,
    label_arrays,
    label_blocks,
    label_matrix,
)


def read_xmc(path: Path) -> tuple[csr_matrix, csr_matrix]:
    """Read a data set of the extreme classification repository, plain or compressed with gzip.

    The first line is ``rows features labels``; then each line is ``label,label... index:value ...``, all
    counted from 0. A line that begins with a blank, or with its first feature, has no labels. Indices and
    labels may stand in any order and are sorted. A label twice in a row is one label; an index twice in a row
    is an error, as one of the two values would be lost. Zeros that are written are stored.

    Parameters
    ----------
    path : str or path-like
        The file. Its first bytes tell whether it is compressed.

    Returns
    -------
    X : csr_matrix of float32, shape (rows, features)
        Its indices are sorted.
    Y : csr_matrix of float32, shape (rows, labels)
        A one in column j where a row has label j.

    Raises
    ------
    ParseError
        If the file does not have this format, or not the rows, features or labels that its first line says.
        It tells line and column.

    Examples
    --------
    >>> import os, tempfile
    >>> from sapwood.io import read_xmc
    >>> path = os.path.join(tempfile.mkdtemp(), "two.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("2 3 4\\n0,3 0:0.5 2:2\\n 1:0.25\\n")
    >>> X, Y = read_xmc(path)
    >>> X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]], dtype=float32)
    >>> Y.toarray()
    array([[1., 0., 0., 1.],
           [0., 0., 0., 0.]], dtype=float32)
    """
    with parse_errors_name(path):
        parser = _core.XmcParser()
        feed_file(parser, path)
        rows, labels, n_features, n_labels = parser.finish()
    return feature_matrix(rows, n_features), label_matrix(labels, n_labels)


def write_xmc(path: Path, X: ArrayLike | csr_matrix, Y: ArrayLike | csr_matrix) -> None:
    """Write a data set in the format of the extreme classification repository.

    What is read back is the same to the bit.

    The file appears complete or not at all: it is written under another name in the same folder and then
    renamed.

    Parameters
    ----------
    path : str or path-like
        The file. It is compressed with gzip if its name ends in ``.gz``.
    X : array-like or sparse matrix of shape (n, d)
        Written as float32, in the fewest digits that tell it from its neighbours. Zeros stored in a sparse
        matrix are written.
    Y : array-like or sparse matrix of shape (n, n_labels)
        Its non-zero columns are the labels of a row.

    Examples
    --------
    >>> import os, tempfile
    >>> from sapwood.io import write_xmc
    >>> path = os.path.join(tempfile.mkdtemp(), "two.txt")
    >>> write_xmc(path, [[0.5, 0, 2], [0, 1 / 3, 0]], [[1, 0, 0, 1], [0, 0, 0, 0]])
    >>> print(open(path).read(), end="")
    2 3 4
    0,3 0:0.5 2:2
     1:0.33333334
    """
    check_same_length(X, Y, "Y")
    rows, labels = feature_arrays(X), label_arrays(Y)
    n_rows, n_features = np.shape(X)
    header = f"{n_rows} {n_features} {np.shape(Y)[1]}\n"
    write_file(path, chain([header.encode()], label_blocks(labels, rows, base=0)))
