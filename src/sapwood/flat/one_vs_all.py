"""One-against-all: a regressor for each label, all of them evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import all_or_nothing, n_threads
from sapwood._labels import Targets
from sapwood._online import OnlineClassifier
from sapwood._parameters import check_whole
from sapwood._progress import Report, progress
from sapwood.label_tree.forest import Explanation, Forest, Settings, Step
from sapwood.label_tree.training import Training


class OneVsAllClassifier(OnlineClassifier):
    """One linear regressor for each label, sixteen to a bank.

    `fit` learns from a whole set; `partial_fit` learns online, one row after the other, and goes on from a model
    that `fit` made. Both cost time in proportion to the number of labels: for thousands, see `LabelTreeClassifier`.

    Parameters
    ----------
    solver : {"dual", "adagrad"}, default="dual"
        How `fit` learns: by dual coordinate descent (squared hinge only), or by AdaGrad in the order of the rows.
        `partial_fit` always uses AdaGrad.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        What the regressors minimise.
    C : float, optional
        Weight of the loss against the regularisation (dual only). By default 1 for one label a row and less where
        rows have more: 1 over the root of how many.
    tol : float, default=0.1
        Gradients smaller than this are left alone (dual only).
    passes : int, optional
        Most passes over the rows: by default 20 for the dual solver, 3 for AdaGrad.
    step : float, optional
        First step size of AdaGrad: by default 0.3 for the squared hinge, 0.7 for the logistic loss.
    prune : float, default=0.1
        Weights smaller than this are dropped after `fit`. Meant for rows of length 1; where rows are longer or
        shorter (`normalize=False`) it follows their mean length.
    weight_bits : {16, 32}, default=16
        Precision of the weights that `fit` keeps.
    negatives : int, optional
        Learn each row with its own labels and only so many others, drawn at random and weighted to stand for all
        (AdaGrad only).
    class_weight : {"rare", "balanced", "propensity"} or dict, default="rare"
        Let rows of rare labels count more in `fit`: see `LabelTreeClassifier`.
    normalize : bool, default=True
        Scale each row to length 1.
    random_state : int, RandomState or None, default=None
        Seed. The same seed, data and parameters give the same model, for any `n_jobs`.
    n_jobs : int, optional
        Threads: None is 1, -1 all cores. Online learning uses one.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the training data.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import OneVsAllClassifier
    >>> X = np.eye(3, dtype=np.float32)
    >>> model = OneVsAllClassifier(random_state=0).partial_fit(X[:2], ["oak", "ash"])
    >>> model.partial_fit(X[2:], ["elm"]).predict(X)
    array(['oak', 'ash', 'elm'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        solver: Literal["dual", "adagrad"] = "dual",
        loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
        C: float | None = None,
        tol: float = 0.1,
        passes: int | None = None,
        step: float | None = None,
        prune: float = 0.1,
        weight_bits: Literal[16, 32] = 16,
        negatives: int | None = None,
        class_weight: Literal["rare", "balanced", "propensity"] | Mapping[Any, float] | None = "rare",
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.solver = solver
        self.loss = loss
        self.C = C
        self.tol = tol
        self.passes = passes
        self.step = step
        self.prune = prune
        self.weight_bits = weight_bits
        self.negatives = negatives
        self.class_weight = class_weight
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> OneVsAllClassifier:
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
        with progress(f"{type(self).__name__}: {len(targets.classes):,} labels", self.verbose) as report:
            self._fit_targets(rows, targets, weight, report)
        return self

    def _fit_targets(
        self, rows: _core.Rows, targets: Targets, weight: NDArray[np.float32] | None, report: Report | None
    ) -> None:
        """Learn from what has been checked."""
        if self.negatives is None:
            shape = {"arity": 2, "max_leaf": len(targets.classes), "n_trees": 1, "balanced": True}
            model: Forest | _Online = Training.of(self).train(
                rows, targets, weight, shape=shape, seed=self._seed(), report=report
            )
        else:
            model = self._new_online()
            for _ in range(self.passes or Training.of(self).default_passes()):
                model.learn(rows, targets, weight, n_known=len(targets.classes), report=report)
        self._model = model
        self.n_features_in_ = rows.n_columns
        self._note_targets(targets)
        self._note_labels()

    def explain(self, x: Any) -> Explanation:
        """Tell the best label of one row and what its regressor said.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        codes, scores = self._top(rows, 1)
        label = int(codes[0, 0])
        if isinstance(self._model, Forest):
            steps = self._model.path(rows, 0, label, 0, self.normalize)
        else:
            score = self._model.core.label_score(rows, row=0, label=label)
            steps = [Step(0, len(self.classes_), 0, score, float(scores[0, 0]), 1)]
        return Explanation(self.classes_[label], float(scores[0, 0]), [steps])

    def _start(self) -> None:
        self._model = self._new_online()

    def _learn(
        self, rows: _core.Rows, targets: Targets, weight: NDArray[np.float32] | None, n_known: int
    ) -> None:
        if isinstance(self._model, Forest):  # from here on it changes
            packed = self._model
            self._model = self._new_online()
            self._model.core.take(packed.core)
        with progress(f"{type(self).__name__}: {rows.n_rows:,} rows", self.verbose) as report:
            self._model.learn(rows, targets, weight, n_known=n_known, predict_first=True, report=report)

    def _progressive(self) -> tuple[float, float]:
        return (0.0, 0.0) if isinstance(self._model, Forest) else self._model.core.progressive()

    def _new_online(self) -> _Online:
        return _Online(
            loss=self.loss,
            step=Training.of(self).first_step(),
            normalize=self.normalize,
            negatives=self.negatives or 0,
            random_state=self._seed(),
        )

    def _check_parameters(self) -> None:
        Training.of(self).check()
        if self.negatives is not None:
            check_whole("negatives", self.negatives, least=1)
            if self.solver == "dual":
                raise ValueError("negatives are drawn online: set solver='adagrad'")

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if isinstance(self._model, Forest):
            how = Settings(
                beam=1, min_beam_share=0, normalize=self.normalize, n_threads=n_threads(self.n_jobs)
            )
            return self._model.top(rows, k, how)
        return self._model.core.top(rows, k=k, n_threads=n_threads(self.n_jobs))

    def _n_reachable(self) -> int:
        return self._model.n_reachable if isinstance(self._model, Forest) else len(self.classes_)

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return self._model.arrays if isinstance(self._model, Forest) else self._model.core.state()

    def _metadata(self) -> dict[str, Any]:
        form = "forest" if isinstance(self._model, Forest) else "online"
        return {"form": form, "settings": self._model.settings()}

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        settings = metadata["settings"]
        if metadata["form"] == "forest":
            self._model = Forest(tensors, **{**settings, "n_labels": len(self.classes_)})
        else:
            self._model = _Online.of(tensors, len(self.classes_), settings)
        self._note_labels()


class _Online:
    """The core's online model, and how it was made: so that it can be copied and written to a file."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self.core = _core.OneVsAll(**settings)
        self.n_labels = 0

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], n_labels: int, settings: Mapping[str, Any]) -> _Online:
        """Take back what the core's `state` gave."""
        model = cls(**{**settings, "random_state": int(arrays["random_state"][0])})
        model.core.restore(dict(arrays), n_labels=n_labels)
        model.n_labels = n_labels
        return model

    def __reduce__(self) -> Any:
        return _Online.of, (self.core.state(), self.n_labels, self._settings)

    def settings(self) -> dict[str, Any]:
        """What it was made with."""
        return self._settings

    def learn(
        self,
        rows: _core.Rows,
        targets: Targets,
        weight: NDArray[np.float32] | None,
        *,
        n_known: int,
        predict_first: bool = False,
        report: Any,
    ) -> None:
        """Learn rows in their order."""
        self.n_labels = len(targets.classes)
        self.core.learn(
            rows,
            targets.indptr,
            targets.codes,
            n_labels=self.n_labels,
            n_known=n_known,
            row_weight=weight,
            predict_first=predict_first,
            progress=report,
        )
