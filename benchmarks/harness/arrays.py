"""The arrays every side gets: read from text once by the driver, loaded by each side's subprocess."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Split:
    """Rows of one split: X is CSR float32 with L2-normalised rows.

    Y holds class numbers from 0 (1-D, multiclass) or is a CSR indicator (multilabel).
    """

    X: Any
    Y: Any

    @property
    def is_multilabel(self) -> bool:
        """Whether a row can have any number of labels."""
        return bool(sp.issparse(self.Y))


def read_text(folder: Path) -> dict[str, Split]:
    """Read `train.txt.gz`, `test.txt.gz`: XMC repository format if they have a header, else svmlight."""
    with gzip.open(folder / "train.txt.gz", "rt") as file:
        first = file.readline()
    is_xmc = ":" not in first and len(first.split()) == 3
    return _read_xmc(folder) if is_xmc else _read_svmlight(folder)


def _read_xmc(folder: Path) -> dict[str, Split]:
    from sklearn.datasets import load_svmlight_file

    splits = {}
    for name in SPLITS:
        with gzip.open(folder / f"{name}.txt.gz", "rb") as file:
            n, n_features, n_labels = (int(field) for field in file.readline().split())
            X, labels = load_svmlight_file(
                file, n_features=n_features, dtype=np.float32, multilabel=True, zero_based=True
            )
        if X.shape[0] != n:
            raise ValueError(f"{folder.name}/{name}: the header promises {n} rows, the file has {X.shape[0]}")
        indices = np.array([label for row in labels for label in row], dtype=np.int32)
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in labels])]).astype(np.int32)
        Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(n, n_labels))
        Y.sort_indices()
        splits[name] = Split(_unit_rows(X), Y)
    return splits


def _read_svmlight(folder: Path) -> dict[str, Split]:
    from sklearn.datasets import load_svmlight_files

    files = [str(folder / f"{name}.txt.gz") for name in SPLITS]
    X_train, y_train, X_test, y_test = load_svmlight_files(files, dtype=np.float32)
    _, codes = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)
    y_train, y_test = np.split(codes.astype(np.int32), [len(y_train)])
    return {"train": Split(_unit_rows(X_train), y_train), "test": Split(_unit_rows(X_test), y_test)}


def _unit_rows(X: Any) -> Any:
    from sklearn.preprocessing import normalize

    X = sp.csr_matrix(normalize(X), dtype=np.float32)
    X.sort_indices()
    return X


def save(splits: dict[str, Split], cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    for old in cache.glob("*.np[yz]"):
        old.unlink()
    for name, split in splits.items():
        sp.save_npz(cache / f"{name}_X.npz", split.X, compressed=False)
        if split.is_multilabel:
            sp.save_npz(cache / f"{name}_Y.npz", split.Y, compressed=False)
        else:
            np.save(cache / f"{name}_Y.npy", split.Y)


def load(cache: Path, name: str) -> Split:
    multiclass = cache / f"{name}_Y.npy"
    Y = np.load(multiclass) if multiclass.exists() else sp.load_npz(cache / f"{name}_Y.npz")
    return Split(sp.load_npz(cache / f"{name}_X.npz"), Y)


def count_labels(splits: dict[str, Split]) -> int:
    if splits["train"].is_multilabel:
        return int(splits["train"].Y.shape[1])
    return int(max(split.Y.max() for split in splits.values())) + 1


def as_indicator(Y: Any, n_labels: int) -> Any:
    """Give the CSR indicator that multilabel peers want, whichever kind Y is."""
    if sp.issparse(Y):
        return Y
    return sp.csr_matrix((np.ones(len(Y), np.float32), Y, np.arange(len(Y) + 1)), shape=(len(Y), n_labels))
