"""What the battery runs over: every public estimator, some variants of each, and small data.

A new estimator is covered as soon as its name stands in `sapwood.__all__`. To have more than its defaults tested,
give it a row in `VARIANTS`.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import sapwood
from sapwood import model_file

VARIANTS = {
    "AnnotationTreeClassifier": [
        {},
        {"rule": "balanced", "beam": 1, "class_weight": "balanced", "loss": "logistic"},
        {"C": 10.0, "max_planes": 1, "min_examples": 4},
    ],
    "BinaryRelevanceClassifier": [{}],
    "FastXMLClassifier": [{}, {"n_trees": 3, "max_leaf": 2}],
    "LabelPowersetClassifier": [{}],
    "PowersetTreeClassifier": [{}, {"beam": 1, "class_weight": "balanced"}],
    "BudgetedClassifier": [{}, {"loss": "logistic", "tol": 0.01}, {"budget": 3, "class_weight": "balanced"}],
    "BudgetedTreeClassifier": [
        {},
        {"prune": False, "loss": "logistic", "budget": 2},
        {"folds": 3, "max_planes": 2, "max_features": 22},
    ],
    "LabelBTreeClassifier": [
        {},
        {"arity": 4, "max_leaf": 4, "decay": 0.01, "max_memory": 100_000, "second_look": 20},
    ],
    "LabelTreeClassifier": [
        {},
        {"max_leaf": 2, "arity": 3, "n_trees": 2, "weight_bits": 32},
        {"solver": "adagrad", "loss": "logistic", "max_leaf": 4},
    ],
    "OneVsAllClassifier": [
        {},
        {"solver": "adagrad", "loss": "logistic"},
        {"solver": "adagrad", "negatives": 4},
    ],
    "RecallTreeClassifier": [
        {},
        {"max_candidates": 2, "arity": 2, "path_features": "leaf", "cross_path": True},
        {
            "max_candidates": None,
            "max_depth": 3,
            "arity": 3,
            "randomized_routing": True,
            "path_features": "path",
        },
        {"parallel": "hogwild", "n_jobs": 2},
    ],
    "LOMTreeClassifier": [
        {},
        {"parallel": "hogwild", "n_jobs": 2},
        {"max_internal": 30, "loss": "logistic", "step": 1.0, "passes": 10, "shuffle": False},
    ],
}
"""Constructor arguments of each estimator; one not named here is tested as it comes."""

SLOW_BANKS = {"passes": 10**9, "tol": 1e-30, "prune": 0.0}
SLOW_NODES = {"tol": 1e-30, "max_planes": 10**6, "C": 1e3}
SLOW = {
    "AnnotationTreeClassifier": SLOW_NODES,
    "BinaryRelevanceClassifier": {"estimator": sapwood.OneVsAllClassifier(**SLOW_BANKS)},
    "FastXMLClassifier": {"n_trees": 10**5},
    "LabelPowersetClassifier": {"estimator": sapwood.OneVsAllClassifier(**SLOW_BANKS)},
    "PowersetTreeClassifier": SLOW_NODES,
    "LabelTreeClassifier": SLOW_BANKS,
    "OneVsAllClassifier": SLOW_BANKS,
    "LabelBTreeClassifier": {"passes": 10**9},
    "BudgetedClassifier": {"budget": 100, "max_planes": 10**6, "tol": 1e-30},
    "BudgetedTreeClassifier": {"max_planes": 10**6, "tol": 1e-30},
    "LOMTreeClassifier": {"passes": 10**9},
    "RandomTreeClassifier": {"passes": 10**9},
    "RecallTreeClassifier": {"passes": 10**9},
    "FilterTreeClassifier": {"passes": 10**9},
}
"""Arguments with which a fit on noise takes longer than anyone waits."""

WEIGHTS_REPEAT = (
    "an integer weight and so many copies of the row have one optimum, but the solver stops within `tol` of it: the "
    "check compares seven digits"
)
NAMED_WEIGHTS = (
    'class_weight is None or "balanced": both sides of each problem; weights of single labels are not taken'
)
ONE_STEP = "a stream: a row of weight 2 is one step of twice the gradient, two copies are two steps"
EXPECTED_FAILURES = {
    name: {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS_REPEAT,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_REPEAT,
    }
    for name in (
        "AnnotationTreeClassifier",
        "BinaryRelevanceClassifier",
        "BudgetedClassifier",
        "LabelPowersetClassifier",
        "LabelTreeClassifier",
        "OneVsAllClassifier",
        "PowersetTreeClassifier",
    )
}
for name in ("AnnotationTreeClassifier", "BudgetedClassifier", "PowersetTreeClassifier"):
    EXPECTED_FAILURES[name]["check_class_weight_classifiers"] = NAMED_WEIGHTS
EXPECTED_FAILURES["FastXMLClassifier"] = {
    f"check_sample_weight_equivalence_on_{form}_data": "rows are drawn in a random order: twice the row draws otherwise"
    for form in ("dense", "sparse")
}
EXPECTED_FAILURES["BudgetedTreeClassifier"] = {
    "check_sample_weight_equivalence_on_dense_data": "copies of a row may be dealt to several folds",
    "check_sample_weight_equivalence_on_sparse_data": "copies of a row may be dealt to several folds",
    "check_class_weight_classifiers": NAMED_WEIGHTS,
}
EXPECTED_FAILURES |= {
    name: {
        "check_sample_weight_equivalence_on_dense_data": ONE_STEP,
        "check_sample_weight_equivalence_on_sparse_data": ONE_STEP,
    }
    for name in (
        "FilterTreeClassifier",
        "LOMTreeClassifier",
        "LabelBTreeClassifier",
        "RandomTreeClassifier",
        "RecallTreeClassifier",
    )
}
"""Checks of scikit-learn that an estimator does not pass, and why."""

CLASSES = {name: getattr(sapwood, name) for name in sapwood.__all__ if name.endswith("Classifier")}


def variants():
    """One instance of each estimator and variant, with a fixed seed."""
    return [
        cls(random_state=0, **kwargs) for name, cls in CLASSES.items() for kwargs in VARIANTS.get(name, [{}])
    ]


def one_of_each():
    """One instance of each estimator, as it comes."""
    return [cls(random_state=0) for cls in CLASSES.values()]


def name_of(value):
    """The name of a case: class and the arguments that are not the default."""
    return repr(value).replace("\n", "").replace(" ", "") if hasattr(value, "get_params") else None


def takes_several_labels(estimator):
    """Whether a row may have more than one label."""
    return estimator.__sklearn_tags__().classifier_tags.multi_label


def is_reproducible(estimator):
    """Whether the same fit gives the same model: not where threads learn at once ("hogwild")."""
    return estimator.get_params().get("parallel") is None


every_variant = pytest.mark.parametrize("estimator", variants(), ids=name_of)
every_estimator = pytest.mark.parametrize("estimator", one_of_each(), ids=name_of)
every_reproducible_variant = pytest.mark.parametrize(
    "estimator", [case for case in variants() if is_reproducible(case)], ids=name_of
)
every_multilabel_variant = pytest.mark.parametrize(
    "estimator", [case for case in variants() if takes_several_labels(case)], ids=name_of
)
every_multilabel_estimator = pytest.mark.parametrize(
    "estimator", [case for case in one_of_each() if takes_several_labels(case)], ids=name_of
)

N_ROWS, N_FEATURES, N_LABELS = 96, 24, 12


def make_rows(n_rows=N_ROWS, seed=0):
    """CSR float32 rows and the code of the label of each: two features tell it, three are noise."""
    random = np.random.default_rng(seed)
    codes = np.arange(n_rows) % N_LABELS
    dense = np.zeros((n_rows, N_FEATURES), dtype=np.float32)
    for row, code in enumerate(codes):
        dense[row, random.choice(N_FEATURES, 3, replace=False)] = random.uniform(0.1, 0.4, 3)
        dense[row, [2 * code, 2 * code + 1]] = random.uniform(0.8, 1.5, 2)
    return sp.csr_matrix(dense), codes


def label_lists(codes):
    """For each code a list of labels: itself, and its half for even ones."""
    return [[int(code), int(code) // 2] if code % 2 == 0 else [int(code)] for code in codes]


def indicator(lists, dtype=np.int64):
    """The dense indicator of lists of codes."""
    out = np.zeros((len(lists), N_LABELS), dtype=dtype)
    for row, labels in enumerate(lists):
        out[row, labels] = 1
    return out


def tensors(model, folder):
    """The bytes of every array of a fitted model, by way of its file."""
    path = folder / "state.model"
    model.save(path)
    return {name: (t.dtype.str, t.shape, t.tobytes()) for name, t in model_file.read(path).tensors.items()}


def answers(model, X):
    """All that a model says of rows, as bytes and lists that compare."""
    labels, scores = model.predict_topk(X, k=5)
    predicted = model.predict(X)
    if sp.issparse(predicted):
        predicted = predicted.toarray()
    proba = model.predict_proba(X)
    return labels.tolist(), scores.tobytes(), [np.asarray(row).tolist() for row in predicted], proba.tobytes()
