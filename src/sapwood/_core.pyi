"""The compiled core. Private: the public names are those of the Python packages."""

import numpy as np
from numpy.typing import NDArray

_Rows = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]
_LabelRows = tuple[NDArray[np.int32], NDArray[np.int64]]

class ParseError(ValueError):
    """Its arguments are (line, column, message)."""

class SvmlightParser:
    """Reads svmlight text block by block."""

    def __init__(self, *, n_features: int | None, zero_based: bool | None, multilabel: bool) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def position(self) -> tuple[int, int]: ...
    def finish(self) -> tuple[_Rows, NDArray[np.float64], _LabelRows, int, int]: ...

class XmcParser:
    """Reads XMC repository text block by block."""

    def __init__(self) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def position(self) -> tuple[int, int]: ...
    def finish(self) -> tuple[_Rows, _LabelRows, int, int]: ...

def write_target_rows(
    targets: NDArray[np.float64],
    values: NDArray[np.float32],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int64],
    *,
    row: int,
    base: int,
) -> tuple[bytes, int]: ...
def write_label_rows(
    label_indices: NDArray[np.int32],
    label_indptr: NDArray[np.int64],
    values: NDArray[np.float32],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int64],
    *,
    row: int,
    base: int,
) -> tuple[bytes, int]: ...
