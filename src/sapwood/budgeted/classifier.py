"""The budget-aware classifier (BAC): a linear classifier that chooses few columns, and says how good the choice is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import SapwoodClassifier, all_or_nothing, n_threads
from sapwood._parameters import check_choice
from sapwood._progress import progress
from sapwood.budgeted.explanation import BudgetedExplanation, decide, entries
from sapwood.budgeted.options import check_options, core_options


class BudgetedClassifier(SapwoodClassifier):
    """Linear classifier on few columns, chosen together rather than one by one, with a certificate of optimality.

    Cutting planes: each is the set of `budget` columns that help most against what the classifier still gets wrong;
    a weight for every column of every plane is learned jointly. Columns in the tens of millions are no obstacle: one
    pass over the data a plane, and only chosen columns are copied. Since the sets are combined, up to
    `budget * max_planes` columns can end up with a weight; `max_planes=1` keeps the budget to the letter.

    Parameters
    ----------
    budget : int, default=10
        Columns of a plane. With all columns it is the ordinary linear SVM (with an offset that is not regularised).
    C : float, default=1.0
        Weight of the loss against the regularisation.
    tol : float, default=0.01
        Stop when the certified duality gap is at most this share of the objective.
    max_planes : int, default=10
        Stop after so many planes in any case.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        What is minimised.
    fit_offset : bool, default=True
        Learn a constant beside the columns.
    class_weight : {"balanced"}, optional
        Let both sides of each problem weigh the same.
    multiclass : {"one_vs_all", "groups"}, default="one_vs_all"
        More than two labels: a classifier for each against all others; or a balanced tree of groups of similar
        labels, a classifier for each place where it forks (one label a row only).
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed of the grouping of labels; nothing else is random.
    n_jobs : int, optional
        Threads, for several labels and for prediction: None is 1, -1 all cores. The model is the same for any number.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the training data.
    selected_features_ : ndarray of shape (n_selected,)
        The columns with a weight in some classifier, ascending.
    coef_ : csr_matrix of shape (n_classifiers, n_features_in_)
        The weights. Two labels have one classifier, which is positive for the second; one-against-all one a label.
    intercept_ : ndarray of shape (n_classifiers,)
        The offsets.
    objective_ : ndarray of shape (n_classifiers,)
        What is minimised, at the solution.
    gap_ : ndarray of shape (n_classifiers,)
        Certified: no choice of columns and weights has an objective below `objective_ - gap_`.
    n_planes_ : ndarray of shape (n_classifiers,)
        How many planes were used.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import BudgetedClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 1000)).astype(np.float32)
    >>> y = np.where(X[:, 7] - X[:, 42] > 0, "oak", "ash")
    >>> model = BudgetedClassifier(budget=2, max_planes=1).fit(X, y)
    >>> model.selected_features_
    array([ 7, 42], dtype=int32)
    """

    def __init__(
        self,
        *,
        budget: int = 10,
        C: float = 1.0,
        tol: float = 0.01,
        max_planes: int = 10,
        loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
        fit_offset: bool = True,
        class_weight: Literal["balanced"] | None = None,
        multiclass: Literal["one_vs_all", "groups"] = "one_vs_all",
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.budget = budget
        self.C = C
        self.tol = tol
        self.max_planes = max_planes
        self.loss = loss
        self.fit_offset = fit_offset
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> BudgetedClassifier:
        """Train on rows and their labels; a model that was there before is replaced.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            The rows. float32 data are not copied.
        y : array-like of shape (n_samples,), indicator of shape (n_samples, n_labels), or list of lists of labels
            Ints or strings, one label a row; a 2-D array or CSR of zeros and ones; or the labels of each row.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row, 0 or more.
        """
        self._check_parameters()
        rows, targets, weight = self._begin_fit(X, y, sample_weight)
        n_labels, is_multiclass = len(targets.classes), targets.kind == "multiclass"
        if self.multiclass == "groups" and not is_multiclass:
            raise ValueError("multiclass='groups' is for one label a row: use 'one_vs_all'")
        groups = is_multiclass and (n_labels == 2 or (n_labels > 2 and self.multiclass == "groups"))
        with progress(f"{type(self).__name__}: {n_labels:,} labels", self.verbose) as report:
            arrays = _core.train_bac_set(
                rows,
                targets.indptr,
                targets.codes,
                n_labels=n_labels,
                row_weight=weight,
                groups=groups,
                options=core_options(self),
                normalize=bool(self.normalize),
                seed=self._seed(),
                n_threads=n_threads(self.n_jobs),
                progress=report,
            )
        self._model = _Model(arrays, n_labels, self.n_features_in_, self.loss, bool(self.normalize))
        self._note_targets(targets)
        return self

    @property
    def coef_(self) -> sp.csr_matrix:
        """The weights, n_classifiers x n_features_in_."""
        a = self._model.arrays
        shape = (len(a["offsets"]), self.n_features_in_)
        return sp.csr_matrix((a["weights"], a["columns"], a["begin"]), shape=shape, copy=True)

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """The offset of each classifier."""
        return np.array(self._model.arrays["offsets"])

    @property
    def selected_features_(self) -> NDArray[np.int32]:
        """The columns with a weight in some classifier, ascending."""
        return np.unique(self._model.arrays["columns"])

    @property
    def objective_(self) -> NDArray[np.float64]:
        """What is minimised, at the solution of each classifier."""
        return np.array(self._model.arrays["objective"])

    @property
    def gap_(self) -> NDArray[np.float64]:
        """How far the objective of each classifier may lie above the least there is."""
        return np.asarray(self._model.arrays["objective"] - self._model.arrays["bound"])

    @property
    def n_planes_(self) -> NDArray[np.int32]:
        """How many planes each classifier has."""
        return np.array(self._model.arrays["n_planes"])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Give f(x) of each classifier.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classifiers)
            For two labels positive where the second is likelier; one-against-all: a column for each label.
        """
        rows = self._rows(X)
        model = self._model
        f = model.core.decisions(rows, normalize=model.normalize, n_threads=n_threads(self.n_jobs))
        return f[:, 0] if f.shape[1] == 1 and len(self.classes_) == 2 else f

    def explain(self, x: Any) -> BudgetedExplanation:
        """Tell the best label of one row and what the columns said that speak for or against it.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        codes, scores = self._top(self._one_row(x), 1)
        label = int(codes[0, 0])
        values = entries(x, normalize=self._model.normalize)
        names = getattr(self, "feature_names_in_", None)
        arrays = self._model.arrays
        steps = []
        for bac in self._model.path(label):
            part = slice(*arrays["begin"][bac : bac + 2].tolist())
            columns, weights = arrays["columns"][part], arrays["weights"][part, None]
            steps.append(decide(bac, values, columns, weights, arrays["offsets"][bac : bac + 1], names))
        return BudgetedExplanation(self.classes_[label], float(scores[0, 0]), steps)

    def _check_parameters(self) -> None:
        check_options(self)
        check_choice("multiclass", self.multiclass, ("one_vs_all", "groups"))

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        model = self._model
        return model.core.top(rows, k=k, normalize=model.normalize, n_threads=n_threads(self.n_jobs))

    def _n_reachable(self) -> int:
        return len(self.classes_)

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return self._model.arrays

    def _metadata(self) -> dict[str, Any]:
        return {"loss": self._model.loss, "normalize": self._model.normalize}

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        normalize = metadata["normalize"]
        if not isinstance(normalize, bool):
            raise ValueError("it does not say whether rows are scaled")
        self._model = _Model(tensors, len(self.classes_), self.n_features_in_, metadata["loss"], normalize)


class _Model:
    """The trained classifiers, and the core's view of them."""

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], n_labels: int, n_columns: int, loss: str, normalize: bool
    ) -> None:
        self.arrays = dict(arrays)
        self.n_labels = n_labels
        self.n_columns = n_columns
        self.loss = loss
        self.normalize = normalize
        self.core = _core.BacSet(self.arrays, n_labels=n_labels, n_columns=n_columns, loss=loss)
        for name, dtype in (("objective", np.float64), ("bound", np.float64), ("n_planes", np.int32)):
            if self.arrays[name].shape != self.arrays["offsets"].shape or self.arrays[name].dtype != dtype:
                raise ValueError(f"its array {name!r} does not fit")

    def __reduce__(self) -> Any:
        return _Model, (self.arrays, self.n_labels, self.n_columns, self.loss, self.normalize)

    def path(self, label: int) -> list[int]:
        """The classifiers that decide about a label, the first to be asked first."""
        children = self.arrays["children"]
        if not len(children):
            return [label]
        path, wanted = [], ~label
        while len(at := np.flatnonzero(children == wanted)):
            wanted = int(at[0]) // 2
            path.append(wanted)
            if wanted == 0:
                break
        return path[::-1]
