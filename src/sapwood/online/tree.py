"""What the online trees share: one label a row, passes over a set, a core model that copies and goes to a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from sapwood import _core
from sapwood._estimator import all_or_nothing, n_threads
from sapwood._labels import Targets
from sapwood._online import OnlineClassifier
from sapwood._parameters import check_choice, check_number, check_whole
from sapwood._progress import progress
from sapwood.online.explanation import RouterStep, TreeExplanation

Self = TypeVar("Self", bound="OnlineTreeClassifier")


class CoreTree:
    """A tree of the core, and how it was made: so that it can be copied and written to a file."""

    def __init__(self, kind: str, **settings: Any) -> None:
        self.kind = kind
        self.settings = settings
        self.core = getattr(_core, kind)(**settings)
        self.n_labels = 0

    @classmethod
    def of(
        cls, kind: str, arrays: Mapping[str, NDArray[Any]], n_labels: int, settings: Mapping[str, Any]
    ) -> CoreTree:
        """Take back what the core's `state` gave."""
        model = cls(kind, **settings)
        model.core.restore(dict(arrays), n_labels=n_labels)
        model.n_labels = n_labels
        return model

    def __reduce__(self) -> Any:
        return CoreTree.of, (self.kind, self.core.state(), self.n_labels, self.settings)


class OnlineTreeClassifier(OnlineClassifier):
    """Base of the trees that learn one row after the other: a method says which core tree it is, and with what."""

    loss: str
    solver: str
    step: float
    initial_square: float
    tolerance: float
    passes: int
    shuffle: bool
    normalize: bool
    parallel: Literal["hogwild"] | None = None  # a parameter of those that have it
    n_jobs: int | None
    verbose: int
    _model: CoreTree | None

    @abstractmethod
    def _new_tree(self, rows: _core.Rows) -> CoreTree:
        """Make a tree that has learned nothing, for rows of this kind."""

    @all_or_nothing
    def fit(self: Self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows and their labels, `passes` times; a model that was there before is replaced.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            The rows. float32 data are not copied.
        y : array-like of shape (n_samples,)
            The labels: ints or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row, 0 or more.
        """
        self._check_parameters()
        rows, targets, weight = self._begin_fit(X, y, sample_weight)
        model = self._new_tree(rows)
        self._run(model, rows, targets, weight, passes=self.passes, predict_first=False)
        self._model = model
        self._note_targets(targets)
        self._note_labels()
        return self

    @all_or_nothing
    def _begin_fit(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> tuple[_core.Rows, Targets, NDArray[np.float32] | None]:
        rows, targets, weight = super()._begin_fit(X, y, sample_weight, reset=reset)
        if targets.kind != "multiclass":
            raise ValueError(
                f"{type(self).__name__} takes one label a row, and y has lists of labels or an indicator: "
                "for several labels a row see LabelTreeClassifier"
            )
        return rows, targets, weight

    def _start(self) -> None:
        self._model = None  # made when the first rows show whether they are dense

    def _learn(
        self, rows: _core.Rows, targets: Targets, weight: NDArray[np.float32] | None, n_known: int
    ) -> None:
        if self._model is None:
            self._model = self._new_tree(rows)
        self._run(self._model, rows, targets, weight, passes=1, predict_first=True)

    def _run(
        self,
        model: CoreTree,
        rows: _core.Rows,
        targets: Targets,
        weight: NDArray[np.float32] | None,
        *,
        passes: int,
        predict_first: bool,
    ) -> None:
        model.n_labels = len(targets.classes)
        with progress(f"{type(self).__name__}: {rows.n_rows:,} rows", self.verbose) as report:
            model.core.learn(
                rows,
                targets.codes,
                n_labels=model.n_labels,
                row_weight=weight,
                passes=passes,
                shuffle=self._seed() if self.shuffle and not predict_first else None,
                predict_first=predict_first,
                n_at_once=self._n_at_once(),
                progress=report,
            )

    def _n_at_once(self) -> int:
        """How many threads learn rows at once."""
        return n_threads(self.n_jobs) if self.parallel == "hogwild" else 1

    def _progressive(self) -> tuple[float, float]:
        return (0.0, 0.0) if self._model is None else self._model.core.progressive()

    def _learned(self) -> CoreTree:
        """The tree, once it has learned a row."""
        if self._model is None or self._model.core.n_labels == 0:
            raise NotFittedError(f"This {type(self).__name__} instance has learned no row yet.")
        return self._model

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        top: tuple[NDArray[np.int32], NDArray[np.float32]] = self._learned().core.top(
            rows, k=k, n_threads=n_threads(self.n_jobs)
        )
        return top

    def _n_reachable(self) -> int:
        return int(self._learned().core.n_labels)

    def explain(self, x: Any) -> TreeExplanation:
        """Tell how one row got its label: the routers it met, their margins, and what the leaf answers.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        nodes, margins, children, leaf = self._learned().core.path(rows, row=0)
        candidates = self._candidates(rows, leaf)
        steps = [RouterStep(*step) for step in zip(nodes, margins, children, strict=True)]
        return TreeExplanation(candidates[0][0], steps, leaf, candidates)

    @abstractmethod
    def _candidates(self, rows: _core.Rows, leaf: int) -> list[tuple[Any, float]]:
        """The labels that a leaf answers with for this row, best first, and their scores."""

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, ("squared", "logistic", "absolute"))
        check_choice("solver", self.solver, ("adagrad", "sgd"))
        check_number("step", self.step, above=0)
        check_number("initial_square", self.initial_square, above=0)
        check_number("tolerance", self.tolerance, least=0)
        check_whole("passes", self.passes, least=1)
        check_choice("parallel", self.parallel, (None, "hogwild"))
        n_threads(self.n_jobs)

    def _rule(self, rows: _core.Rows) -> dict[str, Any]:
        """What every core tree wants to know."""
        return {
            "dense": rows.is_dense,
            "n_columns": rows.n_columns,
            "loss": self.loss,
            "method": self.solver,
            "step": float(self.step),
            "initial": float(self.initial_square),
            "tolerance": float(self.tolerance),
            "normalize": bool(self.normalize),
        }

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return {} if self._model is None else self._model.core.state()

    def _metadata(self) -> dict[str, Any]:
        return {} if self._model is None else {"kind": self._model.kind, "settings": self._model.settings}

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        self._model = None
        if metadata:
            if metadata["kind"] != self._kind:
                raise ValueError(f"it holds a {metadata['kind']}")
            self._model = CoreTree.of(self._kind, tensors, len(self.classes_), metadata["settings"])
        self._note_labels()

    _kind: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags
