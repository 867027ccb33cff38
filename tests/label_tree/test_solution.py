"""What the solvers find is what they promise: LIBLINEAR's objective, weights close to exact ones in 16 bits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from sapwood import LabelTreeClassifier, OneVsAllClassifier, _core

EXACT = {
    "max_leaf": 1000,
    "prune": 0.0,
    "weight_bits": 32,
    "normalize": False,
    "tol": 1e-6,
    "passes": 20000,
    "class_weight": None,
    "random_state": 0,
}


def noisy_rows(n_rows=150, n_features=40, n_labels=20, seed=0):
    """Rows that no hyperplane separates, of lengths around 1."""
    random = np.random.default_rng(seed)
    X = sp.random(n_rows, n_features, 0.3, "csr", np.float32, random)
    y = random.integers(0, n_labels, n_rows)
    X += sp.csr_matrix((np.ones(n_rows, np.float32), (np.arange(n_rows), y % n_features)), X.shape)
    return X.tocsr().astype(np.float32), y


def regressors(model):
    """Weights and biases of a model of one node, by asking it for the scores of unit rows."""
    n = model.n_features_in_
    rows = _core.Rows.dense(np.vstack([np.zeros((1, n), np.float32), np.eye(n, dtype=np.float32)]))
    scores = np.zeros((n + 1, len(model.classes_)))
    for row in range(n + 1):
        children, values = model.forest_.core.node_scores(rows, row=row, node=0, normalize=False)
        scores[row, ~children] = values
    return scores[1:] - scores[0], scores[0]


def objective(X, sign, w, b, C, weight=None):
    loss = np.maximum(0, 1 - sign * (X @ w + b)) ** 2
    return 0.5 * (w @ w + b * b) + C * (loss if weight is None else weight * loss).sum()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_dual_solver_reaches_the_objective_of_liblinear(C, dense, weighted):
    X, y = noisy_rows()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    rows = X.toarray() if dense else X
    model = LabelTreeClassifier(C=C, **EXACT).fit(rows, y, sample_weight=weight)
    W, biases = regressors(model)
    double = X.astype(np.float64)
    for code, label in enumerate(model.classes_):
        sign = np.where(y == label, 1, -1)
        theirs = LinearSVC(
            loss="squared_hinge",
            dual=True,
            C=C,
            fit_intercept=True,
            intercept_scaling=1,
            tol=1e-8,
            max_iter=100000,
        ).fit(double, sign, sample_weight=weight)
        best = objective(double, sign, theirs.coef_[0], theirs.intercept_[0], C, weight)
        ours = objective(double, sign, W[:, code], biases[code], C, weight)
        assert ours < best * (1 + 1e-4)
        their_scores, our_scores = theirs.decision_function(double), double @ W[:, code] + biases[code]
        clear = np.abs(their_scores) > 1e-3
        assert clear.mean() > 0.9
        assert (np.sign(their_scores) == np.sign(our_scores))[clear].all()


def test_zero_weight_is_absence_in_the_solution():
    X, y = noisy_rows()
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    full = LabelTreeClassifier(**EXACT).fit(X, y, sample_weight=weight)
    left = LabelTreeClassifier(**EXACT).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(full.classes_, left.classes_)
    for got, expected in zip(regressors(full), regressors(left), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-4)


def test_a_repeated_row_weighs_as_much_as_it_is_repeated():
    X, y = noisy_rows()
    weight = np.arange(len(y)) % 3 + 1
    repeated = np.repeat(np.arange(len(y)), weight)
    by_weight = LabelTreeClassifier(**EXACT).fit(X, y, sample_weight=weight)
    by_rows = LabelTreeClassifier(**EXACT).fit(X[repeated], y[repeated])
    for got, expected in zip(regressors(by_weight), regressors(by_rows), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-4)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_adagrad_comes_close(loss):
    X, y = noisy_rows(n_labels=5)
    settings = {**EXACT, "solver": "adagrad", "loss": loss, "passes": 200}
    model = LabelTreeClassifier(**settings).fit(X, y)
    W, biases = regressors(model)
    double = X.astype(np.float64)

    def mean_loss(scores, sign):
        margin = sign * scores
        return np.mean(
            np.maximum(0, 1 - margin) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -margin)
        )

    for code, label in enumerate(model.classes_):
        sign = np.where(y == label, 1, -1)
        assert mean_loss(double @ W[:, code] + biases[code], sign) < 0.8 * mean_loss(
            np.full(len(y), -0.6), sign
        )
    assert model.score(X, y) > 0.8


def test_sixteen_bits_are_close_to_thirty_two():
    X, y = noisy_rows()
    narrow = LabelTreeClassifier(max_leaf=4, random_state=0, weight_bits=16).fit(X, y)
    wide = LabelTreeClassifier(max_leaf=4, random_state=0, weight_bits=32).fit(X, y)
    np.testing.assert_allclose(narrow.predict_proba(X), wide.predict_proba(X), atol=5e-3)
    a, b = narrow.forest_.arrays, wide.forest_.arrays
    assert a["pool"].size < 0.75 * b["pool"].size
    np.testing.assert_array_equal(a["keys"], b["keys"])


@pytest.mark.parametrize("size", [1, 1e3, 1e6])
def test_rows_that_are_not_scaled_learn_at_usual_lengths(size):
    """With `normalize=False` the weights go with the inverse of the rows' length: 16 bits must hold them still."""
    X, y = noisy_rows(n_labels=5)
    settings = {"normalize": False, "random_state": 0, "C": 10 / size**2}
    narrow = LabelTreeClassifier(weight_bits=16, **settings).fit(X * np.float32(size), y)
    wide = LabelTreeClassifier(weight_bits=32, **settings).fit(X * np.float32(size), y)
    np.testing.assert_allclose(
        narrow.predict_proba(X * np.float32(size)), wide.predict_proba(X * np.float32(size)), atol=0.02
    )


