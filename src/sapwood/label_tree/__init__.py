"""Trees over the labels with a bank of regressors at each node, and FastXML's trees over the rows."""

from sapwood.label_tree.fastxml import FastXMLClassifier
from sapwood.label_tree.label_btree import LabelBTreeClassifier
from sapwood.label_tree.label_tree import LabelTreeClassifier

__all__ = ["FastXMLClassifier", "LabelBTreeClassifier", "LabelTreeClassifier"]
