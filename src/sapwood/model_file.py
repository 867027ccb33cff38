"""One model, one file: safetensors, written and read here so that tensors are aligned, mapped and checked.

Layout of format 1::

    8 bytes       little-endian length of the header
    header        JSON, ended with spaces so that the data begin at a multiple of 64 bytes
    data          the tensors one after the other, each beginning at a multiple of 64 bytes

The format allows no holes, so uint8 tensors named ``_pad.N`` fill the gaps. Names that begin with an
underscore are the file's own. ``__metadata__``, where the format allows only strings, comes first in the
header and holds two:

- ``checksum``: 16 hexadecimal digits, the checksum of the header with these digits set to 0. They stand at
  the same place in every format version, so that a header is known to be sound before it is parsed.
- ``sapwood``: JSON of the format version, the estimator's name, its parameters and metadata, and the checksum
  of each tensor. The header's checksum thereby vouches for the whole file.

A file once written is never changed: saving again renames a new file over it, and arrays mapped from the old
one stay as they are. Only a program that writes into the file itself can pull mapped arrays away;
``mmap=False`` is for folders where that may happen.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood._replacing import replacing

__all__ = [
    "FORMAT_VERSION",
    "ModelFile",
    "ModelFileError",
    "checksum",
    "decode_labels",
    "encode_labels",
    "read",
    "write",
]

FORMAT_VERSION = 1

Array: TypeAlias = NDArray[Any]
Bytes: TypeAlias = NDArray[np.uint8]
Json: TypeAlias = dict[str, Any]

_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_ALIGNMENT = 64  # bytes: a cache line, and one line of a bank of regressors
_MAX_HEADER = 100_000_000  # bytes: the limit of the safetensors library
_MAX_DIMENSIONS = 32  # of an array, in every numpy version
_MAX_WIDTH = (2**31 - 1) // 4  # characters of a numpy string

_HEADER_START = b'{"__metadata__":{"checksum":"'
_DIGITS = slice(len(_HEADER_START), len(_HEADER_START) + 16)
_NO_DIGITS = b"0" * 16


class ModelFileError(ValueError):
    """A file is not a sound model file."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds.

    Attributes
    ----------
    format_version : int
        Version of the layout, at most `FORMAT_VERSION`.
    estimator : str
        Name of the estimator's class.
    parameters : dict
        The estimator's parameters, as JSON keeps them.
    metadata : dict
        Whatever else the estimator noted, as JSON keeps it.
    labels : ndarray or None
        The labels in the order of their codes, with the dtype they had when written.
    tensors : dict of str to ndarray
        Read-only arrays, each beginning at a multiple of 64 bytes.
    """

    format_version: int
    estimator: str
    parameters: Json
    metadata: Json
    labels: Array | None
    tensors: dict[str, Array]


def write(
    path: str | os.PathLike[str],
    *,
    estimator: str,
    parameters: Mapping[str, Any],
    tensors: Mapping[str, Array],
    labels: Array | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a model file in one step: whatever happens, `path` holds the old file or all of the new one.

    Parameters
    ----------
    path : path-like
        Where to; an existing file is replaced.
    estimator : str
        Name of the estimator's class.
    parameters, metadata : mapping
        Values that JSON can hold, or numpy scalars. JSON makes lists of tuples and strings of keys, and has
        no NaN or infinity.
    tensors : mapping of str to ndarray
        Arrays of bool, int, uint or float (float16 to float64); names must not begin with an underscore.
    labels : ndarray of shape (n_labels,), optional
        Labels in the order of their codes, of any kind that `encode_labels` takes.

    Raises
    ------
    ValueError, TypeError
        If something cannot be stored; no file is touched then.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "oak.model")
    >>> weights, labels = np.ones((2, 3), dtype=np.float32), np.array(["elm", "ash"])
    >>> write(path, estimator="Oak", parameters={"beam": 10}, tensors={"weights": weights}, labels=labels)
    >>> model = read(path)
    >>> model.estimator, model.parameters, model.labels.tolist(), model.tensors["weights"].shape
    ('Oak', {'beam': 10}, ['elm', 'ash'], (2, 3))
    >>> folder.cleanup()
    """
    for name in tensors:
        if name.startswith("_"):
            raise ValueError(f"tensor {name!r}: names that begin with an underscore are the file's own")
    stored = {name: _storable(name, array) for name, array in tensors.items()}
    if labels is not None:
        stored |= encode_labels(labels)
    laid_out = _lay_out(stored)
    description = {
        "format": FORMAT_VERSION,
        "estimator": estimator,
        "parameters": dict(parameters),
        "metadata": dict(metadata or {}),
        "checksums": {name: _digits(checksum(array)) for name, array in laid_out.items()},
    }
    header = _header(description, laid_out)
    with replacing(path) as file:
        file.write(header)
        file.writelines(_bytes_of(array).data for array in laid_out.values())


