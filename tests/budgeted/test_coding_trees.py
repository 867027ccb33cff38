"""The powerset tree and the annotation tree: the core against the reference, and what must hold of both."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood import AnnotationTreeClassifier, PowersetTreeClassifier, inspect, load
from sapwood.reference.annotation_tree import AnnotationTree
from sapwood.reference.budgeted import BudgetedParameters
from sapwood.reference.powerset_tree import PowersetTree

label_sets = st.lists(
    st.frozensets(st.integers(0, 5), max_size=4).map(lambda s: tuple(sorted(s))), min_size=1, max_size=25
).filter(lambda sets: any(sets))
QUICK = {"budget": 2, "max_planes": 1, "tol": 0.1, "beam": 1, "normalize": False}


def trees(**kwargs):
    return [
        PowersetTreeClassifier(**kwargs),
        AnnotationTreeClassifier(**kwargs),
        AnnotationTreeClassifier(rule="balanced", **kwargs),
    ]


def noisy(sets, width=12, seed=0):
    """Columns that tell the labels, with noise, in float32."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(len(sets), width)).astype(np.float32) / 2
    for row, labels in enumerate(sets):
        X[row, list(labels)] += 1
    return X


def sets_of(indicator):
    return [tuple(np.flatnonzero(row)) for row in np.asarray(indicator)]


def dense(sets):
    Y = np.zeros((len(sets), 6), dtype=int)
    for row, labels in enumerate(sets):
        Y[row, list(labels)] = 1
    return Y


def drawn(n, n_labels=5, seed=0):
    random = np.random.default_rng(seed)
    return [tuple(np.flatnonzero(row)) for row in random.random((n, n_labels)) < 0.35]


def reference_of(model):
    parameters = BudgetedParameters(
        model.budget,
        C=model.C,
        loss=model.loss,
        max_planes=model.max_planes,
        tol=model.tol,
        class_weight=model.class_weight,
    )
    if isinstance(model, PowersetTreeClassifier):
        return PowersetTree(parameters)
    return AnnotationTree(parameters, rule=model.rule, min_examples=model.min_examples)


