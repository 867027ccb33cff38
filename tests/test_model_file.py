"""Model files come back as they were written, and nothing but a sound file comes back at all."""

import doctest
import json
import os
import random

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sapwood import model_file
from sapwood.model_file import ModelFileError, checksum, decode_labels, encode_labels, read, write

FEW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]

any_array = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))
)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda name: name[:1] != "_")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=3)


def assert_same(got, expected):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


def assert_same_model(got, expected):
    for field in ("format_version", "estimator", "parameters", "metadata"):
        assert getattr(got, field) == getattr(expected, field)
    assert got.labels.tolist() == expected.labels.tolist()
    assert got.tensors.keys() == expected.tensors.keys()
    for name in got.tensors:
        assert_same(got.tensors[name], expected.tensors[name])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "oak.model"


@pytest.fixture
def model_bytes(path):
    """Return a small model's file, with padding, strings and most kinds of tensors."""
    write(
        path,
        estimator="OakClassifier",
        parameters={"beam": 10, "loss": "logistic"},
        metadata={"n_features": 7},
        labels=np.array(["elm", "Übermut", ""]),
        tensors={
            "weights": np.arange(35, dtype=np.float32).reshape(5, 7),
            "counts": np.array([3, 1, 2]),
            "leaf": np.array([True, False, True]),
            "empty": np.zeros((0, 4)),
        },
    )
    return path.read_bytes()


def taken_apart(contents):
    """Return header (as JSON), description (as JSON) and data."""
    length = int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["sapwood"]), contents[8 + length :]


def put_together(header, data, description=None):
    """Return a file with all sums in order, so that only the other checks stand in the way."""
    if description is not None:
        header["__metadata__"]["sapwood"] = json.dumps(description)
    return sealed(json.dumps(header, separators=(",", ":")).encode(), data)


def sealed(text, data):
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + model_file._seal(text) + data


# --- round trips -----------------------------------------------------------------------------------------


@FEW
@given(st.dictionaries(names, any_array, max_size=5), json_objects, json_objects, st.booleans())
def test_what_is_written_is_read(path, tensors, parameters, metadata, mmap):
    write(path, estimator="Oak", parameters=parameters, metadata=metadata, tensors=tensors)
    model = read(path, mmap=mmap)
    assert (model.format_version, model.estimator) == (model_file.FORMAT_VERSION, "Oak")
    assert (model.parameters, model.metadata, model.labels) == (parameters, metadata, None)
    assert model.tensors.keys() == tensors.keys()
    for name, array in tensors.items():
        assert_same(model.tensors[name], array)
        assert model.tensors[name].ctypes.data % 64 == 0
        assert not model.tensors[name].flags.writeable


@FEW
@given(st.dictionaries(names, any_array, max_size=5))
def test_the_safetensors_library_sees_the_same_arrays(path, tensors):
    write(path, estimator="Oak", parameters={}, tensors=tensors, labels=np.array(["elm"]))
    seen = safetensors.numpy.load_file(path)
    assert {name for name in seen if not name.startswith("_")} == tensors.keys()
    for name, array in tensors.items():
        assert_same(seen[name], array)
    with safetensors.safe_open(path, "numpy") as file:
        assert json.loads(file.metadata()["sapwood"])["estimator"] == "Oak"


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(9)[::2], np.arange(3, dtype=">i4")]
)
def test_any_memory_layout_is_stored(path, array):
    write(path, estimator="Oak", parameters={}, tensors={"a": array})
    np.testing.assert_array_equal(read(path).tensors["a"], array)


def test_numpy_scalars_are_parameters_too(path):
    write(path, estimator="Oak", parameters={"beam": np.int64(3), "C": np.float32(0.5)}, tensors={})
    assert read(path).parameters == {"beam": 3, "C": 0.5}


def test_tensors_are_mapped_and_not_copied(path, model_bytes):
    for array in read(path).tensors.values():
        assert isinstance(array.base, np.memmap)
        assert type(array) is np.ndarray


def test_a_mapped_model_outlives_its_replacement(path, model_bytes):
    old = read(path)
    write(path, estimator="Elm", parameters={}, tensors={"weights": np.zeros(1)})
    np.testing.assert_array_equal(old.tensors["weights"], np.arange(35).reshape(5, 7))


