"""What the estimators share that learn online: labels that appear when they appear."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import SapwoodClassifier
from sapwood._labels import Targets, as_label_array

Self = TypeVar("Self", bound="OnlineClassifier")


class OnlineClassifier(SapwoodClassifier):
    """Base of the estimators with `partial_fit`: a method supplies `_start`, `_learn` and what SapwoodClassifier wants.

    `classes_` holds the labels in the order in which they were first seen; those of one `fit`, sorted.
    """

    @abstractmethod
    def _start(self) -> None:
        """Begin with a model that has learned nothing."""

    @abstractmethod
    def _learn(
        self, rows: _core.Rows, targets: Targets, weight: NDArray[np.float32] | None, n_known: int
    ) -> None:
        """Learn rows in their order, each predicted before it is learned and counted by `_progressive`.

        The codes are those of `classes_`, which holds every label of `targets`. The first `n_known` were met or
        announced before; the others are new, numbered in the order in which they occur.
        """

    @abstractmethod
    def _progressive(self) -> tuple[float, float]:
        """Weight of the rows that `_learn` predicted wrongly before it learned them, and of all its rows."""

    @property
    def progressive_loss_(self) -> float:
        """Share of the rows given to `partial_fit` whose best label, before they were learned, was not theirs.

        Each row is predicted by what was learned before it, so this is an honest estimate of the error to come. Rows
        count by their weight; a label never met is always a mistake. What `fit` learns does not count.
        """
        wrong, seen = self._progressive() if self._is_started() else (0.0, 0.0)
        if not seen:
            raise AttributeError("progressive_loss_ is there after partial_fit")
        return wrong / seen

    def partial_fit(
        self: Self, X: Any, y: Any, sample_weight: ArrayLike | None = None, classes: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, in their order. Labels may be new at any time.

        One call with many rows is the same as many calls with one row each.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            The rows. float32 data are not copied.
        y : array-like of shape (n_samples,), indicator of shape (n_samples, n_labels), or list of lists of labels
            Ints or strings, one label a row; a 2-D array or CSR of zeros and ones; or the labels of each row.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row, 0 or more.
        classes : array-like, optional
            Labels to know from now on. Never needed; scikit-learn's tools pass it.
        """
        self._check_parameters()
        is_new = not self._is_started()
        rows, targets, weight = self._begin_fit(X, y, sample_weight, reset=is_new)
        if not is_new and targets.kind != self._target_kind:
            raise ValueError(f"y is {targets.kind}, but learning began with {self._target_kind}")
        if not is_new and targets.kind.endswith("indicator") and len(targets.classes) != len(self.classes_):
            raise ValueError(
                f"y has {len(targets.classes)} columns, but learning began with {len(self.classes_)}"
            )
        announced = targets.classes[:0] if classes is None else as_label_array(classes)
        self._check_same_kind(targets.classes, announced, targets.classes[:0] if is_new else self.classes_)
        if is_new:
            self._start()
            self._note_targets(targets)
            self.classes_ = targets.classes[:0]
            self._code_of: dict[Any, int] = {}
        self._add(announced)
        if targets.kind.endswith("indicator"):  # its columns are announced
            self._add(targets.classes)
        n_known = len(self.classes_)
        self._learn(rows, self._known(targets), weight, n_known)
        return self

    def _is_started(self) -> bool:
        return hasattr(self, "classes_")

    @staticmethod
    def _check_same_kind(*labels: NDArray[Any]) -> None:
        if len({array.dtype.kind == "U" for array in labels if len(array)}) > 1:
            raise ValueError("labels mix strings and numbers: make them all of one kind")
        dtypes = {array.dtype for array in labels if len(array)}
        if {dtype.kind for dtype in dtypes} == {"i", "u"} and np.result_type(*dtypes).kind == "f":
            raise ValueError("labels mix int64 and uint64: make them all of one dtype")

    def _known(self, targets: Targets) -> Targets:
        """The same targets with codes by order of arrival; new labels are added to `classes_`."""
        if targets.kind.endswith("indicator"):
            return targets
        _, first = np.unique(targets.codes, return_index=True)
        self._add(targets.classes[targets.codes[np.sort(first)]])
        code_of = np.array(
            [self._code_of.get(label, -1) for label in targets.classes.tolist()], dtype=np.int32
        )
        return Targets(targets.kind, self.classes_, targets.indptr, code_of[targets.codes])

    def _add(self, labels: NDArray[Any]) -> None:
        new = [label for label in dict.fromkeys(labels.tolist()) if label not in self._code_of]
        if not new:
            return
        self._code_of.update((label, code) for code, label in enumerate(new, start=len(self._code_of)))
        added = np.array(new, dtype=None if labels.dtype.kind == "U" else labels.dtype)
        self.classes_ = _appended(self.classes_, added) if len(self.classes_) else added

    def _note_labels(self) -> None:
        """Rebuild what `partial_fit` needs to know of `classes_`: after `fit` and after loading."""
        self._code_of = {label: code for code, label in enumerate(self.classes_.tolist())}


def _appended(labels: NDArray[Any], added: NDArray[Any]) -> NDArray[Any]:
    """Labels one after the other. What lies behind them in memory is room for more, so that one more costs no copy."""
    dtype = np.result_type(labels, added)
    n = len(labels) + len(added)
    room = labels.base
    is_room = isinstance(room, np.ndarray) and room.flags.writeable and room.ctypes.data == labels.ctypes.data
    if room is None or not is_room or room.dtype != dtype or len(room) < n:  # a mapped file, say, is no room
        room = np.empty(2 * n, dtype=dtype)
        room[: len(labels)] = labels
    room[len(labels) : n] = added
    return room[:n]
