"""BudgetedTreeClassifier: the reference's trees, pruning, many labels, and how it is read."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from budgeted_cases import OPTIONS, view, xor
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
from sapwood import BudgetedTreeClassifier, _core
from sapwood.budgeted import tree as tree_module
from sapwood.reference.budgeted import BudgetedParameters
from sapwood.reference.budgeted_tree import BudgetedTree, deal_folds

seeds = st.integers(0, 2**20)


def grow(X, y, fold, *, n_folds=3, max_depth=None, max_features=None, **options):
    """The core's tree for signs y: arrays and held-out errors."""
    return _core.train_budgeted_tree(
        view(X),
        np.arange(len(y) + 1),
        (y > 0).astype(np.int32),
        n_labels=2,
        row_weight=None,
        fold=fold,
        n_folds=n_folds,
        max_depth=-1 if max_depth is None else max_depth,
        max_features=max_features or 0,
        options={**OPTIONS, **options},
        normalize=False,
        seed=0,
        n_threads=2,
        progress=None,
    )


def answers(arrays, X, n_folds):
    model = _core.BudgetedTree(arrays, n_folds=n_folds, n_labels=2, n_columns=X.shape[1])
    codes = model.top(view(X), k=1, normalize=False, n_threads=1)[0][:, 0]
    return np.where(codes == 1, 1.0, -1.0)


@settings(max_examples=25, deadline=None)
@given(
    seeds,
    st.integers(20, 200),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(1, 1), (2, 2)]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 6]),
    st.booleans(),
)
def test_same_tree_as_the_reference(seed, n, prune, balanced, planes, max_depth, max_features, is_sparse):
    X, y = xor(seed, n, noise=6)
    y[:2] = -1, 1
    budget, max_planes = planes
    parameters = BudgetedParameters(
        budget, max_planes=max_planes, tol=1e-2, class_weight="balanced" if balanced else None
    )
    how = {"max_depth": max_depth, "max_features": max_features}
    expected = BudgetedTree(parameters, prune=prune, folds=3, random_state=seed, **how).fit(X, y)
    fold = deal_folds(y, 3, np.random.default_rng(seed)).astype(np.uint8) if prune else None
    arrays, wrong, wrong_before, nodes_before = grow(
        sp.csr_matrix(X) if is_sparse else X,
        y,
        fold,
        budget=budget,
        max_planes=max_planes,
        tol=1e-2,
        balanced=balanced,
        **how,
    )
    np.testing.assert_array_equal(answers(arrays, X, 3 if prune else 1), expected.predict(X))
    assert np.unique(arrays["columns"]).tolist() == expected.features_.tolist()
    assert np.sum(arrays["children"][::2] >= 0) == sum(node.bac is not None for node in expected.nodes_)
    assert nodes_before >= len(arrays["parent"])
    if prune:
        assert wrong == round(expected.cv_error_ * n)
        assert wrong_before == round(expected.unpruned_cv_error_ * n)


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(2, 6))
def test_pruning_never_raises_the_summed_cv_error(seed, folds):
    X, y = xor(seed, 200, flip=0.2)
    model = BudgetedTreeClassifier(budget=2, folds=folds, random_state=0).fit(X, y)
    whole = BudgetedTreeClassifier(budget=2, folds=folds, random_state=0, prune=False).fit(X, y)
    assert model.cv_error_ <= model.unpruned_cv_error_
    assert model.n_nodes_ <= model.unpruned_n_nodes_
    assert not hasattr(whole, "cv_error_")


def test_separates_xor_that_no_plane_separates():
    X, y = xor(3, 1500, flip=0)
    test, answer = xor(4, 500, flip=0)
    model = BudgetedTreeClassifier(budget=1, normalize=False, random_state=0).fit(X, y)
    assert model.score(test, answer) > 0.93
    assert {0, 1} <= set(model.selected_features_)


