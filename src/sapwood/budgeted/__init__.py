"""Classifiers that look at few columns, and trees of them."""

from sapwood.budgeted.classifier import BudgetedClassifier
from sapwood.budgeted.tree import BudgetedTreeClassifier

__all__ = ["BudgetedClassifier", "BudgetedTreeClassifier"]
