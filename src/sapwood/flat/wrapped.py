"""What binary relevance and the label powerset share: classifiers of any kind inside, and how files keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from sapwood._estimator import SapwoodClassifier, classifier_named, n_threads
from sapwood._progress import Report
from sapwood.model_file import FORMAT_VERSION, ModelFile

MOST_SCORES_AT_ONCE = 1 << 21
"""Rows x labels of the dense scores that are held at a time."""


class WrappingClassifier(SapwoodClassifier):
    """Base of the estimators that reduce the problem to others, which `estimator` solves."""

    def __init__(
        self,
        *,
        estimator: BaseEstimator | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        n_threads(self.n_jobs)
        if self.estimator is not None and not (
            isinstance(self.estimator, BaseEstimator) and hasattr(self.estimator, "predict")
        ):
            raise ValueError(f"estimator must be a classifier of scikit-learn's kind, not {self.estimator!r}")

    def _new(self, seed: int | np.random.RandomState | None, **settings: Any) -> Any:
        """A fresh classifier with as much of `settings` as it knows."""
        from sapwood.flat.one_vs_all import OneVsAllClassifier

        model = OneVsAllClassifier() if self.estimator is None else clone(self.estimator)
        wanted = {"random_state": seed, **settings}
        known = model.get_params()
        return model.set_params(**{name: value for name, value in wanted.items() if name in known})

    def _run(self, work: Callable[[int], Any], n: int, report: Report | None) -> list[Any]:
        """Call work(0), ..., work(n - 1) on as many threads as wanted; the answers in order."""
        done = []
        with ThreadPoolExecutor(min(n_threads(self.n_jobs), n)) as pool:
            try:
                for answer in pool.map(work, range(n)):
                    done.append(answer)
                    if report is not None:
                        report(len(done), n)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return done

    def _tensors_of(self, model: Any) -> dict[str, NDArray[Any]]:
        file = self._file_of(model)
        return {"inner_labels": np.asarray(file.labels), **{f"inner.{k}": v for k, v in file.tensors.items()}}

    def _file_of(self, model: Any) -> ModelFile:
        if not isinstance(model, SapwoodClassifier):
            name = type(model).__name__
            raise TypeError(f"a model file cannot hold the {name} inside: pickle this model instead")
        return model._as_file()

    def _metadata_of(self, model: Any) -> dict[str, Any]:
        file = self._file_of(model)
        return {"estimator": file.estimator, "parameters": file.parameters, "metadata": file.metadata}


def restored(
    tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any], n_features: int
) -> SapwoodClassifier:
    """The model inside, as `_tensors_of` and `_metadata_of` wrote it."""
    own = {name.removeprefix("inner."): t for name, t in tensors.items() if name.startswith("inner.")}
    file = ModelFile(
        format_version=FORMAT_VERSION,
        estimator=metadata["estimator"],
        parameters=metadata["parameters"],
        metadata=metadata["metadata"],
        labels=tensors["inner_labels"],
        tensors=own,
    )
    model = classifier_named(file.estimator)._from_file(file)
    if model.n_features_in_ != n_features:
        raise ValueError("the model inside has another number of columns")
    return model


def fit_weighted(model: Any, X: Any, y: Any, weight: NDArray[np.float32] | None) -> Any:
    """Fit, with the weights if there are any."""
    if weight is None:
        return model.fit(X, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(f"{type(model).__name__} takes no sample_weight")
    return model.fit(X, y, sample_weight=weight)


def yes_probability(model: Any, X: Any) -> NDArray[np.float64]:
    """Probability of the second of two classes; of a decision f, where there is no other, 1 / (1 + exp(-f))."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
    if hasattr(model, "decision_function"):
        return np.asarray(expit(model.decision_function(X)))
    return np.asarray(model.predict(X), dtype=np.float64)


def class_probabilities(model: Any, X: Any) -> Any:
    """Probabilities of the classes; of decisions, where there is nothing else, their softmax. Dense or CSR."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    if hasattr(model, "decision_function"):
        decisions = np.asarray(model.decision_function(X))
        if decisions.ndim == 1:
            return np.column_stack([expit(-decisions), expit(decisions)])
        return softmax(decisions, axis=1)
    return (np.asarray(model.predict(X))[:, None] == model.classes_).astype(np.float64)


def blocks_of(X: Any, n_rows: int) -> Iterator[Any]:
    """The matrix, so many rows at a time; whole if they are enough."""
    for first in range(0, X.shape[0], n_rows):
        yield X if n_rows >= X.shape[0] else X[first : first + n_rows]


def best_columns(
    scores: NDArray[np.float64], k: int, reachable: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k best of the reachable columns in each row, the first of equal ones first."""
    order = np.argsort(-scores[:, reachable], axis=1, kind="stable")[:, :k]
    codes = reachable[order]
    return codes.astype(np.int32), np.take_along_axis(scores, codes, axis=1).astype(np.float32)