def test_data_and_tensors_are_aligned_and_ordered(model_bytes):
    header, _, data = taken_apart(model_bytes)
    del header["__metadata__"]
    assert (len(model_bytes) - len(data)) % 64 == 0
    stored = {name: entry for name, entry in header.items() if not name.startswith("_pad.")}
    assert all(entry["data_offsets"][0] % 64 == 0 for entry in stored.values())
    sizes = [model_file._DTYPES[entry["dtype"]].itemsize for entry in stored.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_the_same_model_gives_the_same_bytes(path, model_bytes):
    model = read(path)
    reordered = dict(reversed(model.tensors.items()))
    write(
        path,
        estimator=model.estimator,
        parameters=model.parameters,
        metadata=model.metadata,
        labels=model.labels,
        tensors=reordered,
    )
    assert path.read_bytes() == model_bytes


# --- labels ----------------------------------------------------------------------------------------------

label_arrays = st.one_of(
    st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, st.integers(0, 9))),
    st.lists(st.text(max_size=6), max_size=6).map(lambda strings: np.array(strings, dtype="<U9")),
    st.lists(st.text(st.characters(), max_size=6), max_size=6).map(
        lambda strings: np.array(strings, dtype=object)
    ),
)


@FEW
@given(label_arrays)
def test_labels_come_back_with_their_dtype(path, labels):
    write(path, estimator="Oak", parameters={}, tensors={}, labels=labels)
    back = read(path).labels
    assert back.dtype == labels.dtype
    assert back.shape == labels.shape
    if labels.dtype == object:
        assert back.tolist() == labels.tolist()
    else:
        assert back.tobytes() == labels.tobytes()
    decoded = decode_labels(encode_labels(labels))
    np.testing.assert_array_equal(decoded, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["elm", 3], dtype=object), "must all be str, not int: 3"),
        (np.array([b"elm"]), "dtype |S3"),
        (np.array([1j]), "dtype complex128"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "dtype datetime64"),
        (np.zeros((2, 2)), "must be 1-D"),
    ],
)
def test_other_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        encode_labels(labels)


TEXT, OFFSETS = np.frombuffer(b"elmash", dtype=np.uint8), np.array([0, 3, 6])


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"_labels": np.zeros((2, 2))},
        {"_labels.utf8": TEXT},
        {"_labels.offsets": OFFSETS},
        {"_labels.utf8": TEXT, "_labels.offsets": OFFSETS.astype(np.int32)},
        {"_labels.utf8": TEXT, "_labels.offsets": np.zeros(0, dtype=np.int64)},
        {"_labels.utf8": TEXT, "_labels.offsets": np.array([0, 7, 6])},
        {"_labels.utf8": TEXT, "_labels.offsets": np.array([0, 3])},
        {"_labels.utf8": TEXT, "_labels.offsets": np.array([-1, 3, 6])},
        {"_labels.utf8": np.array([0xFF], dtype=np.uint8), "_labels.offsets": np.array([0, 1])},
        {"_labels.utf8": TEXT, "_labels.offsets": OFFSETS, "_labels.width": np.array(2)},
        {"_labels.utf8": TEXT, "_labels.offsets": OFFSETS, "_labels.width": np.array(2**60)},
        {"_labels.utf8": TEXT, "_labels.offsets": OFFSETS, "_labels.width": np.array([3])},
    ],
)
def test_label_tensors_that_do_not_fit_are_refused(tensors):
    with pytest.raises(ModelFileError):
        decode_labels(tensors)


# --- damage ----------------------------------------------------------------------------------------------


def assert_refused_or_same(path, contents, expected, mmap):
    path.write_bytes(contents)
    try:
        got = read(path, mmap=mmap)
    except ModelFileError:
        return True
    assert_same_model(got, expected)
    return False


