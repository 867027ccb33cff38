"""scikit-learn's own checks, and living among its tools."""

import warnings

import numpy as np
import pytest
from contract_cases import EXPECTED_FAILURES, every_estimator, every_variant, make_rows, one_of_each, variants
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks


@parametrize_with_checks(
    one_of_each(),
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_check_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@every_variant
def test_parameters_come_back_and_clone_is_unfitted(estimator):
    X, y = make_rows()
    fitted = clone(estimator).fit(X, y)
    again = clone(fitted)
    assert again.get_params() == estimator.get_params()
    assert not hasattr(again, "classes_")
    assert again.set_params(random_state=7).random_state == 7
    with pytest.raises(ValueError, match="Invalid parameter"):
        again.set_params(no_such_parameter=1)


@every_variant
def test_fit_leaves_parameters_and_data_alone(estimator):
    X, y = make_rows()
    before, data = estimator.get_params(), (X.data.copy(), X.indices.copy(), X.indptr.copy(), y.copy())
    model = clone(estimator).fit(X, y)
    assert model.get_params() == before
    for now, then in zip((X.data, X.indices, X.indptr, y), data, strict=True):
        np.testing.assert_array_equal(now, then)


@every_variant
def test_fit_gives_back_the_estimator(estimator):
    model = clone(estimator)
    assert model.fit(*make_rows()) is model


@every_estimator
def test_pipeline_of_text_and_grid_search(estimator):
    colours = ["red", "green", "blue"]
    texts = [f"{colours[row % 3]} leaf number{row % 5}" for row in range(45)]
    labels = np.array([colours[row % 3] for row in range(45)])
    pipeline = make_pipeline(TfidfVectorizer(dtype=np.float32), estimator)
    step = type(estimator).__name__.lower()
    search = GridSearchCV(pipeline, {f"{step}__random_state": [0, 1]}, cv=3).fit(texts, labels)
    assert search.best_score_ > 0.9
    assert search.predict(["a red leaf", "some blue thing"]).tolist() == ["red", "blue"]


@every_estimator
def test_cross_validation(estimator):
    X, y = make_rows()
    assert cross_val_score(estimator, X, y, cv=3).mean() > 0.8


@every_estimator
def test_rows_with_column_names(estimator):
    pandas = pytest.importorskip("pandas")
    X, y = make_rows()
    names = [f"c{i}" for i in range(X.shape[1])]
    model = clone(estimator).fit(pandas.DataFrame(X.toarray(), columns=names), y)
    assert model.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas.DataFrame(X.toarray(), columns=names[::-1]))


def test_every_variant_is_of_a_public_estimator():
    assert {type(estimator).__name__ for estimator in variants()} >= set(EXPECTED_FAILURES)
