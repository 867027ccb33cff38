"""Binary relevance: a classifier for each label, of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import all_or_nothing
from sapwood._labels import Targets
from sapwood._progress import Report, progress
from sapwood.flat.one_vs_all import OneVsAllClassifier
from sapwood.flat.wrapped import (
    MOST_SCORES_AT_ONCE,
    WrappingClassifier,
    best_columns,
    blocks_of,
    fit_weighted,
    restored,
    yes_probability,
)


@dataclass(frozen=True)
class LabelExplanation:
    """What was decided of one row.

    Attributes
    ----------
    label
        The best label.
    score : float
        Its probability.
    yes : list
        All labels whose classifiers say yes.
    """

    label: Any
    score: float
    yes: list[Any]


class BinaryRelevanceClassifier(WrappingClassifier):
    """One yes-or-no classifier for each label, each learned as if the others were not there.

    The plainest of multilabel methods, and the baseline of the others. With the default inside, all labels are solved
    jointly, sixteen to a bank, which is `OneVsAllClassifier`; any other classifier is cloned for each label.

    Parameters
    ----------
    estimator : classifier, optional
        What learns each label: anything of scikit-learn's kind. By default `OneVsAllClassifier`.
    random_state : int, RandomState or None, default=None
        Seed, handed on to the classifiers inside.
    n_jobs : int, optional
        Threads: None is 1, -1 all cores.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the training data.
    estimators_ : list
        One classifier for each label or, where all were solved jointly, that one. None stands for a label that no row
        has, or every row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> from sapwood import BinaryRelevanceClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> BinaryRelevanceClassifier(estimator=LinearSVC(C=10)).fit(X, [["oak"], ["ash"], ["oak", "ash"]]).predict(X[:1])
    [array(['oak'], dtype='<U3')]
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> BinaryRelevanceClassifier:
        """Train on rows and their labels; a model that was there before is replaced.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,), indicator of shape (n_samples, n_labels), or list of lists of labels
            Ints or strings, one label a row; a 2-D array or CSR of zeros and ones; or the labels of each row.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row, 0 or more; refused if the classifier inside takes none.
        """
        self._check_parameters()
        rows, targets, weight = self._begin_fit(X, y, sample_weight)
        is_joint = self.estimator is None or isinstance(self.estimator, OneVsAllClassifier)
        with progress(f"{type(self).__name__}: {len(targets.classes):,} labels", self.verbose) as report:
            if is_joint:
                estimators = [self._fit_jointly(rows, targets, weight, report)]
            else:
                estimators = self._fit_apart(rows, targets, weight, self._seed(), report)
        self.estimators_ = estimators
        self._is_joint = is_joint
        self._counts = targets.counts()
        self._note_targets(targets)
        return self

    def _fit_jointly(
        self,
        rows: _core.Rows,
        targets: Targets,
        weight: NDArray[np.float32] | None,
        report: Report | None,
    ) -> Any:
        model = self._new(self.random_state, n_jobs=self.n_jobs)
        model._fit_targets(rows, targets.as_indicator(), weight, report)
        return model

    def _fit_apart(
        self,
        rows: _core.Rows,
        targets: Targets,
        weight: NDArray[np.float32] | None,
        seed: int,
        report: Report | None,
    ) -> list[Any]:
        carriers = targets.indicator().tocsc()
        n_rows = targets.n_rows

        def fit_one(label: int) -> Any:
            with_it = carriers.indices[carriers.indptr[label] : carriers.indptr[label + 1]]
            if len(with_it) in (0, n_rows):
                return None
            answer = np.zeros(n_rows, dtype=np.int64)
            answer[with_it] = 1
            return fit_weighted(self._new(seed), rows.matrix, answer, weight)

        return self._run(fit_one, len(targets.classes), report)

    def explain(self, x: Any) -> LabelExplanation:
        """Tell the best label of one row, and every label whose classifier says yes.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        codes, scores = self._top(rows, 1)
        yes = self._likely(rows)[0]
        return LabelExplanation(self.classes_[codes[0, 0]], float(scores[0, 0]), self.classes_[yes].tolist())

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if self._is_joint:
            return self.estimators_[0]._top(rows, k)  # type: ignore[no-any-return]
        at_once = max(1, MOST_SCORES_AT_ONCE // len(self.classes_))
        blocks = [
            best_columns(self._scores(X), k, np.flatnonzero(self._counts))
            for X in blocks_of(rows.matrix, at_once)
        ]
        return np.concatenate([codes for codes, _ in blocks]), np.concatenate(
            [scores for _, scores in blocks]
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Rows x labels, probabilities."""
        scores = np.zeros((X.shape[0], len(self.classes_)))

        def score_one(label: int) -> None:
            model = self.estimators_[label]
            scores[:, label] = float(self._counts[label] > 0) if model is None else yes_probability(model, X)

        self._run(score_one, len(self.classes_), None)
        return scores

    def _n_reachable(self) -> int:
        return int(np.count_nonzero(self._counts))

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return {"counts": self._counts, **self._tensors_of(self.estimators_[0])}

    def _metadata(self) -> dict[str, Any]:
        if not self._is_joint:
            name = type(self.estimator).__name__
            raise TypeError(f"a model file cannot hold a {name} for each label: pickle this model instead")
        return self._metadata_of(self.estimators_[0])

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        model = restored(tensors, metadata, self.n_features_in_)
        counts = tensors["counts"]
        if (
            not isinstance(model, OneVsAllClassifier)
            or counts.dtype != np.int64
            or not np.array_equal(model.classes_, np.arange(len(self.classes_)))
            or counts.shape != model.classes_.shape
            or np.count_nonzero(counts) != model._n_reachable()
        ):
            raise ValueError("the model inside does not fit the labels")
        self.estimators_, self._is_joint, self._counts = [model], True, counts
