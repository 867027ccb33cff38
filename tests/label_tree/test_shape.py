"""Shapes of trees: presets, clusters, and hierarchies that users give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import sapwood
from sapwood import LabelTreeClassifier
from sapwood.label_tree.forest import NO_TARGET


def one_row_each(labels):
    return np.eye(len(labels), dtype=np.float32), np.array(labels)


def children(model, node):
    a = model.forest_.arrays
    first, last = (a["group_banks"][a["node_groups"][node + i]] for i in (0, 1))
    targets = a["targets"][16 * first : 16 * last]
    return [target for target in targets.tolist() if target != NO_TARGET]


def nested(model, node=0):
    """The tree as nested lists of labels."""
    return [model.classes_[~c] if c < 0 else nested(model, c) for c in children(model, node)]


def leaves(tree):
    return [leaf for node in tree for leaf in (leaves(node) if isinstance(node, list) else [node])]


@pytest.mark.parametrize(
    ("preset", "n_trees", "widest"), [("parabel", 3, 100), ("bonsai", 3, 100), ("homer", 1, 4)]
)
def test_presets(preset, n_trees, widest):
    X, y = one_row_each(range(250))
    model = LabelTreeClassifier(preset=preset, random_state=0).fit(X, y)
    a = model.forest_.arrays
    assert len(a["roots"]) == n_trees
    widths = [len(children(model, node)) for node in range(len(a["node_labels"]))]
    assert max(widths) <= widest
    inner = [len(children(model, node)) for node in range(len(widths)) if children(model, node)[0] >= 0]
    if preset == "parabel":
        assert set(inner) == {2}
    assert (model.predict(X) == y).mean() > 0.8


def test_a_preset_overrules_the_shape_and_nothing_else():
    X, y = one_row_each(range(50))
    a = LabelTreeClassifier(preset="homer", random_state=0).fit(X, y)
    b = LabelTreeClassifier(preset="homer", arity=7, max_leaf=9, n_trees=5, random_state=0).fit(X, y)
    c = LabelTreeClassifier(arity=4, max_leaf=4, n_trees=1, random_state=0).fit(X, y)
    assert nested(a) == nested(b) == nested(c)


@pytest.mark.parametrize(
    "kwargs", [{"arity": 2, "max_leaf": 1}, {"arity": 3, "max_leaf": 5}, {"arity": 64, "max_leaf": 2}]
)
def test_clusters_hold_every_label_once_and_are_balanced(kwargs):
    X, y = one_row_each(range(77))
    model = LabelTreeClassifier(random_state=0, **kwargs).fit(X, y)
    a = model.forest_.arrays
    assert sorted(leaves(nested(model))) == list(range(77))
    for node in range(len(a["node_labels"])):
        below = children(model, node)
        assert len(below) <= (kwargs["arity"] if below[0] >= 0 else kwargs["max_leaf"])
        if below[0] >= 0:
            sizes = a["node_labels"][below]
            assert sizes.max() - sizes.min() <= 1


TREES = {
    "flat": ["ash", "elm", "fir", "oak"],
    "two levels": [["ash", "elm"], ["fir", "oak"]],
    "labels beside branches": ["ash", ["elm", ["fir", "oak"]]],
    "unbalanced": [[[["ash"], "elm"], "fir"], "oak"],
    "empty branches": [[], ["ash", [[]], "elm"], [[]], ["fir", ["oak"]]],
    "tuples and arrays": (("ash", "elm"), np.array(["fir", "oak"])),
    "labels never seen": [["ash", "elm", "yew"], ["fir", "oak"], ["box", "bay"]],
    "array of arrays": np.array([["ash", "elm"], ["fir", "oak"]]),
    "one branch": [[[["ash", "elm", "fir", "oak"]]]],
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_given_tree(tree, tmp_path):
    labels = ["ash", "elm", "fir", "oak"]
    X, y = one_row_each(labels)
    model = LabelTreeClassifier(tree=tree, random_state=0).fit(X, y)
    assert model.predict(X).tolist() == labels
    assert sorted(leaves(nested(model))) == labels
    model.save(tmp_path / "m")
    again = sapwood.load(tmp_path / "m")
    assert again.predict(X).tolist() == labels
    assert again.fit(X, y).predict(X).tolist() == labels
    assert clone(model).fit(X, y).predict(X).tolist() == labels


def test_a_given_tree_is_taken_as_it_is():
    X, y = one_row_each(["ash", "elm", "fir", "oak", "yew"])
    tree = [["oak", "ash"], [["yew", "fir"], "elm"]]
    assert nested(LabelTreeClassifier(tree=tree).fit(X, y)) == tree
    mixed = ["elm", ["oak", "ash"], ["yew", "fir"]]
    assert nested(LabelTreeClassifier(tree=mixed).fit(X, y)) == [["oak", "ash"], ["yew", "fir"], "elm"]
    assert nested(LabelTreeClassifier(tree=["fir", [["oak", ["ash"]]], ["yew", "elm"], []]).fit(X, y)) == [
        ["oak", "ash"],
        ["yew", "elm"],
        "fir",
    ]


@pytest.mark.parametrize("n", [15, 16, 17, 255, 256, 257, 300])
@pytest.mark.parametrize("kind", ["labels", "branches", "both"])
def test_a_wide_node(n, kind):
    X, y = one_row_each(range(2 * n))
    pairs = [[2 * i, 2 * i + 1] for i in range(n)]
    if kind == "labels":
        tree = [list(range(n)), list(range(n, 2 * n))]
    else:
        tree = pairs if kind == "branches" else [*pairs[: n // 2], *range(2 * (n // 2), 2 * n)]
    model = LabelTreeClassifier(tree=tree, beam=50, C=10.0, random_state=0).fit(X, y)
    assert nested(model) == tree
    assert (model.predict(X) == y).all()
    assert len(set(model.predict_topk(X[:1], k=2 * n)[0][0].tolist())) == 2 * n


@pytest.mark.parametrize("depth", [50, 2000])
def test_a_deep_tree(depth):
    labels = list(range(depth + 1))
    tree = [labels[-1]]
    for label in reversed(labels[:-1]):
        tree = [label, tree]
    X = np.ones((depth + 1, 1), dtype=np.float32)
    model = LabelTreeClassifier(tree=tree, passes=1).fit(X, labels)
    assert len(model.forest_.arrays["node_labels"]) == depth
    assert model.predict_topk(X[:1], k=3)[0].shape == (1, 3)
    assert len(model.explain(X[:1]).paths[0]) <= depth


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.float64, bool, str, object])
def test_labels_of_a_tree_of_any_kind(dtype):
    y = np.array([0, 1]).astype(dtype)
    tree = [y[0], [y[1]]]
    model = LabelTreeClassifier(tree=tree).fit(np.eye(2, dtype=np.float32), y)
    assert model.predict(np.eye(2, dtype=np.float32)).tolist() == y.tolist()


CYCLE: list = ["ash"]
CYCLE.append(CYCLE)
SHARED = ["ash", "elm"]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("ash elm", "nested lists"),
        (3, "nested lists"),
        ({"ash": ["elm"]}, "nested lists"),
        ([], "lacks 4 labels"),
        ([["ash", "elm"], ["fir"]], "lacks 1 labels .* 'oak'"),
        ([["ash", "elm"], ["fir", "oak", "ash"]], "'ash' twice"),
        ([["ash", "elm"], ["fir", 3]], "mix"),
        ([[1, 2], [3, 4]], "lacks 4 labels"),
        ([["ash", None], ["fir"]], "label"),
        ([["ash", object()], ["fir"]], "label"),
        (CYCLE, "within itself"),
        ([SHARED, SHARED, "fir", "oak"], "twice"),
    ],
    ids=["text", "number", "dict", "empty", "a label missing", "a label twice", "mixed", "others", "None", "object",
         "cycle", "a branch twice"],
)  # fmt: skip
def test_a_bad_tree(tree, message):
    X, y = one_row_each(["ash", "elm", "fir", "oak"])
    with pytest.raises((ValueError, TypeError), match=message):
        LabelTreeClassifier(tree=tree).fit(X, y)


def test_a_tree_goes_with_no_preset_and_no_other_trees():
    X, y = one_row_each(["ash", "elm"])
    for kwargs in ({"preset": "homer"}, {"n_trees": 2}):
        with pytest.raises(ValueError, match="tree is one given tree"):
            LabelTreeClassifier(tree=["ash", "elm"], **kwargs).fit(X, y)


def test_a_tree_for_labels_in_lists():
    X = np.eye(4, dtype=np.float32)
    y = [["ash", "elm"], ["elm"], [], ["oak", "ash", "ash"]]
    model = LabelTreeClassifier(tree=[["ash", "oak"], ["elm"]], C=100.0).fit(X, y)
    assert [sorted(row.tolist()) for row in model.predict(X)] == [["ash", "elm"], ["elm"], [], ["ash", "oak"]]


trees = st.recursive(st.integers(0, 30), lambda inner: st.lists(inner, max_size=5), max_leaves=30)


@settings(deadline=None, max_examples=60)
@given(tree=st.lists(trees, min_size=1, max_size=5))
def test_any_tree(tree):
    named = leaves(tree)
    unique = sorted(set(named))
    if not unique:
        return
    X, y = one_row_each(unique)
    if len(unique) < len(named):
        with pytest.raises(ValueError, match="twice"):
            LabelTreeClassifier(tree=tree).fit(X, y)
        return
    model = LabelTreeClassifier(tree=tree, passes=2, random_state=0).fit(X, y)
    assert sorted(leaves(nested(model))) == unique
    assert sorted(model.predict_topk(X[:1], k=100)[0][0].tolist()) == unique


PARAMETERS = {
    "arity": [1, 0, -3, 2.5, "2", None, True, 2**40],
    "max_leaf": [0, -1, 1.5, None, 2**31],
    "n_trees": [0, -1, 1.5, None],
    "solver": ["sgd", None, 3],
    "loss": ["hinge", None],
    "C": [0, -1, np.nan, np.inf, "1", 1e39],
    "tol": [0, -1, np.nan, None],
    "passes": [0, -1, 1.5, 2**31],
    "step": [0, -1, np.inf],
    "prune": [-0.1, np.nan, None],
    "weight_bits": [8, 64, None],
    "beam": [0, -1, 1.5, None, 2**31],
    "min_beam_share": [-0.1, 1.1, None, np.nan],
    "preset": ["oak", 1],
    "class_weight": ["heavy", {0: 0}, 3],
    "normalize": ["no", 1, None],
    "n_jobs": [0, 1.5],
    "random_state": ["oak", -1],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in PARAMETERS.items() for value in values]
)
def test_bad_parameters(name, value):
    X, y = one_row_each(range(4))
    with pytest.raises(ValueError, match=name if name != "random_state" else "seed|[Ss]eed|RandomState"):
        LabelTreeClassifier(**{name: value}).fit(X, y)


def test_logistic_loss_needs_adagrad():
    with pytest.raises(ValueError, match="solver='adagrad'"):
        LabelTreeClassifier(loss="logistic").fit(*one_row_each(range(4)))


@pytest.mark.parametrize("name", ["arity", "max_leaf", "beam"])
def test_the_largest_parameters(name):
    X, y = one_row_each(range(40))
    model = LabelTreeClassifier(**{"max_leaf": 2, "n_trees": 2, name: 2**31 - 1}, random_state=0).fit(X, y)
    assert model.predict_topk(X, k=3)[0].shape == (40, 3)


def test_random_states():
    X, y = one_row_each(range(60))
    first = nested(LabelTreeClassifier(max_leaf=4, random_state=1).fit(X, y))
    assert nested(LabelTreeClassifier(max_leaf=4, random_state=np.int64(1)).fit(X, y)) == first
    assert nested(LabelTreeClassifier(max_leaf=4, random_state=2).fit(X, y)) != first
    generator = LabelTreeClassifier(max_leaf=4, random_state=np.random.RandomState(1))
    assert nested(generator.fit(X, y)) == first
    assert nested(generator.fit(X, y)) != first
