"""Attack model files: ``attack_model_file.py FOLDER KIND=N ...``. Run by `test_model_files.py`.

FOLDER holds files `*.model` and rows in `x.npz`. Prints for each kind how many of N attacks were refused and how many
answered. Exits with another code than 0 if a damaged file that is verified gives other answers. Whatever else is the
matter with a process that reads a bad file, it must not die or hang.
"""

import faulthandler
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sapwood
from sapwood import model_file

SECONDS_FOR_ONE = 20


def ask(path, X, *, verify=True):
    """All that a model can be asked, or None where it is refused."""
    faulthandler.dump_traceback_later(SECONDS_FOR_ONE, exit=True)
    try:
        model = sapwood.load(path, verify=verify)
        answers = []
        for question in (
            lambda: [part.tobytes() for part in model.predict_topk(X, k=3)],
            lambda: model.predict_topk(X, k=10**6)[1].tobytes(),
            lambda: [np.asarray(row).tobytes() for row in model.predict(X)],
            lambda: model.predict_proba(X),
            lambda: model.explain(X[:1]) if hasattr(model, "explain") else None,
            lambda: model.partial_fit(X, model.classes_[:1].repeat(X.shape[0])) if learns(model) else None,
        ):
            try:
                answers.append(question())
            except Exception as error:
                answers.append(type(error).__name__)
        return answers[:3]
    except Exception:
        return None
    finally:
        faulthandler.cancel_dump_traceback_later()


def learns(model):
    return hasattr(model, "partial_fit") and model._target_kind == "multiclass"


def flips(contents, n, random):
    for at in random.integers(0, 8 * len(contents), n):
        changed = bytearray(contents)
        changed[at // 8] ^= 1 << (at % 8)
        yield changed


def forged(array, random):
    """The array with something wrong about it."""
    array = array.copy()
    wild = [0, 1, -1, 15, 16, 17, 255, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, -(2**62)]
    kind = random.integers(0, 8)
    if kind == 0:
        return array[: random.integers(0, len(array) + 1)] if array.ndim else array
    if kind == 1:
        return np.concatenate([array.reshape(-1), array.reshape(-1)[: random.integers(0, 40)]])
    if kind == 2:
        return array.astype(random.choice([np.int8, np.float64, np.uint64, np.int32, np.int64, np.uint16]))
    if kind == 3:
        return random.permutation(array) if array.ndim else array
    if kind == 4:
        return array.reshape(1, -1)
    if not array.size:
        return array
    flat = array.reshape(-1)
    for _ in range(random.choice([1, 1, 2, 5, 50])):
        at = random.integers(0, array.size)
        if array.dtype.kind == "f":
            flat[at] = random.choice([np.nan, np.inf, -np.inf, 1e38, -1e38, 0])
        elif kind == 5:
            flat[at] = np.array(random.choice(wild)).astype(array.dtype)
        elif kind == 6:
            flat[at] = flat[random.integers(0, array.size)]
        else:
            flat[at] = (
                (int(flat[at]) + int(random.integers(-3, 4))) % 2**16
                if array.dtype.kind == "u"
                else flat[at] + 1
            )
    return array


def forge(path, file, random):
    tensors = dict(file.tensors)
    for name in random.choice(sorted(tensors), random.choice([1, 1, 1, 2, 3])):
        tensors[name] = forged(tensors[name], random)
    write(path, file, tensors=tensors)


WILD_VALUES = [
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    10**12,
    -(10**30),
    0.5,
    -1e300,
    None,
    True,
    "",
    "oak",
    [],
    [[[]]],
    {},
    {"a": 1},
]


def forge_metadata(path, file, random):
    parameters, metadata = dict(file.parameters), dict(file.metadata)
    inner = dict(metadata["model"])
    settings = dict(inner["settings"]) if isinstance(inner.get("settings"), dict) else {}
    place = [parameters, metadata, inner, settings or inner][random.integers(0, 4)]
    name = random.choice(sorted(place))
    place[name] = WILD_VALUES[random.integers(0, len(WILD_VALUES))]
    if place is settings:
        inner["settings"] = settings
    if place is not metadata:
        metadata["model"] = inner
    write(path, file, parameters=parameters, metadata=metadata)


def write(path, file, **changes):
    parts = {
        name: getattr(file, name) for name in ("estimator", "parameters", "tensors", "labels", "metadata")
    }
    model_file.write(path, **{**parts, **changes})


def attack(kind, sound, folder, n, random):
    """Attack one file n times; how many were refused and how many answered."""
    path = folder / "attacked"
    X = sp.load_npz(folder / "x.npz")
    contents, file = sound.read_bytes(), model_file.read(sound, mmap=False)
    expected = ask(sound, X)
    assert expected is not None
    refused = 0
    for changed in flips(contents, n, random) if kind.startswith("flip") else range(n):
        if kind == "forge":
            forge(path, file, random)
        elif kind == "forge-metadata":
            forge_metadata(path, file, random)
        else:
            path.write_bytes(changed)
        got = ask(path, X, verify=kind != "flip-unverified")
        refused += got is None
        if kind == "flip" and got is not None and got != expected:
            sys.exit("a damaged file was read and gave other answers")
    return refused, n - refused


def main(folder, kinds):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    model_file.os.fsync = lambda _: None  # thousands of files that no one will miss
    random = np.random.default_rng(0)
    files = sorted(folder.glob("*.model"))
    for kind, n in kinds.items():
        counts = [attack(kind, sound, folder, n // len(files) + 1, random) for sound in files]
        print(kind, *map(sum, zip(*counts, strict=True)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), {kind: int(n) for kind, n in (word.split("=") for word in sys.argv[2:])})
