"""What the tests of both formats need."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

finite32 = st.floats(width=32, allow_nan=False, allow_infinity=False)

# Each example waits for the disk, which decides how long it takes.
on_disk = settings(deadline=None)


def assert_same(A, B):
    """Same to the bit, stored zeros and dtypes included."""
    assert A.shape == B.shape
    assert A.dtype == B.dtype
    np.testing.assert_array_equal(A.indptr, B.indptr)
    np.testing.assert_array_equal(A.indices, B.indices)
    assert A.data.tobytes() == B.data.tobytes()


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