def read(path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = True) -> ModelFile:
    """Read a model file; every size, offset and name is checked before any array is handed out.

    Parameters
    ----------
    path : path-like
        The file.
    mmap : bool, default=True
        Map the tensors instead of copying them to memory.
    verify : bool, default=True
        Check the tensors against their checksums, which reads all of them once. The header is always checked.

    Returns
    -------
    ModelFile

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or was written by a later version.
    OSError
        If the file cannot be read.
    """
    try:
        return _parse(_contents(path, mmap), verify)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None


# --- writing ---------------------------------------------------------------------------------------------


def _storable(name: str, array: Array) -> Array:
    """Return the array little-endian and C-ordered, as it will lie in the file."""
    array = np.asarray(array)
    little_endian = array.dtype.newbyteorder("<")
    if little_endian not in _DTYPE_NAMES:
        known = ", ".join(dtype.name for dtype in _DTYPE_NAMES)
        raise ValueError(f"tensor {name!r} has dtype {array.dtype}; a model file holds {known}")
    return np.asarray(array, dtype=little_endian, order="C")


def _lay_out(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Order the tensors by descending item size and put padding between them."""
    laid_out: dict[str, Array] = {}
    end = 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)):
        if gap := -end % _ALIGNMENT:
            laid_out[f"_pad.{len(laid_out)}"] = np.zeros(gap, dtype=np.uint8)
        laid_out[name] = tensors[name]
        end += gap + tensors[name].nbytes
    return laid_out


def _header(description: Json, laid_out: Mapping[str, Array]) -> bytes:
    """Return the header and its length, sealed with the header's checksum."""
    metadata = {"checksum": _NO_DIGITS.decode(), "sapwood": _to_json(description)}
    _described(metadata)  # what could not be read back is not written
    entries: Json = {"__metadata__": metadata}
    begin = 0
    for name, array in laid_out.items():
        end = begin + array.nbytes
        dtype = _DTYPE_NAMES[array.dtype]
        entries[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    if len(text) > _MAX_HEADER:
        raise ValueError(
            f"parameters and metadata take {len(text)} bytes, more than the {_MAX_HEADER} allowed"
        )
    return len(text).to_bytes(8, "little") + _seal(text)


def _to_json(description: Json) -> str:
    return json.dumps(description, allow_nan=False, default=_plain_number)


def _plain_number(value: Any) -> Any:
    # A grid search hands numpy scalars to estimators as parameters.
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(
        f"a model file cannot hold {value!r} of type {type(value).__name__}: JSON has no such thing"
    )


# --- reading ---------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """A tensor as the header describes it; begin and end are bytes from the start of the data."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def _contents(path: str | os.PathLike[str], mmap: bool) -> Bytes:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise ModelFileError(f"not a model file: it has only {size} bytes")
        if mmap:
            return np.memmap(file, dtype=np.uint8, mode="r", shape=(size,))
        contents = _aligned_empty(size)
        if file.readinto(contents.data) != size:
            raise ModelFileError("the file shrank while it was read")
        contents.flags.writeable = False
        return contents


def _aligned_empty(size: int) -> Bytes:
    spacious = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    start = -spacious.ctypes.data % _ALIGNMENT
    return spacious[start : start + size]


def _parse(contents: Bytes, verify: bool) -> ModelFile:
    header, data = _split(contents)
    entries = _load_json(header, "header")
    description = _described(entries.pop("__metadata__"))
    layout = [_entry(name, value) for name, value in entries.items()]
    _check_layout(layout, data.size)
    if description["checksums"].keys() != entries.keys():
        raise ModelFileError("the checksums are not those of the tensors")
    if verify:
        _verify(layout, data, description["checksums"])
    tensors = {entry.name: _view(entry, data) for entry in layout}
    own = {name: tensors.pop(name) for name in list(tensors) if name.startswith("_")}
    return ModelFile(
        format_version=description["format"],
        estimator=description["estimator"],
        parameters=description["parameters"],
        metadata=description["metadata"],
        labels=decode_labels(own) if any(name.startswith("_labels") for name in own) else None,
        tensors=tensors,
    )


def _split(contents: Bytes) -> tuple[bytes, Bytes]:
    """Return the header, known to be as it was written, and the data."""
    length = int.from_bytes(contents[:8].tobytes(), "little")
    start = 8 + length
    if length > _MAX_HEADER or start > contents.size or start % _ALIGNMENT:
        raise ModelFileError(f"not a model file, or cut off: a header of {length} bytes cannot be")
    header = contents[8:start].tobytes()
    if not header.startswith(_HEADER_START):
        raise ModelFileError("not a model file of sapwood: the header begins otherwise")
    if header != _seal(header):
        raise ModelFileError("the header is damaged: its checksum does not match")
    return header, contents[start:]


def _described(metadata: Any) -> Json:
    """Check what stands under the key ``sapwood``."""
    if not isinstance(metadata, dict) or not isinstance(metadata.get("sapwood"), str):
        raise ModelFileError("the header has no description of the model")
    description = _load_json(metadata["sapwood"], "description of the model")
    version = description.get("format")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"the format version {version!r} is not known")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"format version {version} is newer than this sapwood reads ({FORMAT_VERSION}): upgrade sapwood"
        )
    kinds = {"estimator": str, "parameters": dict, "metadata": dict, "checksums": dict}
    for key, kind in kinds.items():
        if not isinstance(description.get(key), kind):
            raise ModelFileError(f"the description of the model has no sound {key!r}")
    return description


