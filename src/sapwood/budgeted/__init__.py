"""Classifiers that look at few columns, and trees of them."""

from sapwood.budgeted.annotation_tree import AnnotationTreeClassifier
from sapwood.budgeted.classifier import BudgetedClassifier
from sapwood.budgeted.powerset_tree import PowersetTreeClassifier
from sapwood.budgeted.tree import BudgetedTreeClassifier

__all__ = [
    "AnnotationTreeClassifier",
    "BudgetedClassifier",
    "BudgetedTreeClassifier",
    "PowersetTreeClassifier",
]
