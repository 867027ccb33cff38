"""Binary relevance and the label powerset against what scikit-learn builds by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from sapwood import (
    AnnotationTreeClassifier,
    BinaryRelevanceClassifier,
    LabelPowersetClassifier,
    OneVsAllClassifier,
    load,
)
from sapwood.reference.label_sets import as_label_sets


def data(seed=0, n=120, width=9, n_labels=5):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, width)).astype(np.float32)
    Y = (X[:, :n_labels] + random.normal(size=(n, n_labels)) / 2 > 0.6).astype(int)
    return X, Y


X, Y = data()
Z, _ = data(seed=1)


@pytest.mark.parametrize(
    "inside",
    [LinearSVC(random_state=0), LogisticRegression(), GaussianNB(), KNeighborsClassifier(3)],
    ids=repr,
)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_binary_relevance_is_one_vs_rest(inside, n_jobs):
    expected = OneVsRestClassifier(inside).fit(X, Y)
    model = BinaryRelevanceClassifier(estimator=inside, random_state=0, n_jobs=n_jobs).fit(X, Y)
    np.testing.assert_array_equal(model.predict(Z), expected.predict(Z))
    if hasattr(inside, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(Z), expected.predict_proba(Z), atol=1e-6)


@pytest.mark.parametrize(
    "inside",
    [LinearSVC(random_state=0), LogisticRegression(), GaussianNB(), KNeighborsClassifier(3)],
    ids=repr,
)
def test_label_powerset_is_the_classifier_of_sets(inside):
    sets = as_label_sets(Y)
    names = sorted(set(sets))
    codes = [names.index(s) for s in sets]
    model = LabelPowersetClassifier(estimator=inside, random_state=0).fit(X, Y)
    wanted = [names[code] for code in inside.fit(X, codes).predict(Z)]
    assert as_label_sets(model.predict(Z)) == wanted
    assert as_label_sets(model.sets_) == names
    if hasattr(inside, "predict_proba"):
        indicator = np.array([[j in s for j in range(5)] for s in names])
        np.testing.assert_allclose(model.predict_proba(Z), inside.predict_proba(Z) @ indicator, atol=1e-6)


def test_binary_relevance_by_default_is_one_against_all():
    model = BinaryRelevanceClassifier(random_state=0).fit(X, Y)
    expected = OneVsAllClassifier(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(Z), expected.predict(Z))
    np.testing.assert_array_equal(model.predict_proba(Z), expected.predict_proba(Z))
    given = BinaryRelevanceClassifier(estimator=OneVsAllClassifier(C=7.0), random_state=0).fit(X, Y)
    expected = OneVsAllClassifier(C=7.0, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(given.predict_proba(Z), expected.predict_proba(Z))


def test_one_label_a_row_takes_the_best():
    y = np.array(["ash", "elm", "oak"])[X[:, :3].argmax(1)]
    for inside in (None, LinearSVC(random_state=0), LogisticRegression()):
        for cls in (BinaryRelevanceClassifier, LabelPowersetClassifier):
            model = cls(estimator=inside, random_state=0).fit(X, y)
            assert model.score(X, y) > 0.85
            assert model.predict_topk(X, k=1)[0][:, 0].tolist() == model.predict(X).tolist()


def test_labels_that_no_row_has_or_every_row():
    wide = np.hstack([Y, np.zeros((len(Y), 1), int), np.ones((len(Y), 1), int)])
    for inside in (None, LinearSVC(random_state=0)):
        for cls in (BinaryRelevanceClassifier, LabelPowersetClassifier):
            answer = cls(estimator=inside, random_state=0).fit(X, wide).predict(Z)
            assert not answer[:, 5].any()
            assert answer[:, 6].all()


def test_weights_go_to_the_classifier_inside_or_are_refused():
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    model = BinaryRelevanceClassifier(estimator=LogisticRegression()).fit(X, Y, sample_weight=weight)
    expected = LogisticRegression().fit(X, Y[:, 2], sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(Z)[:, 2], expected.predict_proba(Z)[:, 1], atol=1e-6)
    for cls in (BinaryRelevanceClassifier, LabelPowersetClassifier):
        with pytest.raises(ValueError, match="takes no sample_weight"):
            cls(estimator=KNeighborsClassifier()).fit(X, Y, sample_weight=weight)


def test_files_hold_our_own_models_and_refuse_others(tmp_path):
    inside = OneVsAllClassifier(C=3.0)
    for cls in (BinaryRelevanceClassifier, LabelPowersetClassifier):
        model = cls(estimator=inside, random_state=0).fit(X, Y)
        model.save(tmp_path / "m")
        copy = load(tmp_path / "m")
        assert copy.estimator.C == 3.0
        np.testing.assert_array_equal(copy.predict_proba(Z), model.predict_proba(Z))
        with pytest.raises(TypeError, match="pickle"):
            cls(estimator=LinearSVC()).fit(X, Y).save(tmp_path / "other")
        assert not (tmp_path / "other").exists()
    trees = LabelPowersetClassifier(estimator=AnnotationTreeClassifier()).fit(X, Y)
    trees.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(Z), trees.predict(Z))


def test_an_estimator_that_is_none():
    for cls in (BinaryRelevanceClassifier, LabelPowersetClassifier):
        for inside in (3, "svm", LinearSVC):
            with pytest.raises(ValueError, match="estimator must be"):
                cls(estimator=inside).fit(X, Y)


def test_sparse_rows_reach_the_classifier_as_they_are():
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0))
    expected = OneVsRestClassifier(LinearSVC(random_state=0)).fit(sparse, Y).predict(sparse)
    model = BinaryRelevanceClassifier(estimator=LinearSVC(random_state=0), random_state=0).fit(
        sparse, sp.csr_matrix(Y)
    )
    np.testing.assert_array_equal(model.predict(sparse).toarray(), expected)
