"""No model file can crash the process: damaged ones are refused, forged ones too, or they give some answer.

The attacks run in a process of their own, so that a crash is a failure here and not the end of all tests.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from contract_cases import (
    VARIANTS,
    every_estimator,
    every_variant,
    label_lists,
    make_rows,
    takes_several_labels,
)
from sklearn.base import clone

import sapwood
from sapwood import model_file

X, CODES = make_rows()
ATTACKS = Path(__file__).with_name("attack_model_file.py")


N_ATTACKS = {"flip": 1000, "flip-unverified": 300, "forge": 500, "forge-metadata": 200}
N_FEWER = {kind: n // 5 for kind, n in N_ATTACKS.items()}  # where only the model's own arrays are new


@every_estimator
def test_damaged_and_forged_files_are_refused_or_answer(estimator, tmp_path):
    """Flipped bits, with and without a look at the checksums; and hostile arrays and metadata under valid ones."""
    name = type(estimator).__name__
    names = np.array([f"label {code}" for code in range(CODES.max() + 1)])
    lists = [names[labels].tolist() for labels in label_lists(CODES)]
    for number, kwargs in enumerate(VARIANTS.get(name, [{}])):
        model = clone(estimator).set_params(**kwargs)
        model.fit(X, CODES).save(tmp_path / f"{number}-multiclass.model")
        if takes_several_labels(model):
            model.fit(X, lists).save(tmp_path / f"{number}-lists.model")
    sp.save_npz(tmp_path / "x.npz", X[::8])
    n_attacks = N_ATTACKS if name == "LabelTreeClassifier" else N_FEWER
    command = [sys.executable, str(ATTACKS), str(tmp_path), *(f"{kind}={n}" for kind, n in n_attacks.items())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    counts = {
        kind: (int(refused), int(answered))
        for kind, refused, answered in map(str.split, done.stdout.splitlines())
    }
    assert all(sum(counts[kind]) >= n for kind, n in n_attacks.items())
    assert counts["flip"][0] > 0.9 * sum(counts["flip"])
    assert counts["forge"][0] > 0.1 * sum(counts["forge"])  # not only the header is looked at


@every_variant
def test_a_file_cut_off_is_refused(estimator, tmp_path):
    path = tmp_path / "oak.model"
    clone(estimator).fit(X, CODES).save(path)
    whole = path.read_bytes()
    for size in [0, 1, 7, 8, 9, 63, 64, 500, *range(1000, len(whole), len(whole) // 40), len(whole) - 1]:
        path.write_bytes(whole[:size])
        for verify in (True, False):
            with pytest.raises(model_file.ModelFileError):
                sapwood.load(path, verify=verify)
    path.write_bytes(whole + b"\0")
    with pytest.raises(model_file.ModelFileError):
        sapwood.load(path)


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "m"
    for text in (b"", b"oak", b"\0" * 4096, b"\xff" * 4096, b'{"a": 1}' * 500):
        path.write_bytes(text)
        with pytest.raises(model_file.ModelFileError):
            sapwood.load(path)
    with pytest.raises(OSError, match="No such file"):
        sapwood.load(tmp_path / "nowhere")
    model_file.write(path, estimator="Oak", parameters={}, tensors={})
    with pytest.raises(model_file.ModelFileError, match="unknown estimator 'Oak'"):
        sapwood.load(path)
    model_file.write(path, estimator="load", parameters={}, tensors={})
    with pytest.raises(model_file.ModelFileError, match="unknown estimator"):
        sapwood.load(path)


@every_variant
def test_a_file_without_a_part_is_refused(estimator, tmp_path):
    path = tmp_path / "oak.model"
    clone(estimator).fit(X, CODES).save(path)
    file = model_file.read(path)

    def write(**changes):
        parts = {
            name: getattr(file, name) for name in ("estimator", "parameters", "tensors", "labels", "metadata")
        }
        model_file.write(path, **{**parts, **changes})
        with pytest.raises(model_file.ModelFileError, match="not a sound"):
            sapwood.load(path)

    for name in file.tensors:
        write(tensors={other: tensor for other, tensor in file.tensors.items() if other != name})
    for name in file.metadata:
        write(metadata={other: value for other, value in file.metadata.items() if other != name})
    write(labels=None)
    write(parameters={**file.parameters, "no_such_parameter": 1})
