"""Methods without a tree."""

from sapwood.flat.one_vs_all import OneVsAllClassifier

__all__ = ["OneVsAllClassifier"]
