"""What every estimator shares: checks, label codes, answers, save and load."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from sapwood import _core, model_file
from sapwood._labels import Kind, Targets, read_targets
from sapwood._rows import check_rows

Self = TypeVar("Self", bound="SapwoodClassifier")
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

MOST_DENSE_LABELS = 1000
"""`predict_proba` gives a dense array up to so many labels, and CSR above."""

MOST_THREADS = 1024


def all_or_nothing(
    method: Callable[Concatenate[Self, Arguments], Answer],
) -> Callable[Concatenate[Self, Arguments], Answer]:
    """Decorate a method that sets attributes: if it fails, or is interrupted, all of them are as they were."""

    @wraps(method)
    def run(self: Self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        before = dict(self.__dict__)
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return run  # type: ignore[return-value]  # wraps() forgets that the first parameter goes without a name


class SapwoodClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators. A method supplies `_top`, `_tensors` and `_restore`; the answers are made here."""

    classes_: NDArray[Any]
    n_features_in_: int
    _target_kind: Kind
    _target_dtype: str | None

    # What a method supplies

    @abstractmethod
    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Codes and scores of the k best labels of each row, best first; -1 and 0 where there are fewer."""

    @abstractmethod
    def _n_reachable(self) -> int:
        """How many labels a prediction can name."""

    @abstractmethod
    def _tensors(self) -> dict[str, NDArray[Any]]:
        """The fitted model as arrays."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError that names the first parameter out of its range."""

    def _metadata(self) -> dict[str, Any]:
        """What else the fitted model needs, as JSON can hold it."""
        return {}

    @abstractmethod
    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        """Take back what `_tensors` and `_metadata` gave."""

    # Training: what comes in

    @all_or_nothing
    def _begin_fit(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> tuple[_core.Rows, Targets, NDArray[np.float32] | None]:
        """Check all input before anything of the model changes."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        rows = check_rows(self, X, reset=reset)
        targets = read_targets(y)
        if targets.n_rows != rows.n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {rows.n_rows} rows, "
                f"y has {targets.n_rows}"
            )
        if len(targets.codes) == 0:
            raise ValueError("y has no labels: there is nothing to learn")
        weight = None
        if sample_weight is not None:
            weight = _read_weights(sample_weight, rows.n_rows)
            if reset and not weight.any():
                raise ValueError("sample_weight is zero for every row")
        return rows, targets, weight

    def _note_targets(self, targets: Targets) -> None:
        self.classes_ = targets.classes
        self._target_kind = targets.kind
        self._target_dtype = targets.dtype.str if targets.dtype is not None else None

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    # Answers

    def _rows(self, X: Any) -> _core.Rows:
        if "classes_" not in self.__dict__:  # the quick way to know that it is fitted
            check_is_fitted(self)
        return check_rows(self, X, reset=False)

    def _one_row(self, x: Any) -> _core.Rows:
        rows = self._rows(x)
        if rows.n_rows != 1:
            raise ValueError(f"explain takes one row, not {rows.n_rows}")
        return rows

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Give the k best labels of each row and their scores, best first.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows to classify.
        k : int, default=5
            How many labels to give. Where the model knows fewer, it gives all it knows.

        Returns
        -------
        labels : ndarray of shape (n_samples, min(k, n_labels))
            The labels, as they were given to `fit`.
        scores : ndarray of float32 of the same shape
            The probability that the model gives to each label.
        """
        rows = self._rows(X)
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k must be a whole number of 1 or more, not {k!r}")
        codes, scores = self._top(rows, min(int(k), self._n_reachable()))
        return self.classes_[codes], scores

    def predict(self, X: Any) -> Any:
        """Give each row its best label or, after multilabel training, all labels more likely than not.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,), or an indicator or list of arrays
            In the form that `fit` was given.
        """
        rows = self._rows(X)
        if self._target_kind == "multiclass":
            return self.classes_[self._top(rows, 1)[0][:, 0]]
        codes, indptr = self._likely(rows)
        if self._target_kind == "lists":
            return [self.classes_[codes[a:b]] for a, b in pairwise(indptr)]
        dtype = self._target_dtype or np.float32
        shape = (rows.n_rows, len(self.classes_))
        indicator = sp.csr_matrix((np.ones(len(codes), dtype=dtype), codes, indptr), shape=shape)
        indicator.sort_indices()
        return indicator if self._target_kind == "indicator" else indicator.toarray()

    def _likely(self, rows: _core.Rows) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Codes of the labels of each row that are more likely than not, as CSR."""
        reachable, k = self._n_reachable(), 16
        while True:  # until every row has an unlikely label among its k best
            k = min(k, reachable)
            codes, scores = self._top(rows, k)
            likely = (scores >= 0.5) & (codes >= 0)
            if k == reachable or not likely[:, -1].any():
                return codes[likely], np.concatenate([[0], likely.sum(1).cumsum()])
            k *= 4

    def predict_proba(self, X: Any) -> Any:
        """Give the probabilities of the labels.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray or csr_matrix of shape (n_samples, n_labels)
            CSR above 1,000 labels: there only the labels that the search has met stand. After multiclass training
            the probabilities of a row add up to 1; after multilabel training each label has its own.
        """
        rows = self._rows(X)
        n_labels = len(self.classes_)
        is_dense = n_labels <= MOST_DENSE_LABELS
        codes, scores = self._top(rows, self._n_reachable() if is_dense else self._n_met())
        met = codes >= 0
        if self._target_kind == "multiclass":
            total = scores.sum(axis=1, keepdims=True, dtype=np.float64)
            scores[:, 0] += total[:, 0] == 0  # every label out of the question: the best of them it is
            scores = (scores / np.where(total > 0, total, 1)).astype(np.float32)
        indptr = np.concatenate([[0], met.sum(1).cumsum()])
        proba = sp.csr_matrix((scores[met], codes[met], indptr), shape=(rows.n_rows, n_labels))
        proba.sort_indices()
        return proba.toarray() if is_dense else proba

    def _n_met(self) -> int:
        """How many labels a search meets at the most."""
        return min(self._n_reachable(), MOST_DENSE_LABELS)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Give the share of rows whose best label is right: accuracy or, after multilabel training, precision at 1.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows to classify.
        y : labels
            The true labels, in any form that `fit` takes.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row.
        """
        best = self.predict_topk(X, k=1)[0][:, 0]
        truth = read_targets(y)
        weights = None if sample_weight is None else _read_weights(sample_weight, len(best))
        if truth.n_rows != len(best):
            raise ValueError(f"X has {len(best)} rows, y has {truth.n_rows}")
        row_of = np.repeat(np.arange(truth.n_rows), np.diff(truth.indptr))
        right = np.zeros(len(best), dtype=bool)
        right[row_of[truth.classes[truth.codes] == best[row_of]]] = True
        if weights is None:
            return float(right.mean())
        if not weights.any():
            raise ValueError("sample_weight is zero for every row")
        return float(np.average(right, weights=weights.astype(np.float64)))

    # Files

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        extra_tensors: Mapping[str, NDArray[Any]] | None = None,
        extra_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the fitted model to one file, which `sapwood.load` reads. No pickle.

        Parameters
        ----------
        path : path-like
            Where to. The file appears complete or not at all.
        extra_tensors, extra_metadata : mapping, optional
            What else to keep in the file; `sapwood.model_file.read` gives it back.
        """
        file = self._as_file()
        model_file.write(
            path,
            estimator=file.estimator,
            parameters=file.parameters,
            labels=file.labels,
            tensors={**(extra_tensors or {}), **file.tensors},
            metadata={**(extra_metadata or {}), **file.metadata},
        )

    def _as_file(self) -> model_file.ModelFile:
        """What a file of the fitted model holds."""
        check_is_fitted(self)
        metadata = {
            "model": self._metadata(),
            "n_features": int(self.n_features_in_),
            "feature_names": np.asarray(getattr(self, "feature_names_in_", [])).tolist(),
            "target_kind": self._target_kind,
            "target_dtype": self._target_dtype,
        }
        return model_file.ModelFile(
            format_version=model_file.FORMAT_VERSION,
            estimator=type(self).__name__,
            parameters={name: _as_json(value) for name, value in self.get_params(deep=False).items()},
            metadata=metadata,
            labels=self.classes_,
            tensors={f"model.{name}": tensor for name, tensor in self._tensors().items()},
        )

    @classmethod
    def _from_file(cls: type[Self], file: model_file.ModelFile) -> Self:
        try:
            estimator = cls(**{name: _from_json(value) for name, value in file.parameters.items()})
            metadata = file.metadata
            if file.labels is None:
                raise ValueError("it has no labels")
            estimator.classes_ = file.labels
            estimator.n_features_in_ = int(metadata["n_features"])
            if metadata["feature_names"]:
                estimator.feature_names_in_ = np.array(metadata["feature_names"], dtype=object)
            estimator._target_kind = metadata["target_kind"]
            estimator._target_dtype = metadata["target_dtype"]
            own = {
                name.removeprefix("model."): t
                for name, t in file.tensors.items()
                if name.startswith("model.")
            }
            estimator._restore(own, metadata["model"])
        except (KeyError, TypeError, ValueError) as error:
            raise model_file.ModelFileError(f"not a sound {cls.__name__}: {error}") from error
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _read_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float32]:
    """The importance of each row; a number stands for all of them."""
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    weights: NDArray[np.float32] = check_array(
        sample_weight, ensure_2d=False, dtype=np.float32, input_name="sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must be 1D with one weight for each of {n_rows} rows, not of shape {weights.shape}"
        )
    if (weights < 0).any():
        raise ValueError("Negative values in sample_weight: a row counts for 0 or more")
    return weights


def n_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for: None is 1, -1 all cores, -2 all but one, and so on."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, not {n_jobs!r}")
    if n_jobs > 0:
        return min(int(n_jobs), MOST_THREADS)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores + 1 + int(n_jobs))


def _as_json(value: Any) -> Any:
    """A parameter as JSON can hold it; a random generator, which it cannot, becomes None."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):  # JSON would make strings of the keys
        return [[_as_json(key), _as_json(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, SapwoodClassifier):
        parameters = {name: _as_json(item) for name, item in value.get_params(deep=False).items()}
        return {"estimator": type(value).__name__, "parameters": parameters}
    if isinstance(value, BaseEstimator):
        raise TypeError(f"a model file cannot hold {value!r}: pickle this model instead")
    return value


def _from_json(value: Any) -> Any:
    """A parameter as `_as_json` wrote it; only an estimator is a dict."""
    if not isinstance(value, dict):
        return value
    parameters = {name: _from_json(item) for name, item in value["parameters"].items()}
    return classifier_named(value["estimator"])(**parameters)


def classifier_named(name: str) -> type[SapwoodClassifier]:
    """The public estimator of this name."""
    import sapwood

    if name not in sapwood.__all__ or not name.endswith("Classifier"):
        raise ValueError(f"unknown estimator {name!r}")
    found: type[SapwoodClassifier] = getattr(sapwood, name)
    return found
