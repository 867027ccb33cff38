"""Trees of sparse linear classifiers as arrays: what a model file holds, what pickle copies, what the core walks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import _core

MAKINGS = (
    "roots",
    "children",
    "node_begin",
    "features",
    "weights",
    "bias",
    "leaf_begin",
    "leaf_labels",
    "leaf_scores",
)
"""The arrays that the core reads."""


@dataclass(frozen=True)
class Step:
    """One decision on the way of a row.

    Attributes
    ----------
    node : int
        Its number in the model.
    question : str
        What was asked.
    answer : bool
        Whether the way goes on at yes.
    score : float
        f(x): the node itself says yes where it is above 0.
    features : dict
        The columns (or their names) that the node looks at and the row has, and what each added to the score.
    """

    node: int
    question: str
    answer: bool
    score: float
    features: dict[Any, float]


class LinearTrees:
    """Binary trees; each node is a sparse linear classifier, each leaf holds labels."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], *, n_labels: int, n_features: int) -> None:
        self.arrays = dict(arrays)
        self.n_labels = n_labels
        self.n_features = n_features
        own = {name: self.arrays[name] for name in MAKINGS}
        self.core = _core.Trees(own, n_labels=n_labels, n_features=n_features)
        self.n_nodes = len(self.arrays["bias"])
        self.n_leaves = len(self.arrays["leaf_begin"]) - 1
        self.reachable = np.unique(self.arrays["leaf_labels"])
        """Codes of the labels that some leaf has."""

    def __reduce__(self) -> Any:
        return _rebuild, (self.arrays, self.n_labels, self.n_features)

    @property
    def nbytes(self) -> int:
        """Size of the model."""
        return sum(array.nbytes for array in self.arrays.values())

    def labels_of(self, leaf: int) -> NDArray[np.int32]:
        """Codes of the labels of one leaf."""
        begin = self.arrays["leaf_begin"]
        codes: NDArray[np.int32] = self.arrays["leaf_labels"][begin[leaf] : begin[leaf + 1]]
        return codes

    def leaves_below(self, child: int) -> range:
        """The leaves below a node, or ~leaf, of trees that number their leaves from the first child to the second."""
        children = self.arrays["children"]
        first = last = child
        while first >= 0:
            first = int(children[2 * first])
        while last >= 0:
            last = int(children[2 * last + 1])
        return range(~first, ~last + 1)

    def depths(self) -> NDArray[np.int64]:
        """How many decisions lead to each leaf."""
        depth = np.zeros(self.n_nodes + self.n_leaves, dtype=np.int64)
        parent = self.parents()
        for node in range(self.n_nodes):  # parents come before their children
            if parent[node] >= 0:
                depth[node] = depth[parent[node]] + 1
        leaves = parent[self.n_nodes :]
        depth[self.n_nodes :] = np.where(leaves >= 0, depth[leaves] + 1, 0)
        return depth[self.n_nodes :]

    def parents(self) -> NDArray[np.int32]:
        """Of each node, then of each leaf, the node above it; -1 at a root."""
        parent = np.full(self.n_nodes + self.n_leaves, -1, dtype=np.int32)
        parent[self.places()] = np.repeat(np.arange(self.n_nodes, dtype=np.int32), 2)
        return parent

    def places(self) -> NDArray[np.int32]:
        """The children of each node, two by two, where leaves are numbered on from the nodes."""
        children = self.arrays["children"]
        places: NDArray[np.int32] = np.where(children >= 0, children, self.n_nodes + ~children)
        return places.astype(np.int32)

    def sums_below(self, of_leaf: NDArray[Any]) -> NDArray[np.float64]:
        """For each node, then each leaf, the sum of a figure over the leaves below."""
        total = np.concatenate([np.zeros(self.n_nodes), of_leaf.astype(np.float64)])
        places = self.places()
        for node in range(self.n_nodes - 1, -1, -1):
            total[node] = total[places[2 * node]] + total[places[2 * node + 1]]
        return total

    def tree(self, leaf_mass: NDArray[Any] | None = None) -> dict[str, NDArray[Any]]:
        """What `sapwood.inspect` wants: nodes, then leaves."""
        children = np.full((self.n_nodes + self.n_leaves, 2), -1, dtype=np.int32)
        children[: self.n_nodes] = self.places().reshape(-1, 2)
        columns: dict[str, NDArray[Any]] = {"parent": self.parents(), "children": children}
        begin = self.arrays["node_begin"]
        columns["n_features"] = np.concatenate([begin[1:] - begin[:-1], np.zeros(self.n_leaves, begin.dtype)])
        if leaf_mass is not None:
            columns["examples"] = self.sums_below(leaf_mass)
            with np.errstate(divide="ignore", invalid="ignore"):
                own = np.where(leaf_mass > 0, leaf_mass * np.log(leaf_mass), 0.0)
                rest = self.sums_below(own) / columns["examples"]
                columns["entropy"] = np.maximum(np.log(columns["examples"]) - rest, 0.0)
        return columns

    def steps(
        self,
        rows: _core.Rows,
        leaf: int,
        question: Callable[[int], str],
        *,
        normalize: bool,
        names: Iterable[Any] | None,
    ) -> list[Step]:
        """The decisions on the way to a leaf, and what they rest on in the first row."""
        parent, places = self.parents(), self.places()
        steps, at = [], self.n_nodes + leaf
        while parent[at] >= 0:
            node = int(parent[at])
            score = self.core.node_score(rows, row=0, node=node, normalize=normalize)
            features = self.contributions(rows, node, normalize, names)
            steps.append(Step(node, question(node), bool(places[2 * node] == at), score, features))
            at = node
        return steps[::-1]

    def contributions(
        self, rows: _core.Rows, node: int, normalize: bool, names: Iterable[Any] | None
    ) -> dict[Any, float]:
        """What each of a node's columns adds to its score of the first row, where it adds anything."""
        first, last = self.arrays["node_begin"][node : node + 2]
        features = self.arrays["features"][first:last]
        x = rows.matrix[:1]
        x = x.toarray()[0] if hasattr(x, "toarray") else np.asarray(x)[0]
        scale = 1 / (np.linalg.norm(x.astype(np.float64)) or 1.0) if normalize else 1.0
        added = self.arrays["weights"][first:last] * (scale * x[features])
        named = (
            features.tolist() if names is None else np.asarray(list(names), dtype=object)[features].tolist()
        )
        return {name: float(value) for name, value in zip(named, added, strict=True) if value}


def _rebuild(arrays: Mapping[str, NDArray[Any]], n_labels: int, n_features: int) -> LinearTrees:
    return LinearTrees(arrays, n_labels=n_labels, n_features=n_features)
