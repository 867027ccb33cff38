"""Supervised budgeted tree (SBT), section 5 of the budgeted-trees paper (JMLR 2017).

Algorithm 2 grows a tree of budget-aware classifiers; section 5.2 prunes it by embedded cross-validation:
every node has one classifier for each fold, all with one universal feature selection (problem 11).
What the paper leaves open is decided in docs/budgeted_trees.md, "SBT".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sapwood.reference.budgeted import (
    BudgetedParameters,
    Examples,
    Indices,
    Mask,
    Matrix,
    Solution,
    Vector,
    check_examples,
    check_signs,
)


def vote(decisions: Matrix) -> Mask:
    """Return where the folds' majority is positive. f = 0 casts no vote; the mean decides a tie."""
    ballot = np.sum(np.sign(decisions), axis=1)
    return np.asarray((ballot > 0) | ((ballot == 0) & (decisions.mean(axis=1) > 0)))


def deal_folds(y: Vector, folds: int, rng: np.random.Generator) -> Indices:
    """Return the fold of every example, dealt class by class."""
    order = np.concatenate([rng.permutation(np.flatnonzero(y > 0)), rng.permutation(np.flatnonzero(y < 0))])
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % folds
    return fold


@dataclass
class Node:
    """A BAC with two children, or a leaf."""

    label: float
    """The label that a leaf predicts: the majority of its examples, -1 on a tie."""
    n_examples: int
    depth: int
    bac: Solution | None = None
    left: int = -1
    """The child of examples that are predicted positive; -1: there is a leaf in its place."""
    right: int = -1
    left_label: float = 1.0
    """What that leaf would answer: the majority of the examples on this side, the BAC's sign on a tie."""
    right_label: float = -1.0
    own_error: int = 0
    """Held-out examples that this node gets wrong when its children are leaves."""

    @property
    def has_children(self) -> bool:
        """Whether the node hands its examples on."""
        return self.left >= 0