def test_pruning_drops_small_weights_and_little_else():
    X, y = noisy_rows()
    models = [LabelTreeClassifier(prune=prune, random_state=0).fit(X, y) for prune in (0.0, 0.1, 0.5, 1e6)]
    sizes = [model.forest_.nbytes for model in models]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 3
    assert (models[0].predict(X) == models[1].predict(X)).mean() > 0.9
    W, _ = regressors(LabelTreeClassifier(**{**EXACT, "prune": 0.1, "normalize": True}).fit(X, y))
    assert ((np.abs(W) == 0) | (np.abs(W) > 0.0999)).all()
    assert len(set(models[-1].predict(X).tolist())) <= 2  # nothing is left but the biases


@pytest.mark.parametrize("class_weight", ["rare", "propensity"])
def test_rare_labels_count_for_more(class_weight):
    random = np.random.default_rng(0)
    n_rare, n_common = 4, 400
    y = np.array(["rare"] * n_rare + ["common"] * n_common)
    X = random.normal(size=(len(y), 10)).astype(np.float32)
    X[:n_rare, 0] += 1.5
    plain = LabelTreeClassifier(class_weight=None, random_state=0).fit(X, y)
    weighted = LabelTreeClassifier(class_weight=class_weight, random_state=0).fit(X, y)
    rare = plain.classes_.tolist().index("rare")
    more = weighted.predict_proba(X[:n_rare])[:, rare] - plain.predict_proba(X[:n_rare])[:, rare]
    assert more.mean() > 0.01


@pytest.mark.xfail(
    reason="weights below 6e-8 vanish in 16 bits; a factor for the whole forest would keep them"
)
def test_rows_that_are_not_scaled_learn_at_great_length():
    X, y = noisy_rows(n_labels=5)
    long = X * np.float32(1e8)
    assert LabelTreeClassifier(normalize=False, C=1e-15, random_state=0).fit(long, y).score(long, y) > 0.9


@pytest.mark.parametrize("scale", [1e5, 1e10, 1e19, 1e37])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_rows_of_any_length_leave_numbers(scale, loss):
    """Without `normalize` gradients and their squares may pass the largest float."""
    random = np.random.default_rng(0)
    y = np.arange(60) % 5
    X = (scale * (random.normal(size=(60, 6)) + 3 * np.eye(6)[y])).astype(np.float32)
    options = {"normalize": False, "solver": "adagrad", "loss": loss, "random_state": 0}
    tree, flat = LabelTreeClassifier(**options).fit(X, y), OneVsAllClassifier(**options).fit(X, y)
    online = OneVsAllClassifier(**options)
    for _ in range(3):
        online.partial_fit(X, y)
    for model in (tree, flat, online):
        assert np.isfinite(model.predict_topk(X)[1]).all()
        assert np.isfinite(model.predict_proba(X)).all()