def test_no_bit_flip_goes_unseen(path, model_bytes):
    expected = read(path, mmap=False)
    dice = random.Random(0)
    for trial in range(1000):
        damaged = bytearray(model_bytes)
        bit = dice.randrange(8 * len(model_bytes))
        damaged[bit // 8] ^= 1 << bit % 8
        assert assert_refused_or_same(path, damaged, expected, mmap=trial % 2 == 0), f"bit {bit}"


def test_no_truncation_goes_unseen(path, model_bytes):
    for length in {*range(80), *range(80, len(model_bytes), 13), len(model_bytes) - 1}:
        path.write_bytes(model_bytes[:length])
        for verify in (True, False):
            with pytest.raises(ModelFileError):
                read(path, verify=verify)


def test_trailing_bytes_are_seen(path, model_bytes):
    path.write_bytes(model_bytes + b"\0")
    with pytest.raises(ModelFileError, match="bytes of data are there"):
        read(path, verify=False)


def test_without_verifying_the_header_is_still_checked(path, model_bytes):
    header, _, data = taken_apart(model_bytes)
    data_start = len(model_bytes) - len(data)
    in_data, in_header = bytearray(model_bytes), bytearray(model_bytes)
    in_data[data_start + header["weights"]["data_offsets"][0]] ^= 1
    in_header[data_start // 2] ^= 1
    path.write_bytes(in_data)
    read(path, verify=False)
    with pytest.raises(ModelFileError, match="tensor 'weights' is damaged"):
        read(path)
    path.write_bytes(in_header)
    with pytest.raises(ModelFileError, match="the header is damaged"):
        read(path, verify=False)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("dtype", "BF16", "unknown dtype"),
        ("dtype", ["F32"], "unknown dtype"),
        ("dtype", "F64", "do not fit shape"),
        ("shape", [5, 8], "do not fit shape"),
        ("shape", [-5, -7], "impossible shape"),
        ("shape", [5.0, 7], "impossible shape"),
        ("shape", [True, 35], "impossible shape"),
        ("shape", [1] * 40 + [35], "impossible shape"),
        ("shape", [0, 2**62, 2**62], "impossible shape"),
        ("shape", 35, "impossible shape"),
        ("data_offsets", [64], "impossible offsets"),
        ("data_offsets", [-64, 76], "impossible offsets"),
        ("data_offsets", [140, 0], "do not fit shape"),
        ("data_offsets", [0, 140], "begins at byte"),
        ("data_offsets", [1, 141], "not at a multiple of 64"),
        ("data_offsets", [64_000, 64_140], "begins at byte"),
        ("extra", 1, "nothing else"),
    ],
)
def test_impossible_tensors_are_refused(path, model_bytes, field, value, message):
    header, _, data = taken_apart(model_bytes)
    header["weights"][field] = value
    path.write_bytes(put_together(header, data))
    with pytest.raises(ModelFileError, match=message):
        read(path, verify=False)


@pytest.mark.parametrize("entry", [None, [], "F32", {}])
def test_tensors_must_be_described(path, model_bytes, entry):
    header, _, data = taken_apart(model_bytes)
    header["weights"] = entry
    path.write_bytes(put_together(header, data))
    with pytest.raises(ModelFileError, match="nothing else"):
        read(path)


@pytest.mark.parametrize("name", ["weights", "counts", "_pad.1"])
def test_a_tensor_left_out_is_seen(path, model_bytes, name):
    header, _, data = taken_apart(model_bytes)
    assert header.pop(name)
    path.write_bytes(put_together(header, data))
    with pytest.raises(ModelFileError):
        read(path, verify=False)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", model_file.FORMAT_VERSION + 1, "upgrade sapwood"),
        ("format", 0, "not known"),
        ("format", True, "not known"),
        ("format", None, "not known"),
        ("estimator", 3, "no sound 'estimator'"),
        ("parameters", [], "no sound 'parameters'"),
        ("metadata", None, "no sound 'metadata'"),
        ("checksums", {}, "checksums are not those"),
    ],
)
def test_impossible_descriptions_are_refused(path, model_bytes, key, value, message):
    header, description, data = taken_apart(model_bytes)
    path.write_bytes(put_together(header, data, {**description, key: value}))
    with pytest.raises(ModelFileError, match=message):
        read(path, verify=False)


START = model_file._HEADER_START + b"0" * 16


@pytest.mark.parametrize(
    "text",
    [
        START,
        START + b'"}',
        START + b'"}}',
        START + b'","sapwood":3}}',
        START + b'","sapwood":"{"}}',
        START + b'","sapwood":"[]"}}',
        START + b'","sapwood":"' + b"[" * 100_000 + b'"}}',
        START + b'","sapwood":"{}","sapwood":"{}"}}',
        START + b'","sapwood":"{\\"format\\":NaN}"}}',
        START + b'","sapwood":"{\\"format\\":' + b"9" * 5000 + b'}"}}',
        START + b'","sapwood":"\xff"}}',
        START + b'"},"a":' + b"[" * 100_000,
        START + b'"},"__metadata__":3}',
    ],
    ids=range(13),
)
def test_malformed_headers_are_refused(path, text):
    path.write_bytes(sealed(text, b""))
    with pytest.raises(ModelFileError):
        read(path)


