"""The nodes of a budgeted tree in words: its few columns with their weights, as the paper's figure 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.budgeted.explanation import feature_name

Arrays = Mapping[str, NDArray[Any]]
Names = Sequence[str] | NDArray[Any] | None


def node_bac(arrays: Arrays, node: int) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """Give the columns, weights (columns x folds) and offsets of a node."""
    begin, end = arrays["bac_begin"][node : node + 2].tolist()
    folds = len(arrays["offsets"]) // len(arrays["parent"])
    weights = arrays["weights"][begin * folds : end * folds].reshape(-1, folds)
    return arrays["columns"][begin:end], weights, arrays["offsets"][node * folds : (node + 1) * folds]


def terms(arrays: Arrays, node: int, names: Names, max_terms: int, digits: int) -> list[str]:
    """Write the node's columns with their weights (means over the folds), the heaviest first, then the offset."""
    columns, weights, offset = node_bac(arrays, node)
    mean = weights.mean(axis=1)
    order = np.argsort(-np.abs(mean), kind="stable")
    lines = [f"{mean[k]:+.{digits}f} {feature_name(names, int(columns[k]))}" for k in order[:max_terms]]
    if len(order) > max_terms:
        lines.append(f"… {len(order) - max_terms} more")
    return [*lines, f"{offset.mean():+.{digits}f}"]


def majority(arrays: Arrays, node: int, classes: NDArray[Any]) -> tuple[str, float]:
    """Give the label of a node and its share of the rows there."""
    at = int(arrays["label_begin"][node])
    return str(classes[arrays["labels"][at]]), float(arrays["shares"][at])


def captions(
    arrays: Arrays, classes: NDArray[Any], names: Names, max_terms: int, digits: int
) -> list[list[str]]:
    """Give the lines to write on each node of a drawing."""
    lines = []
    for node in range(len(arrays["parent"])):
        rows = f"{arrays['examples'][node]:,.0f} rows"
        if arrays["children"][2 * node] >= 0:
            lines.append([*terms(arrays, node, names, max_terms, digits), rows])
        else:
            label, share = majority(arrays, node, classes)
            lines.append([label, f"{share:.0%} of {rows}"])
    return lines


def tree_text(arrays: Arrays, classes: NDArray[Any], names: Names, max_terms: int, digits: int) -> str:
    """Write the tree, a line a node."""
    lines = []
    stack = [(0, "", "")]  # node; what stands before it; what stands before its children
    while stack:
        node, head, indent = stack.pop()
        rows = f"{arrays['examples'][node]:,.0f} rows"
        left, right = arrays["children"][2 * node : 2 * node + 2].tolist()
        if left < 0:
            label, share = majority(arrays, node, classes)
            lines.append(f"{head}{label}   ({rows}, {share:.0%})".replace("%)", " %)"))
            continue
        f = " ".join(terms(arrays, node, names, max_terms, digits))
        lines.append(f"{head}f = {f}   ({rows})")
        stack.append((right, f"{indent}└─ f <= 0: ", f"{indent}   "))
        stack.append((left, f"{indent}├─ f > 0: ", f"{indent}│  "))
    return "\n".join(lines)