class BudgetedTree:
    """SBT, Algorithm 2, with the pruning of section 5.2; labels -1 and +1.

    Parameters
    ----------
    parameters : BudgetedParameters
        Of the BAC at each node.
    prune : bool
        Learn one classifier for each fold and remove children that raise the cross-validation error.
    folds : int
        Number of folds if `prune`.
    max_depth : int or None
        Nodes this deep are leaves.
    max_features : int or None
        Bound of the columns that the whole tree looks at: a node whose planes might exceed it chooses among
        the columns that the nodes before it use. Nodes are learned level by level, left to right.
    random_state : int
        Seed of the fold assignment.

    Attributes
    ----------
    nodes_ : the tree, root first; pruned nodes are gone
    cv_error_ : share of the training set that the pruned tree gets wrong when held out
    unpruned_cv_error_ : the same before pruning
    """

    def __init__(
        self,
        parameters: BudgetedParameters,
        *,
        prune: bool = True,
        folds: int = 5,
        max_depth: int | None = None,
        max_features: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.parameters = parameters
        self.prune = prune
        self.folds = folds
        self.max_depth = max_depth
        self.max_features = max_features
        self.random_state = random_state

    def fit(self, X: Examples, y: Iterable[float]) -> BudgetedTree:
        """Grow the tree, then prune it."""
        X, signs = check_examples(X), check_signs(y)
        most = self.parameters.budget * self.parameters.max_planes
        if self.max_features is not None and most > self.max_features:
            raise ValueError(
                f"max_features is {self.max_features}, but the root's planes may take budget * max_planes "
                f"= {most} columns; lower one of the two"
            )
        # The folds are dealt once: an example that a node's classifier has not seen
        # was not seen by that fold's classifiers above it either.
        fold = deal_folds(signs, self.folds, np.random.default_rng(self.random_state))
        self.nodes_: list[Node] = []
        self._grow(X, signs, fold)
        if self.prune:
            error = self._subtree_errors()
            self.unpruned_cv_error_ = error[0] / len(signs)
            self._remove_children()
            self.cv_error_ = self._subtree_errors()[0] / len(signs)
        return self

    def _grow(self, X: Examples, y: Vector, fold: Indices) -> None:
        """Algorithm 2, with a queue in the place of the recursion."""
        everyone = np.arange(len(y))
        # Examples to learn from, routed by the vote; held-out examples, each routed by the
        # classifiers of its own fold; depth; the parent and the side on which this node hangs.
        queue: deque[tuple[Indices, Indices, int, int, str]] = deque([(everyone, everyone, 0, -1, "")])
        while queue:
            rows, held_out, depth, parent, side = queue.popleft()
            index = len(self.nodes_)
            node = Node(label=1.0 if y[rows].sum() > 0 else -1.0, n_examples=len(rows), depth=depth)
            node.own_error = int(np.sum(y[held_out] != node.label))
            self.nodes_.append(node)
            if parent >= 0:
                setattr(self.nodes_[parent], side, index)
            if len(np.unique(y[rows])) < 2 or depth == self.max_depth:
                continue
            if self.prune:
                train = fold[rows, None] != np.arange(self.folds)[None, :]
            else:
                train = np.ones((len(rows), 1), dtype=bool)
            bac = self._learn(X[rows], y[rows], train)
            positive = vote(bac.decision(X[rows]))
            if positive.all() or not positive.any():
                continue  # "cannot be further split by the induced classifier"
            node.bac = bac
            node.left_label = 1.0 if y[rows[positive]].sum() >= 0 else -1.0
            node.right_label = 1.0 if y[rows[~positive]].sum() > 0 else -1.0
            held_positive = np.zeros(len(held_out), dtype=bool)
            if self.prune:
                decisions = bac.decision(X[held_out])
                held_positive = decisions[np.arange(len(held_out)), fold[held_out]] > 0
                answer = np.where(held_positive, node.left_label, node.right_label)
                node.own_error = int(np.sum(answer != y[held_out]))
            queue.append((rows[positive], held_out[held_positive], depth + 1, index, "left"))
            queue.append((rows[~positive], held_out[~held_positive], depth + 1, index, "right"))

    def _learn(self, X: Examples, y: Vector, train: Mask) -> Solution:
        """Train the BAC of a node within what is left of max_features."""
        used = self.features_
        most = self.parameters.budget * self.parameters.max_planes
        if self.max_features is None or len(used) + most <= self.max_features:
            return self.parameters.solve(X, y, train)
        bac = self.parameters.solve(X[:, used], y, train)
        bac.features = used[bac.features]
        bac.planes = [used[plane] for plane in bac.planes]
        return bac

    def _subtree_errors(self) -> list[int]:
        """Return the held-out errors of the subtree under each node."""
        error = [node.own_error for node in self.nodes_]
        for index in reversed(range(len(self.nodes_))):  # children come after their parent
            node = self.nodes_[index]
            if node.has_children:
                error[index] = error[node.left] + error[node.right]
        return error

    def _remove_children(self) -> None:
        """Remove children whose summed CV error is bigger than their parent's, from the leaves up."""
        error = [node.own_error for node in self.nodes_]
        for index in reversed(range(len(self.nodes_))):
            node = self.nodes_[index]
            if not node.has_children:
                continue
            error[index] = error[node.left] + error[node.right]
            if error[index] > node.own_error:
                error[index] = node.own_error
                node.left = node.right = -1
        self._merge_equal_leaves()
        self._drop_unreachable()

    def _merge_equal_leaves(self) -> None:
        """Make a leaf of a node whose sides are leaves that answer the same: it decides nothing."""
        for node in reversed(self.nodes_):
            if node.bac is None:
                continue
            answers = {node.left_label, node.right_label}
            if node.has_children:
                children = [self.nodes_[node.left], self.nodes_[node.right]]
                if any(child.bac is not None for child in children):
                    continue
                answers = {child.label for child in children}
            if len(answers) == 1:
                if node.has_children:
                    node.own_error = sum(child.own_error for child in children)
                node.bac, node.label = None, answers.pop()
                node.left = node.right = -1

    def _drop_unreachable(self) -> None:
        kept: list[int] = []
        stack = [0]
        while stack:
            index = stack.pop()
            kept.append(index)
            if self.nodes_[index].has_children:
                stack += [self.nodes_[index].right, self.nodes_[index].left]
        place = {index: k for k, index in enumerate(kept)}
        self.nodes_ = [self.nodes_[index] for index in kept]
        for node in self.nodes_:
            if node.has_children:
                node.left, node.right = place[node.left], place[node.right]

    @property
    def features_(self) -> Indices:
        """Columns that any node of the tree looks at."""
        used = [node.bac.features for node in self.nodes_ if node.bac is not None]
        return np.unique(np.concatenate(used)) if used else np.empty(0, dtype=np.intp)

    def predict(self, X: Examples) -> Vector:
        """Return -1 or +1 for each row."""
        X = check_examples(X)
        answer = np.empty(X.shape[0])
        stack: list[tuple[int, Indices]] = [(0, np.arange(X.shape[0]))]
        while stack:
            index, rows = stack.pop()
            node = self.nodes_[index]
            if node.bac is None:
                answer[rows] = node.label
                continue
            positive = vote(node.bac.decision(X[rows]))
            if node.has_children:
                stack += [(node.right, rows[~positive]), (node.left, rows[positive])]
            else:
                answer[rows] = np.where(positive, node.left_label, node.right_label)
        return answer