@pytest.mark.parametrize("contents", [b"", b"\0" * 7, b"\0" * 64, b"\xff" * 640, b"PK\3\4" * 64])
def test_other_files_are_refused(path, contents):
    path.write_bytes(contents)
    with pytest.raises(ModelFileError, match=r"oak\.model: not a model file"):
        read(path)


def test_other_safetensors_files_are_refused(path):
    safetensors.numpy.save_file({"a": np.zeros(16)}, path)
    with pytest.raises(ModelFileError, match="not a model file"):
        read(path)


def test_a_missing_file_is_a_missing_file(path):
    with pytest.raises(FileNotFoundError):
        read(path)


def test_bools_are_0_or_1(path, model_bytes):
    header, _, data = taken_apart(model_bytes)
    data = bytearray(data)
    data[header["leaf"]["data_offsets"][0]] = 2
    path.write_bytes(put_together(header, data))
    with pytest.raises(ModelFileError, match="is of bool"):
        read(path, verify=False)


# --- writing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt()])
def test_a_failing_write_leaves_the_old_model(path, model_bytes, monkeypatch, failing, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(type(error)):
        write(path, estimator="Elm", parameters={}, tensors={"a": np.zeros(1000)})
    assert path.read_bytes() == model_bytes
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_flushed_before_it_is_renamed(path, monkeypatch):
    calls = []

    def note(name, function):
        monkeypatch.setattr(os, name, lambda *arguments: (calls.append(name), function(*arguments)))

    note("fsync", os.fsync)
    note("replace", os.replace)
    write(path, estimator="Elm", parameters={}, tensors={})
    assert calls == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tensors": {"a": np.zeros(2, dtype=complex)}}, "'a' has dtype complex128"),
        ({"tensors": {"a": np.array([None])}}, "'a' has dtype object"),
        ({"tensors": {"_a": np.zeros(2)}}, "begin with an underscore"),
        ({"parameters": {"C": float("nan")}}, "JSON"),
        ({"parameters": {"C": {1, 2}}}, "cannot hold"),
        ({"parameters": {1: "a", "1": "b"}}, "stands twice"),
        ({"estimator": 3}, "no sound 'estimator'"),
        ({"labels": np.array([None])}, "must all be str"),
    ],
)
def test_what_cannot_be_stored_is_named_and_nothing_is_written(path, change, message):
    arguments = {"estimator": "Oak", "parameters": {}, "tensors": {}} | change
    with pytest.raises((ValueError, TypeError), match=message):
        write(path, **arguments)
    assert not list(path.parent.iterdir())


def test_the_file_has_the_permissions_of_any_new_file(path, model_bytes):
    (other := path.with_name("other")).touch()
    assert path.stat().st_mode == other.stat().st_mode


# --- checksum --------------------------------------------------------------------------------------------


def plain_checksum(data):
    def mix(x):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    def fold(a, b):
        return a * b % 2**64 ^ a * b >> 64

    def term(i, pair):
        key = i * 0x9E3779B97F4A7C15 % 2**64
        a, b = (int.from_bytes(word, "little") for word in (pair[:8], pair[8:]))
        return fold(a ^ key, b ^ key ^ 2**64 - 1)

    pairs = [data[i : i + 16] for i in range(0, len(data), 16)]
    total = sum(term(i, pair) for i, pair in enumerate(pairs, start=1)) % 2**64
    return mix(len(data) ^ mix(total))


@FEW
@given(st.binary(max_size=200))
def test_checksum_agrees_with_plain_integers(data):
    assert checksum(data) == plain_checksum(data)
    assert checksum(np.frombuffer(data, dtype=np.uint8)) == plain_checksum(data)


def test_checksum_of_many_words():
    data = np.random.default_rng(0).bytes(8 * 2**12 + 43)
    assert checksum(data) == plain_checksum(data)


def test_checksum_sees_every_bit_and_the_length():
    data = bytes(range(70))
    sums = {checksum(data), checksum(data + b"\0"), checksum(b""), checksum(b"\0")}
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        sums.add(checksum(bytes(flipped)))
    assert len(sums) == 4 + 8 * len(data)


def test_checksum_sees_the_order_of_words():
    assert checksum(np.array([1, 2])) != checksum(np.array([2, 1]))


def test_no_pickle():
    with open(model_file.__file__, encoding="utf-8") as file:
        assert "pickle" not in file.read()


def test_examples_in_the_docstrings_run():
    assert doctest.testmod(model_file).failed == 0
