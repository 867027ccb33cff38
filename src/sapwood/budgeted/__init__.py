"""Classifiers that look at few columns, and trees of them."""

from sapwood.budgeted.annotation_tree import AnnotationTreeClassifier
from sapwood.budgeted.powerset_tree import PowersetTreeClassifier

__all__ = ["AnnotationTreeClassifier", "PowersetTreeClassifier"]