def _load_json(text: str | bytes, what: str) -> Json:
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the {what} is not well-formed JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFileError(f"the {what} is not a JSON object")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> Json:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _entry(name: str, value: Any) -> _Entry:
    """Check one tensor's description by itself."""
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"tensor {name!r} must have dtype, shape and data_offsets, and nothing else")
    dtype = _DTYPES.get(value["dtype"]) if isinstance(value["dtype"], str) else None
    if dtype is None:
        raise ModelFileError(f"tensor {name!r} has the unknown dtype {value['dtype']!r}")
    shape, offsets = value["shape"], value["data_offsets"]
    if not _are_sizes(shape) or len(shape) > _MAX_DIMENSIONS or _extent(shape, dtype) >= 2**63:
        raise ModelFileError(f"tensor {name!r} has the impossible shape {shape!r}")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ModelFileError(f"tensor {name!r} has the impossible offsets {offsets!r}")
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ModelFileError(f"tensor {name!r}: offsets {offsets} do not fit shape {shape} of {dtype.name}")
    if begin % _ALIGNMENT and not name.startswith("_pad."):
        raise ModelFileError(f"tensor {name!r} begins at byte {begin}, not at a multiple of {_ALIGNMENT}")
    return _Entry(name, dtype, tuple(shape), begin, end)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _extent(shape: list[int], dtype: np.dtype[Any]) -> int:
    # numpy multiplies the other dimensions even where one is 0.
    return math.prod(max(size, 1) for size in shape) * dtype.itemsize


