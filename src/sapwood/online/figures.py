"""Figures of a tree's nodes from its label counts, for `sapwood.inspect`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float64]


def lom_figures(tree: Arrays) -> dict[str, NDArray[Any]]:
    """What `inspect.nodes` shows of a LOMtree, from the arrays of its nodes and label counts."""
    bounds = tree["node_labels"]
    is_leaf = tree["left"] < 0
    balance, purity, objective = _split_quality(bounds, tree["n"], tree["sent_right"])
    for figure in (balance, purity, objective):
        figure[is_leaf] = np.nan
    return {
        "parent": tree["parent"],
        "children": np.stack([tree["left"], tree["right"]], axis=1),
        "examples": tree["total"],
        "n_labels": np.diff(bounds).astype(np.int32),
        "majority": _heaviest(bounds, tree["labels"], tree["l"]),
        "entropy": _entropy(bounds, tree["l"]),
        "balance": balance,
        "purity": purity,
        "objective": objective,
        "smallest_leaf": tree["C"],
        "recycles": tree["recycles"],
    }


def balanced_figures(tree: Arrays) -> dict[str, NDArray[Any]]:
    """What `inspect.nodes` shows of a random tree or a filter tree."""
    with np.errstate(invalid="ignore"):
        balance = tree["sent_right"] / tree["examples"]
    balance[tree["left"] < 0] = np.nan
    return {
        "parent": tree["parent"],
        "children": np.stack([tree["left"], tree["right"]], axis=1),
        "examples": tree["examples"],
        "n_labels": _leaves_below(tree["parent"], tree["left"]),
        "majority": tree["label"],
        "balance": balance,
    }


def _sums(bounds: NDArray[np.int64], values: Floats) -> Floats:
    """The sum of each node's values."""
    if not len(values):
        return np.zeros(len(bounds) - 1)
    sums: Floats = np.add.reduceat(values, np.minimum(bounds[:-1], len(values) - 1))
    return np.where(np.diff(bounds) > 0, sums, 0.0)


def _split_quality(bounds: NDArray[np.int64], n: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """Balance (Definition 2), purity factor (Definition 1) and J(h) (equation 1); NaN where nothing was routed."""
    with np.errstate(invalid="ignore", divide="ignore"):
        total = _sums(bounds, n)
        balance = _sums(bounds, right) / total
        size = np.diff(bounds)
        pi = n / np.repeat(total, size)
        p = np.where(n > 0, right / n, 0.0)
        purity = _sums(bounds, pi * np.minimum(p, 1 - p)) + 0 * balance
        objective = 2 * _sums(bounds, pi * np.abs(np.repeat(balance, size) - p)) + 0 * balance
    return balance, purity, objective


def _entropy(bounds: NDArray[np.int64], counts: Floats) -> Floats:
    """In nats; 0 where nothing was seen."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = counts / np.repeat(_sums(bounds, counts), np.diff(bounds))
        terms = np.where(share > 0, -share * np.log(share), 0.0)
    return np.maximum(_sums(bounds, terms), 0.0)


def _heaviest(bounds: NDArray[np.int64], labels: NDArray[np.int32], counts: Floats) -> NDArray[np.int32]:
    """The heaviest label of each node, ties to the lower code; -1 where there is none."""
    node = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    order = np.lexsort((labels, -counts, node))
    best = np.full(len(bounds) - 1, -1, dtype=np.int32)
    nodes, first = np.unique(node[order], return_index=True)
    best[nodes] = labels[order[first]]
    return best


def _leaves_below(parent: NDArray[np.int32], left: NDArray[np.int32]) -> NDArray[np.int32]:
    """How many leaves hang below each node; children have higher numbers than their parents."""
    below = (left < 0).astype(np.int32)
    for node in range(len(parent) - 1, 0, -1):
        below[parent[node]] += below[node]
    return below
