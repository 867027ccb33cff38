"""Each score against a second one in plain loops, and against scikit-learn where it has the same."""

import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import f1_score

from sapwood import metrics

NAMES = np.array(["oak", "ash", "elm", "fir", "yew", "box", "bay"])
N_LABELS = len(NAMES)
FEW = settings(max_examples=40, deadline=None)

label_set = st.sets(st.integers(0, N_LABELS - 1), max_size=4)
label_sets = st.lists(label_set, min_size=1, max_size=8)
weight_lists = st.lists(st.floats(0.5, 20), min_size=N_LABELS, max_size=N_LABELS)


@st.composite
def rankings(draw):
    """True label sets, the ranking of some labels for each (repeats and unknown labels too), and k."""
    truth = draw(label_sets)
    width = draw(st.integers(1, 6))
    row = st.lists(st.integers(-1, N_LABELS - 1), min_size=width, max_size=width)
    ranking = draw(st.lists(row, min_size=len(truth), max_size=len(truth)))
    return truth, np.array(ranking), draw(st.integers(1, width))


@st.composite
def two_label_sets(draw):
    truth = draw(label_sets)
    return truth, draw(st.lists(label_set, min_size=len(truth), max_size=len(truth)))


def indicator(sets):
    dense = np.zeros((len(sets), N_LABELS), dtype=np.int8)
    for row, labels in enumerate(sets):
        dense[row, list(labels)] = 1
    return dense


def named(sets):
    return [[str(NAMES[label]) for label in labels] for labels in sets]


def every_kind(sets):
    """Yield the same label sets in each kind with what `labels=` it needs, and whether labels are names."""
    dense = indicator(sets)
    yield [list(labels) for labels in sets], None, False
    yield dense, None, False
    yield sparse.csr_matrix(dense.astype(float)), None, False
    yield sparse.csc_array(dense.astype(bool)), None, False
    yield dense, NAMES, True
    yield named(sets), None, True
    yield named(sets), NAMES, True


def first_places(row, k):
    """Yield (place, label) of the first k, without repeats."""
    for place, label in enumerate(row[:k]):
        if label not in row[:place]:
            yield place, label


def loop_precision(truth, ranking, k):
    hits = [
        sum(label in labels for _, label in first_places(row, k))
        for labels, row in zip(truth, ranking, strict=True)
    ]
    return sum(hits) / (k * len(truth))


def loop_recall(truth, ranking, k):
    total = 0.0
    for labels, row in zip(truth, ranking, strict=True):
        if labels:
            total += sum(label in labels for _, label in first_places(row, k)) / len(labels)
    return total / len(truth)


def loop_ndcg(truth, ranking, k):
    total = 0.0
    for labels, row in zip(truth, ranking, strict=True):
        if labels:
            gain = sum(1 / math.log2(p + 2) for p, label in first_places(row, k) if label in labels)
            total += gain / sum(1 / math.log2(p + 2) for p in range(min(k, len(labels))))
    return total / len(truth)


def loop_psp(truth, ranking, k, weights):
    gained = best = 0.0
    for labels, row in zip(truth, ranking, strict=True):
        gained += sum(weights[label] for _, label in first_places(row, k) if label in labels)
        best += sum(sorted((weights[label] for label in labels), reverse=True)[:k])
    return gained / best if best else 0.0


def loop_f1(hits, true, predicted):
    return 2 * hits / (true + predicted) if true + predicted else 0.0


@pytest.mark.parametrize(
    ("score", "loop"),
    [
        (metrics.precision_at_k, loop_precision),
        (metrics.recall_at_k, loop_recall),
        (metrics.ndcg_at_k, loop_ndcg),
    ],
)
@FEW
@given(rankings())
def test_ranking_scores_agree_with_loops(score, loop, case):
    truth, ranking, k = case
    expected = loop(truth, ranking.tolist(), k)
    for Y, labels, are_names in every_kind(truth):
        topk = np.append(NAMES, "nothing")[ranking] if are_names else ranking
        assert score(Y, topk, k, labels=labels) == pytest.approx(expected)


