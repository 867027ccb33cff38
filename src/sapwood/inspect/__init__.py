"""Look inside a fitted tree: figures for every node and for the tree, drawings, a plot of entropy against depth.

Works on every estimator that has a tree. What a method does not keep (recall, say, in a LOMtree) is left out.
"""

from sapwood.inspect.graphviz import to_graphviz
from sapwood.inspect.plot import plot_entropy, plot_tree
from sapwood.inspect.svg import to_svg
from sapwood.inspect.table import entropy_by_depth, nodes, tree

__all__ = ["entropy_by_depth", "nodes", "plot_entropy", "plot_tree", "to_graphviz", "to_svg", "tree"]
