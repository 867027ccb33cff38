"""Trees that learn one row after the other."""

from sapwood.online.balanced_tree import FilterTreeClassifier, RandomTreeClassifier
from sapwood.online.explanation import RouterStep, TreeExplanation
from sapwood.online.lom_tree import LOMTreeClassifier
from sapwood.online.recall_tree import RecallTreeClassifier, RecallTreeExplanation

__all__ = [
    "FilterTreeClassifier",
    "LOMTreeClassifier",
    "RandomTreeClassifier",
    "RecallTreeClassifier",
    "RecallTreeExplanation",
    "RouterStep",
    "TreeExplanation",
]