def assert_same_weights(model, node, solution):
    a = model.trees_.arrays
    here = slice(*a["node_begin"][node : node + 2])
    assert a["features"][here].tolist() == solution.features.tolist()
    np.testing.assert_allclose(a["weights"][here], solution.coef[:, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(a["bias"][node], solution.offset[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("seed", range(3))
def test_powerset_tree_is_the_reference_node_by_node(seed, class_weight):
    sets = drawn(80, seed=seed)
    X = noisy(sets, seed=seed)
    model = PowersetTreeClassifier(
        budget=3, max_planes=2, C=1.0, beam=1, normalize=False, class_weight=class_weight
    )
    model.fit(X, dense(sets))
    expected = reference_of(model).fit(X.astype(np.float64), sets)
    assert model.entropy_ == pytest.approx(expected.entropy_)
    assert model.mean_decisions_ == pytest.approx(expected.mean_decisions_)
    assert model.depth_ == expected.depth_
    leaves, a = len(expected.sets_), model.trees_.arrays
    stack = [(int(a["roots"][0]), leaves + len(expected.merges_) - 1)]
    while stack:
        node, merge = stack.pop()
        if merge < leaves:
            assert tuple(model.trees_.labels_of(~node)) == expected.sets_[merge]
            continue
        assert_same_weights(model, node, expected.merges_[merge - leaves].bac)
        stack.append((int(a["children"][2 * node]), expected.merges_[merge - leaves].positive))
        stack.append((int(a["children"][2 * node + 1]), expected.merges_[merge - leaves].negative))
    Z = noisy(sets, seed=seed + 100)
    assert sets_of(model.predict(Z)) == expected.predict(Z.astype(np.float64))


@pytest.mark.parametrize("rule", ["frequent", "balanced"])
@pytest.mark.parametrize("min_examples", [2, 9])
@pytest.mark.parametrize("seed", range(3))
def test_annotation_tree_is_the_reference_node_by_node(seed, min_examples, rule):
    sets = drawn(80, seed=seed)
    X = noisy(sets, seed=seed)
    model = AnnotationTreeClassifier(
        rule=rule, min_examples=min_examples, budget=3, max_planes=2, C=1.0, beam=1, normalize=False
    )
    model.fit(X, dense(sets))
    expected = reference_of(model).fit(X.astype(np.float64), sets)
    assert model.entropy_ == pytest.approx(expected.entropy_)
    assert model.mean_decisions_ == pytest.approx(expected.mean_decisions_)
    assert model.depth_ == expected.depth_
    a = model.trees_.arrays
    stack = [(int(a["roots"][0]), 0)]
    while stack:
        at, index = stack.pop()
        node = expected.nodes_[index]
        if node.bac is None:
            assert at < 0
            assert tuple(model.trees_.labels_of(~at)) == node.labels
            assert a["leaf_mass"][~at] == node.n_examples
            continue
        literals = a["question"][slice(*a["question_begin"][at : at + 2])].tolist()
        assert [(k, True) if k >= 0 else (~k, False) for k in literals] == list(node.group)
        assert_same_weights(model, at, node.bac)
        stack.append((int(a["children"][2 * at]), node.yes))
        stack.append((int(a["children"][2 * at + 1]), node.no))
    Z = noisy(sets, seed=seed + 100)
    assert sets_of(model.predict(Z)) == expected.predict(Z.astype(np.float64))


@functools.cache
def shortest(frequencies):
    """The least sum of frequency times code length over *all* binary trees."""
    if len(frequencies) == 1:
        return 0
    first, rest = frequencies[0], frequencies[1:]
    best = None
    for size in range(len(rest)):
        for chosen in itertools.combinations(range(len(rest)), size):
            left = (first, *(rest[k] for k in chosen))
            right = tuple(rest[k] for k in range(len(rest)) if k not in chosen)
            cost = shortest(tuple(sorted(left))) + shortest(tuple(sorted(right)))
            best = cost if best is None else min(best, cost)
    return sum(frequencies) + best


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_no_binary_tree_asks_fewer_questions_than_the_powerset_tree(frequencies):
    labels = np.repeat(np.arange(len(frequencies)), frequencies)
    model = PowersetTreeClassifier(**QUICK).fit(np.ones((len(labels), 1), np.float32), labels)
    assert model.mean_decisions_ * len(labels) == pytest.approx(shortest(tuple(sorted(frequencies))))
    assert model.entropy_ - 1e-9 <= model.mean_decisions_ < model.entropy_ + 1


@settings(deadline=None, max_examples=50)
@given(label_sets, st.sampled_from(["frequent", "balanced"]))
def test_leaves_of_the_annotation_tree_partition_the_label_sets(sets, rule):
    model = AnnotationTreeClassifier(rule=rule, **QUICK).fit(noisy(sets), dense(sets))
    leaves = [tuple(model.trees_.labels_of(leaf)) for leaf in range(model.trees_.n_leaves)]
    assert sorted(leaves) == sorted(set(sets))
    assert [int(m) for m in model.trees_.arrays["leaf_mass"]] == [sets.count(leaf) for leaf in leaves]
    assert model.mean_decisions_ >= model.entropy_ - 1e-9


@settings(deadline=None, max_examples=30)
@given(label_sets)
def test_a_chain_of_any_depth_and_balance(sets):
    many = AnnotationTreeClassifier(rule="balanced", **QUICK).fit(noisy(sets), dense(sets))
    assert many.depth_ <= np.log(len(sets)) / np.log(4 / 3) + 1


def test_a_chain_needs_no_recursion():
    labels = np.arange(3000)
    X = np.ones((3000, 1), np.float32)
    model = AnnotationTreeClassifier(**QUICK).fit(X, labels)
    assert model.depth_ == 2999
    assert AnnotationTreeClassifier(rule="balanced", **QUICK).fit(X, labels).depth_ == 12
    assert len(model.predict(X[:3])) == 3
    assert len(inspect.nodes(model)["depth"]) == 5999


@pytest.mark.parametrize("index", range(3))
def test_csr_and_dense_and_any_number_of_threads_agree(index):
    sets = drawn(120, seed=3)
    X = np.where(np.abs(noisy(sets)) > 0.4, noisy(sets), 0)
    fitted = [
        trees(budget=3, n_jobs=n_jobs)[index].fit(form(X), dense(sets))
        for form in (np.asarray, sp.csr_matrix)
        for n_jobs in (1, 2, 5)
    ]
    expected = fitted[0]
    for model in fitted[1:3]:
        for name, array in expected.trees_.arrays.items():
            np.testing.assert_array_equal(model.trees_.arrays[name], array)
    for model in fitted:
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        np.testing.assert_array_equal(model.trees_.arrays["features"], expected.trees_.arrays["features"])


@pytest.mark.parametrize("index", range(3))
def test_permuted_columns_and_rows_agree(index):
    sets = drawn(120, seed=4)
    X, random = noisy(sets), np.random.default_rng(0)
    expected = trees(budget=3)[index].fit(X, dense(sets)).predict(X)
    columns, rows = random.permutation(X.shape[1]), random.permutation(len(X))
    model = trees(budget=3)[index].fit(X[:, columns], dense(sets))
    np.testing.assert_array_equal(model.predict(X[:, columns]), expected)
    model = trees(budget=3)[index].fit(X[rows], dense(sets)[rows])
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("index", range(3))
def test_whole_weights_are_repeated_rows(index):
    sets = drawn(60, seed=5)
    X, weight = noisy(sets), np.random.default_rng(1).integers(0, 4, 60)
    weighted = trees(C=1.0, tol=1e-6)[index].fit(X, dense(sets), sample_weight=weight)
    repeated = trees(C=1.0, tol=1e-6)[index].fit(
        np.repeat(X, weight, axis=0), np.repeat(dense(sets), weight, axis=0)
    )
    assert weighted.mean_decisions_ == pytest.approx(repeated.mean_decisions_)
    assert weighted.entropy_ == pytest.approx(repeated.entropy_)
    np.testing.assert_array_equal(weighted.trees_.arrays["children"], repeated.trees_.arrays["children"])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


def leaf_probabilities(model, x, slope):
    """Every leaf's probability, by the definition."""
    a = model.trees_.arrays
    x = x / np.linalg.norm(x) if model.normalize else x
    answer = np.zeros(model.trees_.n_leaves)
    stack = [(int(a["roots"][0]), 1.0)]
    while stack:
        at, p = stack.pop()
        if at < 0:
            answer[~at] = p
            continue
        here = slice(*a["node_begin"][at : at + 2])
        yes = 1 / (1 + np.exp(-slope * (x[a["features"][here]] @ a["weights"][here] + a["bias"][at])))
        stack += [(int(a["children"][2 * at]), p * yes), (int(a["children"][2 * at + 1]), p * (1 - yes))]
    return answer


def leaves_met(model, x, slope, beam):
    """The leaf that the decisions lead to, then the one from the most probable branch not taken, and so on."""
    a = model.trees_.arrays
    x = x / np.linalg.norm(x) if model.normalize else x
    branches, met = [(1.0, int(a["roots"][0]))], []
    while branches and len(met) < beam:
        branches.sort()
        p, at = branches.pop()
        while at >= 0:
            here = slice(*a["node_begin"][at : at + 2])
            yes = 1 / (1 + np.exp(-slope * (x[a["features"][here]] @ a["weights"][here] + a["bias"][at])))
            ways = [(p * yes, int(a["children"][2 * at])), (p * (1 - yes), int(a["children"][2 * at + 1]))]
            (p, at), other = ways if yes > 0.5 else ways[::-1]
            branches.append(other)
        met.append(~at)
    return met


@pytest.mark.parametrize(("loss", "slope"), [("squared_hinge", 3.0), ("logistic", 1.0)])
@pytest.mark.parametrize("beam", [2, 5, 1000])
def test_the_answer_has_the_largest_expected_f1_over_the_likely_leaves(beam, loss, slope):
    sets = drawn(150, seed=6)
    X = noisy(sets)
    for model in trees(budget=3, loss=loss, beam=beam):
        model.fit(X, dense(sets))
        leaves = [set(model.trees_.labels_of(leaf).tolist()) for leaf in range(model.trees_.n_leaves)]
        for x, labels in zip(X[:25], sets_of(model.predict(X[:25])), strict=True):
            p = leaf_probabilities(model, x, slope)
            likely = leaves_met(model, x, slope, beam)
            marginal = {j: sum(p[k] for k in likely if j in leaves[k]) for j in range(5)}
            ranked = sorted((j for j in range(5) if marginal[j] > 0), key=lambda j: -marginal[j])

            def expected_f1(answer, p=p, likely=likely, leaves=leaves):
                return sum(
                    p[k]
                    * (
                        2 * len(leaves[k] & answer) / (len(leaves[k]) + len(answer))
                        if leaves[k] or answer
                        else 1
                    )
                    for k in likely
                )

            best = max(expected_f1(set(ranked[:size])) for size in range(len(ranked) + 1))
            assert expected_f1(set(labels)) == pytest.approx(best, rel=1e-4)


def test_topk_is_the_ranking_of_the_whole_tree_where_it_is_searched():
    sets = drawn(150, seed=7)
    X = noisy(sets)
    for model in trees(budget=3, beam=1000):
        model.fit(X, dense(sets))
        labels, scores = model.predict_topk(X[:20], k=5)
        for x, row, score in zip(X[:20], labels, scores, strict=True):
            p = leaf_probabilities(model, x, 3.0)
            marginal = np.zeros(5)
            for leaf, share in enumerate(p):
                marginal[model.trees_.labels_of(leaf)] += share
            np.testing.assert_allclose(score, np.sort(marginal)[::-1], atol=1e-5)
            np.testing.assert_allclose(marginal[row], score, atol=1e-5)


def test_explain_tells_questions_and_answers():
    sets = [("ash", "oak")] * 4 + [("elm",)] * 3 + [("fir",)] * 2
    X = np.repeat(np.eye(3, dtype=np.float32), [4, 3, 2], axis=0)
    annotation = AnnotationTreeClassifier(beam=1).fit(X, sets).explain(X[4:5])
    assert annotation.labels == ["elm"]
    assert [(step.question, step.answer) for step in annotation.steps] == [("ash?", False), ("elm?", True)]
    assert all((step.score > 0) == step.answer for step in annotation.steps)
    assert all(set(step.features) <= {1} for step in annotation.steps)
    balanced = AnnotationTreeClassifier(rule="balanced", beam=1).fit(
        X, [*sets[:4], ("elm", "yew"), *sets[5:]]
    )
    assert "ash" in balanced.explain(X[:1]).steps[0].question
    powerset = PowersetTreeClassifier(beam=1).fit(X, sets).explain(X[:1])
    assert powerset.labels == ["ash", "oak"]
    assert (
        powerset.steps[0].question.endswith("rather than {elm} or 1 more")
        or "{ash, oak}" in powerset.steps[0].question
    )


def test_trees_can_be_inspected(tmp_path):
    sets = drawn(90, seed=8)
    X = noisy(sets)
    for model in trees():
        model.fit(X, dense(sets))
        table, figures = inspect.nodes(model), inspect.tree(model)
        assert table["examples"][0] == len(sets)
        assert figures["depth"] == model.depth_
        assert figures["leaf_depth"] == pytest.approx(model.mean_decisions_)
        assert figures["root_entropy"] == pytest.approx(model.entropy_ * np.log(2))
        assert figures["entropy"] == 0.0
        assert model._question(0)[:8] in inspect.to_svg(model, max_depth=2)
        assert "digraph" in inspect.to_graphviz(model)
        model.save(tmp_path / "m")
        copy = load(tmp_path / "m")
        assert (copy.entropy_, copy.mean_decisions_, copy.depth_) == (
            model.entropy_,
            model.mean_decisions_,
            model.depth_,
        )


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"budget": 0}, "budget"),
        ({"C": 0}, "C must"),
        ({"loss": "hinge"}, "loss"),
        ({"class_weight": "rare"}, "class_weight"),
        ({"max_planes": 0}, "max_planes"),
        ({"tol": 0}, "tol"),
        ({"beam": 0}, "beam"),
    ],
)
def test_parameters_out_of_range(kwargs, message):
    for model in trees(**kwargs):
        with pytest.raises(ValueError, match=message):
            model.fit(np.eye(2), [0, 1])
    for kwargs in ({"rule": "rare"}, {"min_examples": 0}):
        with pytest.raises(ValueError, match=next(iter(kwargs))):
            AnnotationTreeClassifier(**kwargs).fit(np.eye(2), [0, 1])