def _check_layout(layout: list[_Entry], data_size: int) -> None:
    """The tensors must cover the data without hole or overlap."""
    position = 0
    for entry in sorted(layout, key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != position:
            raise ModelFileError(
                f"tensor {entry.name!r} begins at byte {entry.begin} of the data, not at {position}"
            )
        position = entry.end
    if position != data_size:
        raise ModelFileError(f"the tensors take {position} bytes, but {data_size} bytes of data are there")


def _verify(layout: list[_Entry], data: Bytes, checksums: Json) -> None:
    for entry in layout:
        if _digits(checksum(data[entry.begin : entry.end])) != checksums[entry.name]:
            raise ModelFileError(f"tensor {entry.name!r} is damaged: its checksum does not match")


def _view(entry: _Entry, data: Bytes) -> Array:
    if entry.dtype == np.bool_ and (data[entry.begin : entry.end] > 1).any():
        raise ModelFileError(f"tensor {entry.name!r} is of bool but holds other bytes than 0 and 1")
    array: Array = np.ndarray(entry.shape, entry.dtype, buffer=data, offset=entry.begin)
    return array


# --- labels ----------------------------------------------------------------------------------------------


def encode_labels(labels: Array) -> dict[str, Array]:
    """Turn labels into tensors.

    Parameters
    ----------
    labels : ndarray of shape (n_labels,)
        Numbers (bool, int, uint, float16 to float64) or strings (dtype ``<U...``, or all objects str).

    Returns
    -------
    dict of str to ndarray
        Numbers: the array itself. Strings: all their UTF-8 in one uint8 tensor and n_labels + 1 int64 offsets
        into it; for dtype ``<U...`` also its width in characters.

    Examples
    --------
    >>> encoded = encode_labels(np.array(["elm", "ash"]))
    >>> encoded["_labels.utf8"].tobytes(), encoded["_labels.offsets"].tolist()
    (b'elmash', [0, 3, 6])
    >>> decode_labels(encoded)
    array(['elm', 'ash'], dtype='<U3')
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"labels must be 1-D, not of shape {array.shape}")
    if array.dtype.kind == "U":
        return _encode_strings(array.tolist()) | {"_labels.width": np.array(array.itemsize // 4, np.int64)}
    if array.dtype == object:
        for label in array:
            if not isinstance(label, str):
                raise ValueError(
                    f"labels of dtype object must all be str, not {type(label).__name__}: {label!r}"
                )
        return _encode_strings(array.tolist())
    return {"_labels": _storable("_labels", array)}


def decode_labels(tensors: Mapping[str, Array]) -> Array:
    """Turn what `encode_labels` returned into labels, equal in value and dtype.

    Parameters
    ----------
    tensors : mapping of str to ndarray
        May hold other tensors too.

    Returns
    -------
    ndarray of shape (n_labels,)

    Raises
    ------
    ModelFileError
        If the tensors do not fit together.
    """
    if "_labels" in tensors:
        if tensors["_labels"].ndim != 1:
            raise ModelFileError("the labels are not 1-D")
        return tensors["_labels"]
    try:
        strings = _decode_strings(tensors["_labels.utf8"], tensors["_labels.offsets"])
    except KeyError as missing:
        raise ModelFileError(f"the tensor {missing} of the labels is missing") from None
    if "_labels.width" not in tensors:
        labels = np.empty(len(strings), dtype=object)
        labels[:] = strings
        return labels
    return _of_width(strings, tensors["_labels.width"])


def _encode_strings(strings: list[str]) -> dict[str, Array]:
    # surrogatepass: Python reads undecodable bytes as lone surrogates, and such labels must be kept too.
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"_labels.utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8), "_labels.offsets": offsets}


def _decode_strings(utf8: Array, offsets: Array) -> list[str]:
    if utf8.dtype != np.uint8 or utf8.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1:
        raise ModelFileError("the tensors of the labels have the wrong dtype or shape")
    if not offsets.size or offsets[0] != 0 or offsets[-1] != utf8.size or (offsets[1:] < offsets[:-1]).any():
        raise ModelFileError("the offsets of the labels do not fit their text")
    text, bounds = utf8.tobytes(), offsets.tolist()
    try:
        return [text[b:e].decode("utf-8", "surrogatepass") for b, e in pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise ModelFileError(f"the labels are not UTF-8: {error}") from None


def _of_width(strings: list[str], width: Array) -> Array:
    longest = max(map(len, strings), default=0)
    if width.dtype != np.int64 or width.shape != () or not longest <= width <= _MAX_WIDTH:
        raise ModelFileError("the width of the labels does not fit their text")
    return np.array(strings, dtype=f"<U{width}")


# --- checksums -------------------------------------------------------------------------------------------


def checksum(buffer: bytes | Array) -> int:
    """Return the 64-bit checksum of a buffer's bytes.

    With a_1, b_1, a_2, b_2, ... the bytes as little-endian 64-bit words, the last pair filled up with zeros, and
    all arithmetic modulo 2^64::

        checksum = mix(n_bytes ^ mix(fold(a_1 ^ key_1, b_1 ^ ~key_1) + fold(a_2 ^ key_2, b_2 ^ ~key_2) + ...))

    where key_i is i times 0x9E3779B97F4A7C15, fold is the exclusive or of both halves of the 128-bit product and
    mix the finaliser of splitmix64. The terms may be added in any order, many at once.

    Parameters
    ----------
    buffer : bytes or ndarray
        An array must be C-contiguous.

    Examples
    --------
    >>> hex(checksum(b"sapwood"))
    '0x72390ac47b3114bf'
    """
    data = np.frombuffer(buffer, dtype=np.uint8) if isinstance(buffer, bytes) else _bytes_of(buffer)
    return _core.checksum(data)


def _digits(value: int) -> str:
    return f"{value:016x}"


def _seal(header: bytes) -> bytes:
    """Return the header with its checksum filled in."""
    blank = header[: _DIGITS.start] + _NO_DIGITS + header[_DIGITS.stop :]
    return header[: _DIGITS.start] + _digits(checksum(blank)).encode() + header[_DIGITS.stop :]


def _bytes_of(array: Array) -> Bytes:
    return array.reshape(-1).view(np.uint8)