@FEW
@given(rankings(), weight_lists)
def test_propensity_scored_precision_agrees_with_a_loop(case, weights):
    truth, ranking, k = case
    expected = loop_psp(truth, ranking.tolist(), k, weights)
    for Y, labels, are_names in every_kind(truth):
        if labels is None and isinstance(Y, list):
            labels = NAMES if are_names else np.arange(N_LABELS)
        topk = np.append(NAMES, "nothing")[ranking] if are_names else ranking
        got = metrics.propensity_scored_precision_at_k(Y, topk, k, weights=weights, labels=labels)
        assert got == pytest.approx(expected)


@FEW
@given(two_label_sets())
def test_f1_scores_agree_with_loops_and_scikit_learn(case):
    truth, predicted = case
    pairs = [(len(t & p), len(t), len(p)) for t, p in zip(truth, predicted, strict=True)]
    micro = loop_f1(*map(sum, zip(*pairs, strict=True)))
    example = sum(loop_f1(*pair) for pair in pairs) / len(pairs)
    macro = 0.0
    for label in range(N_LABELS):
        in_both = sum(label in t and label in p for t, p in zip(truth, predicted, strict=True))
        macro += (
            loop_f1(in_both, sum(label in t for t in truth), sum(label in p for p in predicted)) / N_LABELS
        )

    dense = indicator(truth), indicator(predicted)
    for average, ours in [("micro", micro), ("samples", example), ("macro", macro)]:
        assert f1_score(*dense, average=average, zero_division=0) == pytest.approx(ours)

    for (Y, labels, _), (P, _, _) in zip(every_kind(truth), every_kind(predicted), strict=True):
        assert metrics.micro_f1(Y, P, labels=labels) == pytest.approx(micro)
        assert metrics.example_f1(Y, P, labels=labels) == pytest.approx(example)
        if labels is not None or not isinstance(Y, list):
            assert metrics.macro_f1(Y, P, labels=labels) == pytest.approx(macro)


@FEW
@given(st.lists(st.tuples(*[st.integers(0, N_LABELS - 1)] * 2), min_size=1, max_size=12))
def test_multiclass_f1_agrees_with_scikit_learn(pairs):
    codes = np.array(pairs).T
    for y, predicted in (codes, NAMES[codes], NAMES[codes].astype(object)):
        assert metrics.micro_f1(y, predicted) == pytest.approx(f1_score(y, predicted, average="micro"))
        assert metrics.macro_f1(y, predicted) == pytest.approx(f1_score(y, predicted, average="macro"))
        assert metrics.example_f1(y, predicted) == pytest.approx(np.mean(y == predicted))


@FEW
@given(st.lists(label_set, min_size=3, max_size=12))
def test_propensities_follow_the_formula(sets):
    a, b, n = 0.6, 2.6, len(sets)
    scale = (math.log(n) - 1) * (b + 1) ** a
    counts = [sum(label in labels for labels in sets) for label in range(N_LABELS)]
    expected = [1 / (1 + scale * (count + b) ** -a) for count in counts]
    for Y, labels, are_names in every_kind(sets):
        if isinstance(Y, list):
            labels = NAMES if are_names else np.arange(N_LABELS)
        np.testing.assert_allclose(metrics.propensities(Y, a, b, labels=labels), expected)


def test_propensities_of_bare_labels_are_those_of_the_sorted_distinct_labels():
    y = ["oak", "ash", "oak", "oak"]
    ash, oak = metrics.propensities(y)
    assert ash < oak
    np.testing.assert_array_equal(metrics.propensities(y, labels=["oak", "ash"]), [oak, ash])


def test_perfect_rankings_score_one():
    Y, topk = [["oak"], ["ash", "elm"]], [["oak", "fir"], ["elm", "ash"]]
    assert metrics.recall_at_k(Y, topk, 2) == metrics.ndcg_at_k(Y, topk, 2) == 1
    weights = 1 / metrics.propensities([*Y, ["fir"]], labels=NAMES)
    assert metrics.propensity_scored_precision_at_k(Y, topk, weights=weights, labels=NAMES) == 1


def test_k_defaults_to_all_columns():
    assert metrics.precision_at_k([3, 4], [[3, 4], [3, 4]]) == 0.5


