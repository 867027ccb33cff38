"""Label powerset: every set of labels that was seen is a class of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import SapwoodClassifier, all_or_nothing
from sapwood._labels import Targets
from sapwood._progress import progress
from sapwood.flat.one_vs_all import OneVsAllClassifier
from sapwood.flat.wrapped import (
    MOST_SCORES_AT_ONCE,
    WrappingClassifier,
    best_columns,
    blocks_of,
    class_probabilities,
    fit_weighted,
    restored,
)


@dataclass(frozen=True)
class LabelSetExplanation:
    """What was decided of one row.

    Attributes
    ----------
    labels : list
        The labels of the set chosen.
    n_sets : int
        Among how many sets.
    """

    labels: list[Any]
    n_sets: int


class LabelPowersetClassifier(WrappingClassifier):
    """One class for each set of labels that the training rows have, and a multiclass classifier among these.

    It sees how labels go together, and answers only with sets that it has seen. Its time grows with the number of sets;
    `PowersetTreeClassifier` puts a tree over them.

    Parameters
    ----------
    estimator : classifier, optional
        What tells the sets apart: anything of scikit-learn's kind. By default `OneVsAllClassifier`.
    random_state : int, RandomState or None, default=None
        Seed, handed on to the classifier inside.
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
    estimator_ : classifier or None
        What was learned; its classes number the sets. None where there is one set only.
    sets_ : csr_matrix of shape (n_sets, n_labels)
        The sets seen, in lexicographic order.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import LabelPowersetClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = LabelPowersetClassifier(random_state=0).fit(X, [["oak"], ["ash"], ["ash", "oak"]])
    >>> model.predict(X[2:])
    [array(['ash', 'oak'], dtype='<U3')]
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> LabelPowersetClassifier:
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
        set_of_row, begin, labels = _core.distinct_label_sets(
            targets.indptr, targets.codes, n_labels=len(targets.classes)
        )
        n_sets = len(begin) - 1
        model = None
        with progress(f"{type(self).__name__}: {n_sets:,} label sets", self.verbose) as report:
            if n_sets > 1:
                model = self._new(self.random_state, n_jobs=self.n_jobs)
                if isinstance(model, OneVsAllClassifier):
                    model._fit_targets(rows, one_a_row(set_of_row, n_sets), weight, report)
                else:
                    fit_weighted(model, rows.matrix, set_of_row, weight)
            if report is not None:
                report(1, 1)
        self.estimator_ = model
        self.sets_ = sp.csr_matrix(
            (np.ones(len(labels), np.float32), labels, begin), shape=(n_sets, len(targets.classes))
        )
        self._note_targets(targets)
        return self

    def explain(self, x: Any) -> LabelSetExplanation:
        """Tell the label set of one row, and among how many it was chosen.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        codes, _ = self._likely(self._one_row(x))
        return LabelSetExplanation(self.classes_[codes].tolist(), self.sets_.shape[0])

    def _likely(self, rows: _core.Rows) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        answer = self.sets_[self._best_sets(rows)]
        return answer.indices.astype(np.int32), answer.indptr.astype(np.int64)

    def _best_sets(self, rows: _core.Rows) -> NDArray[np.int64]:
        if self.estimator_ is None:
            return np.zeros(rows.n_rows, dtype=np.int64)
        if isinstance(self.estimator_, SapwoodClassifier):
            return self.estimator_.classes_[self.estimator_._top(rows, 1)[0][:, 0]]
        return np.asarray(self.estimator_.predict(rows.matrix), dtype=np.int64)

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if isinstance(self.estimator_, SapwoodClassifier) and self._target_kind == "multiclass":
            codes, scores = self.estimator_._top(rows, k)  # every set is one label
            return self.sets_.indices[codes].astype(np.int32), scores
        width = max(len(self.classes_), self.sets_.shape[0])
        at_once = max(1, MOST_SCORES_AT_ONCE // width)
        blocks = [
            best_columns(self._marginals(X), k, self._reachable()) for X in blocks_of(rows.matrix, at_once)
        ]
        return np.concatenate([codes for codes, _ in blocks]), np.concatenate(
            [scores for _, scores in blocks]
        )

    def _marginals(self, X: Any) -> NDArray[np.float64]:
        """Rows x labels: the probability of all sets that have the label."""
        if self.estimator_ is None:
            return np.repeat(self.sets_.toarray().astype(np.float64), X.shape[0], axis=0)
        shares = class_probabilities(self.estimator_, X)
        sets = self.sets_[self.estimator_.classes_]
        sums = shares @ sets
        dense = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
        return np.asarray(np.clip(dense, 0.0, 1.0))

    def _reachable(self) -> NDArray[np.int64]:
        return np.unique(self.sets_.indices).astype(np.int64)

    def _n_reachable(self) -> int:
        return len(self._reachable())

    def _tensors(self) -> dict[str, NDArray[Any]]:
        sets = {
            "set_begin": self.sets_.indptr.astype(np.int64),
            "set_labels": self.sets_.indices.astype(np.int32),
        }
        return sets if self.estimator_ is None else {**sets, **self._tensors_of(self.estimator_)}

    def _metadata(self) -> dict[str, Any]:
        return {} if self.estimator_ is None else self._metadata_of(self.estimator_)

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        begin, labels = tensors["set_begin"], tensors["set_labels"]
        n_sets = len(begin) - 1
        data = np.ones(len(labels), dtype=np.float32)
        sets = sp.csr_matrix((data, labels, begin), shape=(n_sets, len(self.classes_)), copy=True)
        sets.check_format(full_check=True)
        if not sets.has_canonical_format or n_sets < 1 or not len(labels):
            raise ValueError("its label sets are damaged")
        model = restored(tensors, metadata, self.n_features_in_) if n_sets > 1 else None
        if model is not None and not np.array_equal(model.classes_, np.arange(n_sets)):
            raise ValueError("the model inside does not fit the label sets")
        self.sets_, self.estimator_ = sets, model


def one_a_row(codes: NDArray[np.int32], n_classes: int) -> Targets:
    """One class a row."""
    return Targets("multiclass", np.arange(n_classes), np.arange(len(codes) + 1, dtype=np.int64), codes)
