"""Filter tree: Beygelzimer, Langford and Ravikumar, ALT 2009, for one right label an example.

A bracket of labels. A node learns which of the two winners below it beats the other.
"""

from __future__ import annotations

from sapwood.reference.linear import Features
from sapwood.reference.random_tree import RandomTree


class FilterTree(RandomTree):
    """The bracket is a balanced tree, labels drawn to their places at random as they appear."""

    def _learn_path(self, x: Features, y: int, weight: float) -> None:
        """Climb from the label's leaf; where the label loses, nothing above is about it any more.

        A node learns only from examples whose label is one of the two winners below it, which is so as long
        as the label has won. As in the other trees a node learns first and then decides.
        """
        for node, side in reversed(self.tree.path_to(y)):
            assert node.router is not None
            node.router.learn(x, side, weight)
            won = (float(node.router.score(x)) > 0.0) == (side > 0.0)
            self.trace.add("target", (node.number,), numbers=(side,))
            if not won:
                self.trace.add("stop", (node.number,))
                break
