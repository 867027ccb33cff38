"""A hierarchy of labels that a user gives, checked and turned into what the core reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood._labels import Targets, as_label_array


def read_hierarchy(tree: Sequence[Any], targets: Targets) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Read nested lists of labels, such as ``[["ash", "elm"], ["cod", ["bat", "cat"]]]``.

    Returns the children of each node as CSR: numbers of nodes, or ~code for labels. Parents come before their
    children. Labels without examples are left out, and so are nodes that hold nothing else; a node with a single
    child gives its place to it.

    Raises
    ------
    ValueError
        If a label stands twice, or one with examples nowhere.
    """
    if not _is_branch(tree):
        raise ValueError("tree must be nested lists of labels, such as [['ash', 'elm'], ['cod', 'bat']]")
    codes = _codes(tree, targets)
    root = _pruned(tree, codes)
    branches = root if isinstance(root, list) else [root]

    children: list[list[Any]] = [branches]
    numbered: list[list[int]] = []
    next_number = 1
    for branch in children:  # grows as we go: breadth first
        row = []
        for child in branch:
            if isinstance(child, list):
                row.append(next_number)
                next_number += 1
                children.append(child)
            else:
                row.append(~child)
        numbered.append(row)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in numbered])]).astype(np.int64)
    return indptr, np.array([child for row in numbered for child in row], dtype=np.int32)


def _is_branch(node: Any) -> bool:
    return isinstance(node, (list, tuple, np.ndarray))


def _leaves(tree: Sequence[Any]) -> list[Any]:
    leaves = []
    stack: list[Any] = [tree]
    seen: dict[int, Any] = {}  # keeps them alive, so that no two have one id
    while stack:
        node = stack.pop()
        if _is_branch(node):
            if id(node) in seen and len(node):
                raise ValueError("tree holds one of its branches twice, or within itself")
            seen[id(node)] = node
            stack.extend(node)
        else:
            leaves.append(node)
    return leaves


def _codes(tree: Sequence[Any], targets: Targets) -> dict[Any, int]:
    """The code of each label that the tree names and that has examples."""
    named = as_label_array(_leaves(tree)).tolist()
    if len(set(named)) < len(named):
        twice = Counter(named).most_common(1)[0][0]
        raise ValueError(f"tree names label {twice!r} twice")
    counts = targets.counts()
    code_of = {label: code for code, label in enumerate(targets.classes.tolist()) if counts[code]}
    missing = sorted(set(code_of) - set(named), key=str)
    if missing:
        raise ValueError(f"tree lacks {len(missing)} labels that have examples, such as {missing[0]!r}")
    return code_of


def _pruned(tree: Sequence[Any], codes: dict[Any, int]) -> Any:
    """The tree with codes for labels; without empty branches and branches of one child. Never recursive."""
    done: list[list[Any]] = [[]]
    stack: list[tuple[Any, bool]] = [(child, False) for child in reversed(list(tree))]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            children = done.pop()
            if children:
                done[-1].append(children[0] if len(children) == 1 else children)
        elif _is_branch(node):
            done.append([])
            stack.append((None, True))
            stack.extend((child, False) for child in reversed(list(node)))
        else:
            label = node.item() if isinstance(node, np.generic) else node
            if label in codes:
                done[-1].append(codes[label])
    children = done[0]
    return children[0] if len(children) == 1 else children
