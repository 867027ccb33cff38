"""Training of banks in a batch: its parameters, their checks and defaults. Label trees and one-against-all share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sapwood import _core
from sapwood._estimator import n_threads
from sapwood._labels import Targets
from sapwood._parameters import check_choice, check_flag, check_number, check_whole
from sapwood._progress import Report
from sapwood.label_tree.forest import Forest
from sapwood.metrics import propensities

ClassWeight: TypeAlias = str | Mapping[Any, float] | Sequence[tuple[Any, float]] | None
Hierarchy: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True)
class Training:
    """What a user may say about how banks are trained; see the estimators' parameters."""

    solver: str
    loss: str
    C: float | None
    tol: float
    passes: int | None
    step: float | None
    prune: float
    weight_bits: int
    class_weight: ClassWeight
    normalize: bool
    n_threads: int

    @classmethod
    def of(cls, estimator: Any) -> Training:
        """Take them from an estimator, whose parameters have the same names."""
        said = {
            field.name: getattr(estimator, field.name) for field in fields(cls) if field.name != "n_threads"
        }
        return cls(**said, n_threads=n_threads(estimator.n_jobs))

    def check(self) -> None:
        """Raise ValueError that names the first parameter out of its range."""
        check_choice("solver", self.solver, ("dual", "adagrad"))
        check_choice("loss", self.loss, ("squared_hinge", "logistic"))
        if self.solver == "dual" and self.loss == "logistic":
            raise ValueError(
                "solver='dual' is for the squared hinge: for loss='logistic' set solver='adagrad'"
            )
        if self.C is not None:
            check_number("C", self.C, above=0)
        check_number("tol", self.tol, above=0)
        if self.passes is not None:
            check_whole("passes", self.passes, least=1)
        if self.step is not None:
            check_number("step", self.step, above=0)
        check_number("prune", self.prune, least=0)
        check_choice("weight_bits", self.weight_bits, (16, 32))
        check_class_weight(self.class_weight)
        check_flag("normalize", self.normalize)

    def default_passes(self) -> int:
        """How many passes where the user does not say."""
        return 20 if self.solver == "dual" else 3

    def first_step(self) -> float:
        """The step size of AdaGrad."""
        return self.step or (0.7 if self.loss == "logistic" else 0.3)

    def train(
        self,
        rows: _core.Rows,
        targets: Targets,
        weight: NDArray[np.float32] | None,
        *,
        shape: dict[str, Any],
        seed: int,
        report: Report | None,
        hierarchy: Hierarchy | None = None,
    ) -> Forest:
        """Train a forest of the given shape, or on the given hierarchy."""
        indptr, children = hierarchy or (None, None)
        n_labels = len(targets.classes)
        half = self.weight_bits == 16
        arrays = _core.train_label_forest(
            rows,
            targets.indptr,
            targets.codes,
            n_labels=n_labels,
            row_weight=weight,
            label_weight=label_weights(self.class_weight, targets),
            shape_indptr=indptr,
            shape_children=children,
            **shape,
            solver=self.solver,
            loss=self.loss,
            C=default_C(targets) if self.C is None else self.C,
            tolerance=self.tol,
            step=self.first_step(),
            passes=self.passes or self.default_passes(),
            prune=self.prune,
            half=half,
            normalize=self.normalize,
            seed=seed,
            n_threads=self.n_threads,
            progress=report,
        )
        return Forest(arrays, n_labels=n_labels, half=half, loss=self.loss)


def default_C(targets: Targets) -> float:
    """C for `C=None`: 1 for one label a row, less for more, as a row's loss is shared among its labels.

    The root is measured, see docs/label_tree.md.
    """
    return float(max(targets.mean_labels, 1.0) ** -0.5)


def label_weights(class_weight: ClassWeight, targets: Targets) -> NDArray[np.float32] | None:
    """How much the rows of each label count.

    "rare": by the root of how far a label is from 100 rows, at most 4. "balanced": in inverse proportion to its
    rows, as in scikit-learn. "propensity": by inverse propensity (Jain et al. 2016), 1 for the most frequent label.
    """
    if class_weight is None:
        return None
    counts = np.maximum(targets.counts(), 1)
    if class_weight == "rare":
        weights = np.sqrt(100 / counts).clip(1, 4)
    elif class_weight == "balanced":
        weights = counts.sum() / (len(counts) * counts)
    elif class_weight == "propensity":
        weights = 1 / propensities(targets.indicator())
        weights /= weights.min()
    else:
        given: dict[Any, float] = dict(class_weight)  # type: ignore[arg-type]  # a mapping, or pairs from a file
        weights = np.array([given.get(label, 1.0) for label in targets.classes.tolist()])
    return weights.astype(np.float32)


def check_class_weight(class_weight: ClassWeight) -> None:
    """Raise ValueError unless it is the name of a rule, or a positive weight for each of some labels."""
    if class_weight is None or isinstance(class_weight, str):
        check_choice("class_weight", class_weight, (None, "rare", "balanced", "propensity"))
        return
    try:
        weights = dict(class_weight)
    except (TypeError, ValueError):
        raise ValueError(f"class_weight must be the name of a rule or a dict, not {class_weight!r}") from None
    for label, weight in weights.items():
        check_number(f"class_weight of {label!r}", weight, above=0)
