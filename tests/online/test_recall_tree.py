"""The core's Recall Tree against the reference: every decision the same, scores to rounding."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.streams import WEIGHTS, Example, streams

from sapwood import RecallTreeClassifier, _core, inspect
from sapwood.reference.linear import Rule
from sapwood.reference.objective import lemma_1_bound
from sapwood.reference.recall_tree import RecallTree
from sapwood.reference.records import Event

COLUMNS = 8
_few = settings(max_examples=60, deadline=None)

OPTIONS = st.fixed_dictionaries(
    {
        "max_candidates": st.sampled_from([None, 1, 2, 3]),
        "coverage": st.sampled_from([1.0, 0.5, 0.9]),
        "max_depth": st.sampled_from([None, 0, 2, 5]),
        "bound": st.sampled_from([0.0, 0.01, 1.0]),
        "early_stop": st.booleans(),
        "router_weight": st.sampled_from(["mean", "total", "none"]),
        "randomized_routing": st.booleans(),
        "path_features": st.sampled_from(["none", "path", "leaf"]),
        "cross_path": st.booleans(),
        "arity": st.sampled_from([2, 2, 3, 16]),
        "seed": st.integers(0, 3),
    }
)
RULES = st.fixed_dictionaries(
    {
        "loss": st.sampled_from(["squared", "logistic", "absolute"]),
        "method": st.sampled_from(["adagrad", "sgd"]),
        "step": st.sampled_from([0.1, 0.5]),
        "router_step": st.sampled_from([0.5, 1.0]),
        "initial": st.sampled_from([0.01, 1.0]),
        "tolerance": st.sampled_from([0.0, 0.3]),
        "router_tolerance": st.sampled_from([0.0, 0.4]),
    }
)


def reference(options, rule, dense):
    rules = {
        name: Rule(
            rule["loss"],
            rule["method"],
            rule[prefix + "step"],
            rule["initial"],
            lanes=16 if dense else 1,
            tolerance=rule[prefix + "tolerance"],
        )
        for name, prefix in (("score_rule", ""), ("router_rule", "router_"))
    }
    return RecallTree(**options, **rules, trace=True)


def core(options, rule, dense):
    own = {**options, "random_state": options["seed"]}
    del own["seed"]
    own["max_candidates"] = own["max_candidates"] or 0
    own["max_depth"] = -1 if own["max_depth"] is None else own["max_depth"]
    tree = _core.RecallTree(dense=dense, n_columns=COLUMNS, normalize=False, **own, **rule)
    tree.record()
    return tree


def matrix(stream):
    dense = np.zeros((len(stream), COLUMNS), dtype=np.float32)
    for i, example in enumerate(stream):
        for column, value in example.x:
            dense[i, column] = value
    return dense


def as_rows(dense, is_dense):
    if is_dense:
        return _core.Rows.dense(dense)
    X = sp.csr_matrix(dense)
    return _core.Rows.csr(X.indptr, X.indices, X.data, COLUMNS)


def learn(tree, stream, dense, *, predict_first=False, n_labels=10):
    labels = np.array([example.y for example in stream], dtype=np.int32)
    weight = np.array([example.weight for example in stream], dtype=np.float32)
    rows = as_rows(matrix(stream), dense)
    tree.learn(
        rows,
        labels,
        n_labels=n_labels,
        row_weight=weight,
        passes=1,
        shuffle=None,
        predict_first=predict_first,
        progress=None,
    )


def reference_row(values, dense):
    return [(j, float(v)) for j, v in enumerate(values) if dense or v != 0]


def follow(options, rule, stream, dense):
    """Both trees after the stream."""
    model, tree = reference(options, rule, dense), core(options, rule, dense)
    for values, (_, y, weight) in zip(matrix(stream), stream, strict=True):
        model.learn(reference_row(values, dense), y, weight)
    learn(tree, stream, dense)
    return model, tree


@_few
@given(OPTIONS, RULES, streams((*WEIGHTS, 0.0, 0.3), longest=60), st.booleans())
def test_same_decisions(options, rule, stream, dense):
    stream[0] = stream[0]._replace(weight=1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        model, tree = follow(
            options, rule, [e._replace(weight=np.float32(e.weight).item()) for e in stream], dense
        )
    assert [Event(*event) for event in tree.events()] == model.trace.events
    figures = tree.figures()
    assert figures["examples"].tolist() == [n.hist.total for n in model.nodes]
    assert figures["recall_bound"].tolist() == [model.recall_bound(n) for n in model.nodes]
    np.testing.assert_allclose(figures["entropy"], [n.hist.entropy() for n in model.nodes], atol=1e-12)
    bounds, labels, counts = tree.counts()
    for n, a, b in zip(model.nodes, bounds[:-1], bounds[1:], strict=True):
        assert dict(zip(labels[a:b].tolist(), counts[a:b].tolist(), strict=True)) == n.hist.counts


@_few
@given(OPTIONS, RULES, streams(WEIGHTS, longest=60), st.booleans())
def test_same_answers(options, rule, stream, dense):
    with np.errstate(over="ignore", invalid="ignore"):
        model, tree = follow(options, rule, stream, dense)
    seen = matrix(stream)[:20]
    rows = as_rows(seen, dense)
    best = tree.top(rows, k=1, n_threads=1)[0][:, 0]
    for i, values in enumerate(seen):
        told = model.explain(reference_row(values, dense))
        nodes, children, margins, node, stopped, labels, scores = tree.explain(rows, row=i)
        assert [(step.node, step.child) for step in told.steps] == list(zip(nodes, children, strict=True))
        np.testing.assert_allclose(
            margins, [step.margins for step in told.steps] or margins, rtol=1e-5, atol=1e-6
        )
        assert (node, stopped) == (told.node, told.stopped)
        if np.isfinite(scores).all():
            assert labels.tolist() == [label for label, _ in told.ranking]
            np.testing.assert_allclose(scores, [score for _, score in told.ranking], rtol=1e-5, atol=1e-6)
            assert best[i] == told.label


@_few
@given(OPTIONS, RULES, streams(WEIGHTS, longest=60), st.integers(0, 60), st.booleans())
def test_learning_goes_on_from_its_arrays(options, rule, stream, cut, dense):
    whole, first, rest = (core(options, rule, dense) for _ in range(3))
    learn(whole, stream, dense, predict_first=True)
    cut = min(cut, len(stream))
    learn(first, stream[:cut], dense, predict_first=True)
    rest.restore(first.state(), n_labels=10)
    learn(rest, stream[cut:], dense, predict_first=True)
    assert whole.progressive() == rest.progressive()
    a, b = whole.state(), rest.state()
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@_few
@given(OPTIONS, streams((1.0,), longest=60), st.booleans())
def test_weight_two_counts_twice(options, stream, dense):
    """With twice lambda and half the steps all decisions are the same and every statistic doubles."""
    trees = []
    for factor in (1.0, 2.0):
        rule = {"loss": "logistic", "method": "sgd", "initial": 1.0}
        rule |= {"step": 0.5 / factor, "router_step": 0.5 / factor, "tolerance": 0.1, "router_tolerance": 0.1}
        tree = core({**options, "router_weight": "none", "bound": 0.125 * factor}, rule, dense)
        learn(tree, [Example(x, y, factor) for x, y, _ in stream], dense)
        trees.append(tree)
    once, twice = trees
    assert once.events() == twice.events()
    a, b = once.figures(), twice.figures()
    assert (2 * a["examples"]).tolist() == b["examples"].tolist()
    assert a["recall_bound"].tolist() == b["recall_bound"].tolist()
    np.testing.assert_allclose(a["entropy"], b["entropy"], atol=1e-12)


@_few
@given(OPTIONS, streams((*WEIGHTS, 0.3, 1 / 3), longest=60))
def test_bound_and_entropy(options, stream):
    """The Bernstein bound is never above the empirical recall; entropy kept is entropy recomputed."""
    rule = {"loss": "logistic", "method": "adagrad", "initial": 0.01}
    rule |= {"step": 0.5, "router_step": 0.5, "tolerance": 0.0, "router_tolerance": 0.0}
    tree = core(options, rule, False)
    learn(tree, stream, False)
    figures = tree.figures()
    seen = figures["examples"] > 0
    assert (figures["recall_bound"][seen] <= figures["recall"][seen]).all()
    assert (figures["recall"][seen] <= 1).all()
    assert (figures["recall_bound"][~seen] == -np.inf).all()
    bounds, _, counts = tree.counts()
    for node, (a, b) in enumerate(itertools.pairwise(bounds)):
        share = counts[a:b] / counts[a:b].sum() if b > a else counts[a:b]
        assert figures["entropy"][node] == pytest.approx(-(share * np.log(share)).sum(), abs=1e-9)


@_few
@given(OPTIONS, RULES, streams(WEIGHTS, longest=60), st.booleans(), st.booleans())
def test_two_threads_learn_the_same(options, rule, stream, dense, predict_first):
    one, two = core(options, rule, dense), core(options, rule, dense)
    two.set_threads(2)
    for tree in (one, two):
        learn(tree, stream, dense, predict_first=predict_first)
    assert one.events() == two.events()
    a, b = one.state(), two.state()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_arranging_labels_changes_no_answer():
    """More rows than the first arrangement waits for; the reference knows no arrangement."""
    options = {
        "max_candidates": 3,
        "coverage": 0.9,
        "max_depth": 3,
        "bound": 0.01,
        "early_stop": True,
        "router_weight": "total",
    }
    options |= {
        "randomized_routing": False,
        "path_features": "leaf",
        "cross_path": True,
        "arity": 3,
        "seed": 0,
    }
    rule = {"loss": "logistic", "method": "adagrad", "initial": 0.01}
    rule |= {"step": 0.5, "router_step": 0.5, "tolerance": 0.2, "router_tolerance": 0.2}
    rng = np.random.default_rng(0)
    stream = []
    for _ in range(1500):
        y = int(rng.integers(40))
        x = [(j, float(rng.normal() + (y >> j & 1))) for j in range(6) if rng.random() < 0.7]
        stream.append(Example(x, y, 1.0))
    model, tree = reference(options, rule, False), core(options, rule, False)
    values = matrix(stream)
    for row, example in zip(values, stream, strict=True):
        model.learn(reference_row(row, False), example.y)
    learn(tree, stream, False, n_labels=40)
    assert [Event(*event) for event in tree.events()] == model.trace.events
    assert tree.state()["places"].tolist() != list(range(40))
    half = core(options, rule, False)
    learn(half, stream[:1100], False, n_labels=40)
    rest = core(options, rule, False)
    rest.restore(half.state(), n_labels=40)
    learn(rest, stream[1100:], False, n_labels=40)
    a, b = tree.state(), rest.state()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    for i, row in enumerate(values[:100]):
        told = model.explain(reference_row(row, False))
        labels, scores = tree.explain(as_rows(values, False), row=i)[5:]
        assert labels.tolist() == [label for label, _ in told.ranking]
        assert scores.tolist() == pytest.approx([score for _, score in told.ranking], rel=1e-5, abs=1e-6)


@_few
@given(streams(WEIGHTS, longest=60), st.sampled_from([2, 3]))
def test_inspection(stream, arity):
    """Balance, purity and J of two children as the reference has them; drawings are made."""
    X, y = matrix(stream), np.array([example.y for example in stream])
    weight = [example.weight for example in stream]
    options = {"max_candidates": 2, "arity": arity, "normalize": False, "tolerance": 0.0}
    options |= {"router_tolerance": 0.0, "early_stop": True}
    model = RecallTreeClassifier(**options, random_state=0).partial_fit(X, y, sample_weight=weight)
    code = {label: i for i, label in enumerate(model.classes_.tolist())}
    rule = Rule(lanes=16)
    tree = RecallTree(
        max_candidates=2,
        arity=arity,
        router_weight="total",
        path_features="none",
        router_rule=rule,
        score_rule=rule,
    )
    for values, label, w in zip(X, y.tolist(), weight, strict=True):
        tree.learn(reference_row(values, True), code[label], w)
    table = inspect.nodes(model)
    assert table["examples"].tolist() == [n.hist.total for n in tree.nodes]
    assert table["depth"].tolist() == [n.depth for n in tree.nodes]
    assert ("objective" in table) == (arity == 2)
    for n in tree.nodes if arity == 2 else []:
        quality = tree.quality(n.number)
        figures = [table[name][n.number] for name in ("balance", "purity", "objective")]
        if quality is None:
            assert np.isnan(figures).all()
        else:
            assert figures == pytest.approx(list(quality), abs=1e-12)
            assert 0 <= figures[2] <= 1 + 1e-12
            assert figures[1] <= lemma_1_bound(quality) + 1e-12
    assert inspect.to_svg(model).startswith("<svg")
    assert inspect.tree(model)["examples"] == sum(weight)


def test_several_labels_a_row_are_refused():
    with pytest.raises(ValueError, match="one label a row"):
        RecallTreeClassifier().fit(np.eye(2), [[0, 1], [1]])


@pytest.mark.parametrize("coverage", [0, 1.5, float("nan")])
def test_a_coverage_that_is_no_share_is_refused(coverage):
    with pytest.raises(ValueError, match="coverage must be a number above 0 and at most 1, not"):
        RecallTreeClassifier(coverage=coverage).fit(np.eye(2), [0, 1])
