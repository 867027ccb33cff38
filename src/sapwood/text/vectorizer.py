"""tf-idf features of texts, in a form that a model file can carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

# From this many texts on, a word that only one of them has is taken for noise.
LARGE = 1_000


class TextVectorizer:
    """Turn texts into tf-idf rows: lower-cased words, sublinear tf, unit length, float32.

    Parameters
    ----------
    ngrams : int, default=1
        Longest run of words that makes a feature: 1 for words, 2 for words and pairs of words.
    min_df : int or None, default=None
        Fewest texts that a feature must occur in. None: 2 among 1,000 texts or more, else 1.

    Examples
    --------
    >>> from sapwood.text import TextVectorizer
    >>> vectorizer = TextVectorizer()
    >>> X = vectorizer.fit_transform(["red apple", "green apple"])
    >>> X.shape
    (2, 3)
    >>> copy = TextVectorizer.from_state(vectorizer.settings(), vectorizer.tensors())
    >>> (copy.transform(["green"]) != vectorizer.transform(["green"])).nnz
    0
    """

    def __init__(self, *, ngrams: int = 1, min_df: int | None = None) -> None:
        if ngrams < 1:
            raise ValueError(f"ngrams must be 1 or more, got {ngrams}")
        self.ngrams = ngrams
        self.min_df = min_df

    @property
    def n_features(self) -> int:
        """Number of features learned."""
        return len(self._tfidf.vocabulary_)

    def fit(self, texts: Sequence[str]) -> TextVectorizer:
        """Learn the vocabulary and how rare each of its words is."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Sequence[str]) -> csr_matrix:
        """Learn the vocabulary and give the rows of `texts`."""
        min_df = self.min_df or (2 if len(texts) >= LARGE else 1)
        tfidf = _tfidf(self.ngrams, min_df=min_df)
        try:
            rows = tfidf.fit_transform(texts)
        except ValueError as error:
            raise ValueError(
                f"the texts have no words to learn from: of two letters or more, in {min_df} texts or more"
            ) from error
        self._tfidf = tfidf
        return rows

    def transform(self, texts: Sequence[str]) -> csr_matrix:
        """Give the rows of `texts`; words outside the vocabulary are passed over."""
        return self._tfidf.transform(texts)

    def settings(self) -> dict[str, Any]:
        """Give all but the arrays, as JSON can hold it."""
        return {"ngrams": self.ngrams, "min_df": self.min_df}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Give the vocabulary (UTF-8, one feature a line, in column order) and the idf of each."""
        terms = "\n".join(self._tfidf.get_feature_names_out())
        return {
            "vocabulary": np.frombuffer(terms.encode(), dtype=np.uint8),
            "idf": np.asarray(self._tfidf.idf_, dtype=np.float32),
        }

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> TextVectorizer:
        """Make the vectorizer that gave these `settings` and `tensors`."""
        try:
            vectorizer = cls(ngrams=int(settings["ngrams"]), min_df=settings["min_df"])
            terms = tensors["vocabulary"].tobytes().decode().split("\n")
            idf = np.array(tensors["idf"], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the text vectorizer is damaged: {error!r}") from error
        if idf.shape != (len(terms),) or not np.isfinite(idf).all() or len(set(terms)) != len(terms):
            raise ValueError("the text vectorizer is damaged: its vocabulary and idf do not agree")
        vectorizer._tfidf = _tfidf(vectorizer.ngrams, vocabulary=terms)
        vectorizer._tfidf.idf_ = idf
        return vectorizer


def _tfidf(ngrams: int, **options: Any) -> TfidfVectorizer:
    return TfidfVectorizer(ngram_range=(1, ngrams), sublinear_tf=True, norm="l2", dtype=np.float32, **options)
