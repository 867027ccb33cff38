"""The text vectorizer is scikit-learn's, in a form that can be stored without pickle."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from sapwood.text import TextVectorizer

TEXTS = ["Red apple, red pear", "green apple", "café au lait", "", "naïve Größe 中文 字"]


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and (a != b).nnz == 0


def copied(vectorizer):
    settings = json.loads(json.dumps(vectorizer.settings()))
    return TextVectorizer.from_state(settings, vectorizer.tensors())


@pytest.mark.parametrize("ngrams", [1, 2, 3])
@pytest.mark.parametrize("min_df", [1, 2])
def test_rows_are_those_of_scikit_learn(ngrams, min_df):
    theirs = TfidfVectorizer(ngram_range=(1, ngrams), min_df=min_df, sublinear_tf=True, dtype=np.float32)
    ours = TextVectorizer(ngrams=ngrams, min_df=min_df)
    expected = theirs.fit_transform(TEXTS)
    assert same(ours.fit_transform(TEXTS), expected)
    assert same(ours.transform(TEXTS), expected)
    assert ours.n_features == expected.shape[1]


def test_rare_words_are_dropped_among_many_texts():
    texts = [f"common word{i}" for i in range(1_000)]
    assert TextVectorizer().fit(texts).n_features == 1
    assert TextVectorizer().fit(texts[:-1]).n_features == 1_000
    assert TextVectorizer(min_df=1).fit(texts).n_features == 1_001


@pytest.mark.parametrize("ngrams", [1, 2])
def test_a_stored_vectorizer_gives_the_same_rows(ngrams):
    vectorizer = TextVectorizer(ngrams=ngrams).fit(TEXTS)
    assert same(copied(vectorizer).transform(TEXTS), vectorizer.transform(TEXTS))


@given(st.lists(st.text(), min_size=1, max_size=8))
def test_any_text_survives_storing(texts):
    vectorizer = TextVectorizer(ngrams=2).fit([*texts, "a word"])
    assert same(copied(vectorizer).transform(texts), vectorizer.transform(texts))


def test_state_is_plain_arrays():
    tensors = TextVectorizer().fit(TEXTS).tensors()
    assert {name: tensor.dtype for name, tensor in tensors.items()} == {
        "vocabulary": np.uint8,
        "idf": np.float32,
    }


def test_ngrams_below_one_are_refused():
    with pytest.raises(ValueError, match="ngrams must be 1 or more"):
        TextVectorizer(ngrams=0)


@pytest.mark.parametrize("texts", [[], [""], ["? !"]])
def test_texts_without_words_are_refused(texts):
    with pytest.raises(ValueError, match="no words to learn from"):
        TextVectorizer().fit(texts)


@pytest.mark.parametrize(
    "damage",
    [
        lambda settings, tensors: settings.pop("ngrams"),
        lambda settings, tensors: settings.update(ngrams="many"),
        lambda settings, tensors: settings.update(ngrams=0),
        lambda settings, tensors: tensors.pop("idf"),
        lambda settings, tensors: tensors.update(idf=tensors["idf"][:-1]),
        lambda settings, tensors: tensors.update(idf=tensors["idf"] * np.nan),
        lambda settings, tensors: tensors.update(vocabulary=np.array([255], dtype=np.uint8)),
        lambda settings, tensors: tensors.update(vocabulary=np.frombuffer(b"a\na", dtype=np.uint8)),
        lambda settings, tensors: tensors.update(vocabulary=tensors["vocabulary"][:-4]),
    ],
)
def test_a_damaged_state_is_refused(damage):
    vectorizer = TextVectorizer().fit(TEXTS)
    settings, tensors = vectorizer.settings(), vectorizer.tensors()
    damage(settings, tensors)
    with pytest.raises(ValueError, match="damaged"):
        TextVectorizer.from_state(settings, tensors)
