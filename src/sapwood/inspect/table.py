"""The figures: one array a quantity, one entry a node; and their summary for the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

Columns = dict[str, NDArray[Any]]

ABSENT = -1
"""No parent, no child, no label."""


class HasNodes(Protocol):
    """What is asked of an estimator.

    `_nodes` gives arrays with one entry a node: `parent`, `children` (of shape (n_nodes, arity), in their order, -1
    where there is none) and whatever of the other columns the method keeps; `majority` holds codes of labels.
    """

    classes_: NDArray[Any]

    def _nodes(self) -> Mapping[str, NDArray[Any]]: ...


def nodes(model: HasNodes) -> Columns:
    """Give the figures of every node: a dict of arrays of one length, as `pandas.DataFrame` takes it.

    Parameters
    ----------
    model : estimator
        A fitted tree.

    Returns
    -------
    dict of ndarray of shape (n_nodes,)
        Of these, what the method keeps:

        - `node`, `parent` (-1 at the root), `depth`, `place` (among its siblings, from 0), `is_leaf`;
        - `examples`: the weight of the examples that came to the node;
        - `n_labels`: labels seen there or, where each label has one leaf, labels below; `majority`: the heaviest;
        - `entropy` of its labels, in nats;
        - `recall` of its candidates, and `recall_bound`, the lower bound that decides where a descent stops;
        - `balance` (the share sent right), `purity` (0 is pure) and `objective`, the J(h) of the LOMtree paper, of
          its split: NaN at leaves;
        - `n_features`: columns that the node looks at; `question`: what it asks or, at a leaf, the labels it answers;
        - `recycles`: how often the node was taken from one place of the tree to another.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import LabelTreeClassifier, inspect
    >>> X = np.eye(6, dtype=np.float32)
    >>> model = LabelTreeClassifier(arity=2, max_leaf=2, random_state=0).fit(X, list("abcdef"))
    >>> inspect.nodes(model)["depth"].max()
    np.int32(2)
    """
    columns = _columns(model)
    parent, children = columns["parent"], columns.pop("children")
    place = np.zeros(len(parent), dtype=np.int32)
    row, position = np.nonzero(children != ABSENT)
    place[children[row, position]] = position
    if "majority" in columns:
        columns["majority"] = _names(columns["majority"], model.classes_)
    return {
        "node": np.arange(len(parent), dtype=np.int32),
        "parent": parent,
        "depth": _depths(parent),
        "place": place,
        "is_leaf": (children == ABSENT).all(axis=1),
        **{name: column for name, column in columns.items() if name != "parent"},
    }


def tree(model: HasNodes) -> dict[str, float]:
    """Give the figures of the whole tree.

    Parameters
    ----------
    model : estimator
        A fitted tree.

    Returns
    -------
    dict of float
        `nodes`, `leaves`, `depth` (of the deepest node) always; of the others what the method keeps:

        - `examples`: the weight of all examples; `leaf_depth`: mean depth of the leaves, by their examples;
        - `root_entropy`: of the labels as they come; `entropy`: of the leaves, weighted by their examples, which is
          the G_t of the LOMtree paper;
        - `recall`, `recall_bound`: means over the leaves, by their examples;
        - `balance` (of the smaller side), `purity`, `objective`: means over the splits, by the node's examples;
        - `recycles`: of all nodes; `most_recycles`: of one node.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import LabelTreeClassifier, inspect
    >>> X = np.eye(6, dtype=np.float32)
    >>> model = LabelTreeClassifier(arity=2, max_leaf=2, random_state=0).fit(X, list("abcdef"))
    >>> inspect.tree(model)["depth"]
    2.0
    """
    table = nodes(model)
    is_leaf, depth = table["is_leaf"], table["depth"]
    figures = {"nodes": len(depth), "leaves": is_leaf.sum(), "depth": depth.max()}
    if "examples" in table:
        examples = table["examples"]
        figures["examples"] = examples[table["parent"] == ABSENT].sum()
        figures["leaf_depth"] = _mean(depth, examples, is_leaf)
        if "entropy" in table:
            figures["root_entropy"] = _mean(table["entropy"], examples, table["parent"] == ABSENT)
        for name in ("entropy", "recall", "recall_bound"):
            if name in table:
                figures[name] = _mean(table[name], examples, is_leaf)
        for name in ("balance", "purity", "objective"):
            if name in table:
                values = np.minimum(table[name], 1 - table[name]) if name == "balance" else table[name]
                figures[name] = _mean(values, examples, ~is_leaf)
    if "recycles" in table:
        figures["recycles"] = table["recycles"].sum()
        figures["most_recycles"] = table["recycles"].max()
    return {name: float(value) for name, value in figures.items()}


def entropy_by_depth(model: HasNodes) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Give the entropy of the tree cut off at each depth.

    Cut at depth d, a tree's leaves are its nodes at d and its leaves above. Their entropies are weighted by their
    examples, as in G_t of the LOMtree paper: the first is the root's, the last the whole tree's.

    Parameters
    ----------
    model : estimator
        A fitted tree that keeps label counts: the Recall Tree, the LOMtree.

    Returns
    -------
    depth : ndarray of int32
        0, 1, ..., the depth of the tree.
    entropy : ndarray of float64
        In nats.
    """
    table = nodes(model)
    if "entropy" not in table:
        raise TypeError(f"{type(model).__name__} keeps no label counts at its nodes, so they have no entropy")
    depths = np.arange(table["depth"].max() + 1, dtype=np.int32)
    cuts = [(table["depth"] == depth) | (table["is_leaf"] & (table["depth"] < depth)) for depth in depths]
    return depths, np.array([_mean(table["entropy"], table["examples"], cut) for cut in cuts])


def _columns(model: HasNodes) -> Columns:
    if not hasattr(model, "_nodes"):
        raise TypeError(f"{type(model).__name__} has no tree to look into")
    check_is_fitted(model)
    return dict(model._nodes())


def _names(codes: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Labels of codes; None where there is none."""
    names = np.full(len(codes), None, dtype=object)
    known = codes != ABSENT
    names[known] = classes[codes[known]]
    return names


def _depths(parent: NDArray[Any]) -> NDArray[np.int32]:
    """Steps to the root, for all nodes together: one level a round."""
    depth = np.zeros(len(parent), dtype=np.int32)
    ancestor = parent.copy()
    while (below := ancestor != ABSENT).any():
        depth += below
        ancestor[below] = parent[ancestor[below]]
    return depth


def _mean(values: NDArray[Any], examples: NDArray[Any], chosen: NDArray[np.bool_]) -> float:
    """Mean over the chosen nodes that any example reached, weighted by their examples; NaN if there is none."""
    chosen = chosen & (examples > 0) & np.isfinite(values)
    return float(np.average(values[chosen], weights=examples[chosen])) if chosen.any() else float("nan")
