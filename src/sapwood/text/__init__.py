"""From text to feature vectors."""

from sapwood.text.vectorizer import TextVectorizer

__all__ = ["TextVectorizer"]
