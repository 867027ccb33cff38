"""Trees over the labels, a bank of regressors at each node."""

from sapwood.label_tree.label_btree import LabelBTreeClassifier
from sapwood.label_tree.label_tree import LabelTreeClassifier

__all__ = ["LabelBTreeClassifier", "LabelTreeClassifier"]
