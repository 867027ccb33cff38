"""What the two sparse coding trees share: budget-aware classifiers at the nodes, label sets at the leaves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import _core
from sapwood._estimator import SapwoodClassifier, all_or_nothing, n_threads
from sapwood._linear_trees import LinearTrees, Step
from sapwood._parameters import check_choice, check_number, check_whole
from sapwood._progress import progress

MOST_STEPS = 2000
"""Proximal steps of one master problem."""

SLOPES = {"squared_hinge": 3.0, "logistic": 1.0}
"""A node's probability of yes is 1 / (1 + exp(-slope f(x)))."""


@dataclass(frozen=True)
class CodingExplanation:
    """How a row got its labels.

    Attributes
    ----------
    labels : list
        The labels.
    steps : list of Step
        The questions asked, the answers, and the features that these rest on.
    """

    labels: list[Any]
    steps: list[Step]


class CodingTreeClassifier(SapwoodClassifier):
    """Base of the sparse coding trees. A method supplies `_rule` and `_question`."""

    budget: int
    C: float
    loss: str
    class_weight: str | None
    max_planes: int
    tol: float
    beam: int
    normalize: bool
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def _rule(self) -> tuple[str, int]:
        """The core's name of the tree's shape, and the fewest rows that a node asks about."""

    @abstractmethod
    def _question(self, node: int) -> str:
        """What a node asks."""

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Train on rows and their labels; a model that was there before is replaced.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            The rows. float32 data are not copied.
        y : array-like of shape (n_samples,), indicator of shape (n_samples, n_labels), or list of lists of labels
            Ints or strings, one label a row; a 2-D array or CSR of zeros and ones; or the labels of each row.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row, 0 or more: in the shape of the tree as in what the nodes learn.
        """
        self._check_parameters()
        rows, targets, weight = self._begin_fit(X, y, sample_weight)
        rule, min_examples = self._rule()
        with progress(f"{type(self).__name__}: {len(targets.classes):,} labels", self.verbose) as report:
            arrays = _core.train_coding_tree(
                rows,
                targets.indptr,
                targets.codes,
                n_labels=len(targets.classes),
                row_weight=weight,
                rule=rule,
                min_examples=min_examples,
                options=self._options(),
                normalize=self.normalize,
                n_threads=n_threads(self.n_jobs),
                progress=report,
            )
        self._note_tree(arrays, targets.classes)
        self._note_targets(targets)
        return self

    def _options(self) -> dict[str, Any]:
        return {
            "budget": int(self.budget),
            "C": float(self.C),
            "loss": self.loss,
            "fit_offset": True,
            "balanced": self.class_weight == "balanced",
            "tol": float(self.tol),
            "max_planes": int(self.max_planes),
            "max_steps": MOST_STEPS,
        }

    def _note_tree(self, arrays: Mapping[str, NDArray[Any]], classes: NDArray[Any]) -> None:
        trees = LinearTrees(arrays, n_labels=len(classes), n_features=self.n_features_in_)
        set_mass, leaf_mass = trees.arrays["set_mass"], trees.arrays["leaf_mass"]
        if len(leaf_mass) != trees.n_leaves or len(trees.arrays["roots"]) != 1:
            raise ValueError("its arrays do not fit together")
        for mass in (set_mass, leaf_mass):
            if mass.dtype != np.float64 or not len(mass) or not (np.isfinite(mass) & (mass > 0)).all():
                raise ValueError("the weights of its label sets are damaged")
        depths = trees.depths()
        self.trees_ = trees
        self.depth_ = int(depths.max())
        self.mean_decisions_ = float(np.average(depths, weights=leaf_mass))
        self.entropy_ = _entropy(set_mass)

    def explain(self, x: Any) -> CodingExplanation:
        """Tell the questions that were asked of one row, the answers, and what these rest on.

        Parameters
        ----------
        x : {ndarray, CSR matrix} of shape (1, n_features)
            The row.
        """
        rows = self._one_row(x)
        labels = self._likely(rows)[0] if self._target_kind != "multiclass" else self._top(rows, 1)[0][0]
        steps = self.trees_.steps(
            rows,
            self._leaf(rows, labels),
            self._question,
            normalize=self.normalize,
            names=getattr(self, "feature_names_in_", None),
        )
        return CodingExplanation(self.classes_[labels].tolist(), steps)

    def _leaf(self, rows: _core.Rows, labels: NDArray[np.int32]) -> int:
        """The leaf whose way explains an answer: its own for one label a row, else where the decisions lead."""
        if self._target_kind == "multiclass":
            holders = np.flatnonzero(self.trees_.arrays["leaf_labels"] == labels[0])
            return int(np.searchsorted(self.trees_.arrays["leaf_begin"], holders[0], side="right")) - 1
        return int(self.trees_.core.leaves(rows, normalize=self.normalize, n_threads=1)[0, 0])

    def predict(self, X: Any) -> Any:
        """Give each row a label set.

        With ``beam=1`` that of the leaf to which the decisions lead. With more, the one of the largest expected F1 if
        the truth is the set of one of so many leaves: of the first, of the one to which they lead from the most
        probable branch not taken, and so on. For one label a row, the most probable label of these leaves.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,), or an indicator or list of arrays
            In the form that `fit` was given.
        """
        return super().predict(X)

    def _likely(self, rows: _core.Rows) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return self.trees_.core.sets_by_search(
            rows,
            beam=self.beam,
            slope=SLOPES[self.loss],
            normalize=self.normalize,
            n_threads=n_threads(self.n_jobs),
        )

    def _top(self, rows: _core.Rows, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.trees_.core.top_by_search(
            rows,
            k=k,
            beam=self.beam,
            slope=SLOPES[self.loss],
            normalize=self.normalize,
            n_threads=n_threads(self.n_jobs),
        )

    def _n_reachable(self) -> int:
        return len(self.trees_.reachable)

    def _set_text(self, codes: NDArray[Any]) -> str:
        """A label set as text."""
        return "{" + ", ".join(map(str, self.classes_[codes].tolist())) + "}"

    def _nodes(self) -> dict[str, NDArray[Any]]:
        trees = self.trees_
        questions = [self._question(node) for node in range(trees.n_nodes)]
        answers = [self._set_text(trees.labels_of(leaf)) for leaf in range(trees.n_leaves)]
        texts = np.array(questions + answers, dtype=object)
        return {**trees.tree(trees.arrays["leaf_mass"]), "question": texts}

    def _check_parameters(self) -> None:
        check_whole("budget", self.budget, least=1)
        check_number("C", self.C, above=0)
        check_choice("loss", self.loss, ("squared_hinge", "logistic"))
        check_choice("class_weight", self.class_weight, (None, "balanced"))
        check_whole("max_planes", self.max_planes, least=1)
        check_number("tol", self.tol, above=0)
        check_whole("beam", self.beam, least=1)

    def _tensors(self) -> dict[str, NDArray[Any]]:
        return self.trees_.arrays

    def _metadata(self) -> dict[str, Any]:
        return {"n_labels": self.trees_.n_labels}

    def _restore(self, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        if metadata["n_labels"] != len(self.classes_):
            raise ValueError("its labels are not those of its tree")
        self._note_tree(tensors, self.classes_)


def _entropy(mass: NDArray[np.float64]) -> float:
    """H of the label sets, in bits."""
    p = mass / mass.sum()
    return float(-(p * np.log2(p)).sum()) + 0.0