@pytest.mark.parametrize("max_features", [None, 10])
def test_same_tree_for_csr_permuted_columns_and_any_threads(max_features):
    X, y = xor(2)
    order = np.random.default_rng(0).permutation(X.shape[1])
    options = {"budget": 2, "max_features": max_features, "random_state": 0}
    plain = BudgetedTreeClassifier(**options).fit(X, y)
    sparse = BudgetedTreeClassifier(**options, n_jobs=2).fit(sp.csr_matrix(X), y)
    permuted = BudgetedTreeClassifier(**options).fit(X[:, order], y)
    threads = BudgetedTreeClassifier(**options, n_jobs=3).fit(X, y)
    assert plain.export_text(digits=12) == threads.export_text(digits=12)
    assert plain.export_text() == sparse.export_text()
    np.testing.assert_array_equal(plain.predict(X), permuted.predict(X[:, order]))
    assert plain.selected_features_.tolist() == sorted(order[permuted.selected_features_])
    if max_features:
        assert len(plain.selected_features_) <= max_features


def many(n_labels=7, n=350, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_labels
    X = 0.15 * rng.normal(size=(n, 2 * n_labels)).astype(np.float32)
    X[np.arange(n), 2 * codes] += 1
    return X, np.array([f"label {code}" for code in codes])


def test_many_labels_are_parted_evenly():
    X, y = many()
    model = BudgetedTreeClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.depth_ <= 6
    root = sapwood.inspect.nodes(model)["examples"]
    assert min(root[1], root[2]) >= 0.25 * root[0]


def test_rows_of_several_labels():
    X, y = many()
    lists = [[label, "every second"] if i % 2 else [label] for i, label in enumerate(y)]
    X = np.hstack([X, np.arange(len(y))[:, None].astype(np.float32) % 2])
    model = BudgetedTreeClassifier(prune=False).fit(X, lists)  # pruning asks for the best label only
    right = [set(got) == set(wanted) for got, wanted in zip(model.predict(X), lists, strict=True)]
    assert np.mean(right) > 0.9


def test_the_tree_can_be_read(tmp_path):
    X, y = many()
    model = BudgetedTreeClassifier(random_state=0).fit(X, y)
    names = [f"word{j}" for j in range(X.shape[1])]
    text = model.export_text(names)
    assert len(text.splitlines()) == model.n_nodes_
    assert "word" in text
    assert "x[" not in text
    assert all(label in text for label in np.unique(y))
    drawn = model.export_svg(names), model.export_graphviz(names)
    for drawing in drawn:
        assert "word" in drawing
        assert "label 3" in drawing
    model.plot(names).figure.savefig(tmp_path / "tree.png")
    with pytest.raises(ValueError, match="feature_names has 2 names"):
        model.export_text(["a", "b"])


def test_explanations_follow_the_row():
    X, y = many()
    model = BudgetedTreeClassifier(random_state=0).fit(X, y)
    text = model.export_text(digits=6)
    for i in range(10):
        said = model.explain(X[i : i + 1])
        assert said.label == model.predict(X[i : i + 1])[0]
        assert str(said).splitlines()[-1].startswith(str(said.label))
        for step in said.steps:
            amount = sum(part.amount for part in step.contributions)
            assert step.score == pytest.approx(amount + step.offset)
            assert f"{step.offset:+.6f}" in text
    leaves = model.apply(X)
    assert set(sapwood.inspect.nodes(model)["is_leaf"][leaves]) == {True}


def test_one_label_is_a_leaf():
    X, _ = xor()
    model = BudgetedTreeClassifier().fit(X, np.full(len(X), "oak"))
    assert (model.n_nodes_, model.n_leaves_, model.depth_) == (1, 1, 0)
    assert set(model.predict(X)) == {"oak"}


def test_too_few_features_are_refused():
    X, y = xor()
    with pytest.raises(ValueError, match="max_features is 3"):
        BudgetedTreeClassifier(budget=2, max_planes=2, max_features=3).fit(X, y)
    with pytest.raises(ValueError, match="folds must be"):
        BudgetedTreeClassifier(folds=1).fit(X, y)


def test_examples_in_the_docstrings():
    assert doctest.testmod(tree_module).failed == 0
