"""Lemma 3 and the tree's structure under routes of our choosing: the lemma is about all sequences."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood.reference.linear import Features, Regressor, Rule
from sapwood.reference.lom_tree import LOMTree, Node

from .test_lom_tree import CheckedLOMTree, check_structure, check_swaps


class Scripted(Regressor):
    """Says what the script says next, or left."""

    def __init__(self, script: list[float]) -> None:
        super().__init__(Rule())
        self.script = script

    def learn(self, x: Features, target: float, weight: float, path: Features = ()) -> None: ...

    def score(self, x: Features, path: Features = ()) -> np.float32:
        answer: np.float32 = np.float32(self.script.pop(0) if self.script else -1.0)
        return answer


class SteeredLOMTree(CheckedLOMTree):
    """A LOMtree whose examples go where they are sent."""

    def __init__(self, max_internal: int | None = None) -> None:
        super().__init__(max_internal=max_internal, trace=True)
        self.script: list[float] = []
        self.examples = 0

    def _train(self, j: Node, x: Features, y: int, weight: float) -> Node:
        j.h = Scripted(self.script)
        return super()._train(j, x, y, weight)

    def send(self, leaf: int, y: int) -> None:
        """An example of label y to the leaf; to its left child if that splits it."""
        upwards = [leaf]
        while self.nodes[upwards[-1]].parent >= 0:
            upwards.append(self.nodes[upwards[-1]].parent)
        self.script[:] = [
            1.0 if self.nodes[v].right == below else -1.0 for v, below in pairwise(upwards[::-1])
        ]
        self.learn([], y)
        self.examples += 1


class PaperLOMTree(SteeredLOMTree):
    """Without the floor: a growing T as one would first write it."""

    def _split(self, j: Node) -> bool:
        done = super()._split(j)
        for v in self.nodes:
            v.floor = 0.0
        return done


def hammer(tree: SteeredLOMTree, examples: int) -> int:
    """Have one node recycled as often as possible.

    It is split afresh with labels never seen (T grows with them) until a leaf below it is tiny; then another
    leaf is fed until it takes the tiny leaf, the next, and at last the node itself.
    """
    victim, fresh = -1, 100
    tree.send(0, 0)
    while tree.examples < examples:
        if victim >= 0:
            leaf = victim
            tree.send(leaf, 0)
            for _ in range(3):
                tree.send(leaf, fresh := fresh + 1)
                leaf = leaf if tree.nodes[leaf].leaf else tree.nodes[leaf].left
        else:
            tree.send(next(v.number for v in tree.nodes if v.leaf), fresh := fresh + 1)
        recycled = tree.nodes[victim].recycles
        for k in range(200):
            outside = [v for v in tree.nodes if v.leaf and not below(tree, v, victim)]
            tree.send(max(outside, key=lambda v: v.C).number, k % 10)
            if victim < 0 and any(v.recycles for v in tree.nodes):
                victim = max(tree.nodes, key=lambda v: v.recycles).number
                break
            if tree.nodes[victim].recycles > recycled:
                break
    return max(v.recycles for v in tree.nodes)


def below(tree: LOMTree, v: Node, ancestor: int) -> bool:
    while v.number != ancestor and v.parent >= 0:
        v = tree.nodes[v.parent]
    return v.number == ancestor


@pytest.mark.parametrize("examples", [300, 1000])
def test_the_floor_upholds_lemma_3_while_T_grows(examples: int) -> None:
    tree = SteeredLOMTree()
    assert 0 < hammer(tree, examples) <= math.log2(tree.examples)
    check_structure(tree)
    check_swaps(tree)


def test_without_the_floor_a_growing_T_breaks_lemma_3() -> None:
    tree = PaperLOMTree()
    assert hammer(tree, 1000) > 2 * math.log2(tree.examples)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.none(), st.integers(1, 8)),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7), st.integers(1, 12)), min_size=10, max_size=40),
)
def test_any_routes(max_internal: int | None, visits: list[tuple[int, int, int]]) -> None:
    """Each visit sends a few examples of two labels to some leaf."""
    tree = SteeredLOMTree(max_internal)
    for place, y, times in visits:
        leaves = [v.number for v in tree.nodes if v.leaf]
        for i in range(times):
            leaf = leaves[place % len(leaves)]
            tree.send(leaf if tree.nodes[leaf].leaf else 0, y + i % 2)
            check_structure(tree)
    check_swaps(tree)
    assert max(v.recycles for v in tree.nodes) <= math.log2(tree.examples)


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 8), st.integers(0, 1000))
def test_a_fixed_T_never_meets_the_floor(max_internal: int, seed: int) -> None:
    """Where T is given, the tree is the paper's: the floor changes nothing."""
    ours, paper = SteeredLOMTree(max_internal), PaperLOMTree(max_internal)
    rng = np.random.default_rng(seed)
    for _ in range(8):
        leaf = int(rng.choice([v.number for v in ours.nodes if v.leaf]))
        for i in range(int(rng.integers(1, 40))):
            target = leaf if ours.nodes[leaf].leaf else 0
            for tree in (ours, paper):
                tree.send(target, i % 3)
    assert [(v.parent, v.left, v.right, v.C, v.recycles) for v in ours.nodes] == [
        (v.parent, v.left, v.right, v.C, v.recycles) for v in paper.nodes
    ]
