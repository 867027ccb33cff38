"""Trees that learn one row after the other."""

from sapwood.online.balanced_tree import FilterTreeClassifier, RandomTreeClassifier
from sapwood.online.explanation import RouterStep, TreeExplanation
from sapwood.online.lom_tree import LOMTreeClassifier

__all__ = [
    "FilterTreeClassifier",
    "LOMTreeClassifier",
    "RandomTreeClassifier",
    "RouterStep",
    "TreeExplanation",
]
