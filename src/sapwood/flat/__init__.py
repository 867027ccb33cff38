"""Methods without a tree."""

from sapwood.flat.binary_relevance import BinaryRelevanceClassifier
from sapwood.flat.label_powerset import LabelPowersetClassifier
from sapwood.flat.one_vs_all import OneVsAllClassifier

__all__ = ["BinaryRelevanceClassifier", "LabelPowersetClassifier", "OneVsAllClassifier"]