def test_rows_without_true_labels():
    Y, topk = [[], [1]], [[0, 1], [1, 0]]
    assert metrics.precision_at_k(Y, topk, 1) == 0.5
    assert metrics.recall_at_k(Y, topk, 1) == 0.5
    assert metrics.ndcg_at_k(Y, topk, 1) == 0.5
    weights = {"weights": [1, 1], "labels": [0, 1]}
    assert metrics.propensity_scored_precision_at_k(Y, topk, 1, **weights) == 1
    assert metrics.propensity_scored_precision_at_k([[], []], topk, 1, **weights) == 0


def test_no_labels_anywhere():
    assert metrics.micro_f1([[]], [[]]) == metrics.macro_f1([[]], [[]]) == metrics.example_f1([[]], [[]]) == 0
    assert metrics.precision_at_k([[], []], [["oak"], ["ash"]]) == 0


def test_true_and_predicted_labels_may_differ_in_kind():
    assert metrics.micro_f1([0, 2], np.array([[1, 0, 0], [0, 0, 1]])) == 1
    assert metrics.macro_f1([[0], [2]], np.array([0, 2])) == 1


def test_inputs_are_left_as_they_were():
    Y = sparse.csr_matrix((np.ones(3), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    before = Y.indices.copy()
    metrics.precision_at_k(Y, [[0], [1]], 1)
    np.testing.assert_array_equal(Y.indices, before)


def damaged():
    """An indicator whose second row names a column far beyond its two: scipy would write there."""
    indicator = sparse.csc_matrix(np.eye(2))
    indicator.indices[1] = 10**6
    return indicator


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.precision_at_k([1], [[1, 2]], 3), "k must lie between 1 and the 2 columns"),
        (lambda: metrics.precision_at_k([1], [[1, 2]], 0), "k must lie between"),
        (lambda: metrics.precision_at_k([1, 2], [[1]]), "Y_true has 2 rows and topk_labels has 1"),
        (lambda: metrics.precision_at_k([1], [1]), "topk_labels must have shape"),
        (lambda: metrics.precision_at_k([], np.zeros((0, 1))), "no rows"),
        (lambda: metrics.precision_at_k([1], [["oak"]]), "cannot be compared"),
        (lambda: metrics.precision_at_k([1, "oak"], [["oak"], ["oak"]]), "mixture"),
        (lambda: metrics.precision_at_k([None], [[1]]), "numbers or strings"),
        (lambda: metrics.precision_at_k(1, [[1]]), "must be 1-D"),
        (lambda: metrics.precision_at_k([[[1]]], [[1]]), "must be 1-D"),
        (lambda: metrics.precision_at_k(np.array([[2, 0]]), [[1]]), "zeros and ones only"),
        (lambda: metrics.precision_at_k(np.array([["a"]]), [["a"]]), "indicator of zeros and ones"),
        (lambda: metrics.precision_at_k(np.eye(2), [[1], [0]], labels=["a"]), "2 columns, but labels= has 1"),
        (lambda: metrics.precision_at_k(np.eye(2), [[1], [0]], labels=["a", "a"]), "names a label twice"),
        (lambda: metrics.precision_at_k([1, 7], [[1], [1]], labels=[1, 2]), "row 1 has the label"),
        (lambda: metrics.precision_at_k(damaged(), [[1], [0]]), "the indicator is damaged"),
        (lambda: metrics.micro_f1(np.eye(2), np.eye(2, 3)), "2 columns and Y_pred has 3"),
        (lambda: metrics.micro_f1([1], [1, 2]), "Y_true has 1 rows and Y_pred has 2"),
        (lambda: metrics.micro_f1([1], ["oak"]), "cannot be compared"),
        (lambda: metrics.propensities([1, 2]), "at least 3 training rows"),
        (
            lambda: metrics.propensity_scored_precision_at_k([1], [[1]], weights=[1.0]),
            "labels= must say which",
        ),
        (
            lambda: metrics.propensity_scored_precision_at_k(np.eye(2), [[1], [0]], weights=[1.0]),
            "there are 2 labels",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_examples_in_the_docstrings_run():
    assert doctest.testmod(metrics).failed == 0
