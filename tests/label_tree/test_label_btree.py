"""The label B-tree: its shape under any sequence of calls, its reference, and what a stream asks of it."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import sapwood
from sapwood import LabelBTreeClassifier, inspect
from sapwood.reference.label_btree import LabelBTree

N_FEATURES = 40


def stream(n_rows, n_labels, seed=0):
    """Sparse rows: two features that tell the label, one its neighbours share, two of noise."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, n_labels, n_rows)
    X = sp.lil_matrix((n_rows, N_FEATURES), dtype=np.float32)
    for row, code in enumerate(codes):
        for feature in (code * 7 % 31, code * 11 % 37, 30 + code // 4 % 10):
            X[row, feature] = random.uniform(0.5, 1.5)
        for feature in random.integers(0, N_FEATURES, 2):
            X[row, feature] += random.uniform(0, 0.3)
    return X.tocsr(), codes


def check_shape(model):
    """One depth, every node half full at least, each label in one lane, links that fit both ways."""
    t = model._tensors()
    bounds, children, is_leaf = t["children_indptr"], t["children"], t["is_leaf"].astype(bool)
    parent = model._model.core.shape()["parent"]
    root = int(t["figures"][0])
    assert np.flatnonzero(parent < 0).tolist() == [root]
    labels, leaf_depths = [], set()
    for node, (start, stop) in enumerate(pairwise(bounds.tolist())):
        most = model.max_leaf if is_leaf[node] else model.arity
        fewest = (0 if is_leaf[node] else 2) if node == root else most / 2
        assert fewest <= stop - start <= most
        if is_leaf[node]:
            labels.extend(children[start:stop].tolist())
            leaf_depths.add(depth_of(node, parent))
        else:
            assert (parent[children[start:stop]] == node).all()
    assert len(leaf_depths) == 1
    assert len(labels) == len(set(labels)) == len(model.labels_)
    assert sorted(model.classes_[labels].tolist()) == sorted(model.labels_.tolist())
    assert model.depth_ == leaf_depths.pop()
    if labels:
        assert model.depth_ <= depth_bound(len(labels), model.arity, model.max_leaf)


def depth_of(node, parent):
    """Nodes from the root to this one."""
    return 1 if parent[node] < 0 else 1 + depth_of(parent[node], parent)


def depth_bound(n_labels, arity, max_leaf):
    """A root with two children at least, every other node half full."""
    if n_labels <= max_leaf:
        return 2  # a tree that has shrunk may keep two leaves of half max_leaf
    return 2 + math.floor(math.log(n_labels / max_leaf, arity / 2) + 1e-9)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["learn", "remove"]), st.integers(1, 40)), min_size=1, max_size=20),
    st.sampled_from([(4, 4), (4, 8), (8, 4)]),
    st.booleans(),
    st.integers(0, 100),
)
def test_any_sequence_of_calls_leaves_a_b_tree(calls, sizes, several, seed):
    X, codes = stream(200, 60, seed)
    lists = [[int(code) + 100, int(code) // 2 + 100] for code in codes]
    model = LabelBTreeClassifier(arity=sizes[0], max_leaf=sizes[1], random_state=seed)
    model.partial_fit(X[:5], lists[:5] if several else codes[:5])
    at = 5
    for call, n in calls:
        if call == "learn":
            part = slice(at % 200, at % 200 + n)
            model.partial_fit(X[part], lists[part] if several else codes[part])
            at += n
        else:
            model.remove_labels(model.labels_[:n])
            if len(model.labels_) == 0:
                model.partial_fit(X[:1], lists[:1] if several else codes[:1])
        check_shape(model)


def grown(model, X, labels, removed=()):
    """The reference after the same rows and removals as the model."""
    reference = LabelBTree(
        arity=model.arity,
        max_leaf=model.max_leaf,
        step=model.step,
        decay=model.decay,
        second_look=model.second_look,
        seed=model._seed(),
    )
    for row, own in zip(X, labels, strict=True):
        values = row.data / np.float32(np.linalg.norm(row.data))
        reference.learn(
            dict(zip(row.indices.tolist(), values.tolist(), strict=True)),
            [model._code_of[label] for label in own],  # codes in the core are by first occurrence
        )
    for label in removed:
        reference.remove(model._code_of[label])
    return reference


@pytest.mark.parametrize(
    ("arity", "max_leaf", "n_labels", "decay", "second_look", "several"),
    [
        (4, 6, 50, 0.0, 0, False),
        (4, 8, 60, 0.01, 30, False),
        (8, 20, 90, 0.0, 100, False),
        (4, 40, 90, 0.0, 1000, False),
        (4, 6, 50, 0.0, 100, True),
        (8, 20, 90, 0.01, 0, True),
    ],
)
@pytest.mark.parametrize("n_removed", [0, 25])
def test_reference_agrees(arity, max_leaf, n_labels, decay, second_look, several, n_removed):
    X, codes = stream(400, n_labels)
    labels = [[int(code), 100 + int(code) // 3] if several else [int(code)] for code in codes]
    model = LabelBTreeClassifier(
        arity=arity,
        max_leaf=max_leaf,
        decay=decay,
        second_look=second_look,
        random_state=3,
        beam=1000,
        min_beam_share=0,
    ).partial_fit(X, labels if several else codes)
    removed = model.labels_[:n_removed]
    if n_removed:
        model.remove_labels(removed)
    reference = grown(model, X, labels, removed)
    t = model._tensors()
    assert int(t["figures"][0]) == reference.root
    of_node = [t["children"][a:b].tolist() for a, b in pairwise(t["children_indptr"].tolist())]
    assert of_node == [node.children for node in reference.nodes]
    assert t["waiting_learned"].tolist() == [row.learned for row in reference.waiting]
    assert t["waiting_features"].tolist() == [f for row in reference.waiting for f in row.row]
    assert t["n_rows"].tolist() == [node.n_rows for node in reference.nodes]
    assert t["random_state"][0] == reference.random.state
    assert model.label_counts_.tolist() == [
        reference.counts[model._code_of[label]] for label in model.labels_
    ]
    labels, scores = model.predict_topk(X[:20], k=5)
    for row, best, given_scores in zip(X[:20], labels, scores, strict=True):
        values = row.data / np.float32(np.linalg.norm(row.data))
        known = dict(zip(row.indices.tolist(), values.tolist(), strict=True))
        logs = [reference.log_probability(known, model._code_of[label]) for label in best]
        np.testing.assert_allclose(given_scores, np.exp(logs), atol=1e-2)


def test_chunks_and_removals_and_files(tmp_path):
    X, codes = stream(300, 80)
    whole = LabelBTreeClassifier(arity=4, max_leaf=6, max_memory=60_000, second_look=40, random_state=0)
    parts = LabelBTreeClassifier(arity=4, max_leaf=6, max_memory=60_000, second_look=40, random_state=0)
    whole.partial_fit(X[:200], codes[:200]).remove_labels(np.unique(codes[:200])[:30])
    for start in range(0, 200, 7):
        parts.partial_fit(X[start : min(start + 7, 200)], codes[start : min(start + 7, 200)])
    parts.remove_labels(np.unique(codes[:200])[:30])
    parts.save(tmp_path / "half.model")
    parts = sapwood.load(tmp_path / "half.model")
    for model in (whole, parts):
        model.partial_fit(X[200:], codes[200:])
        check_shape(model)
    for name, tensor in whole._tensors().items():
        np.testing.assert_array_equal(parts._tensors()[name], tensor, err_msg=name)


def test_memory_is_kept_and_told():
    X, codes = stream(1500, 80)
    free = LabelBTreeClassifier(arity=4, max_leaf=16, random_state=0).partial_fit(X, codes)
    assert free.dropped_lines_ == 0
    tight = LabelBTreeClassifier(arity=4, max_leaf=16, max_memory=int(free.memory_ * 0.7), random_state=0)
    for start in range(0, 1500, 250):
        tight.partial_fit(X[start : start + 250], codes[start : start + 250])
    assert tight.dropped_lines_ > 0
    assert tight.memory_ < 0.9 * free.memory_
    assert tight.score(X, codes) > 0.6 * free.score(X, codes)


def test_removed_labels_are_not_named_and_come_back():
    X, codes = stream(600, 50)
    model = LabelBTreeClassifier(arity=4, max_leaf=8, random_state=0).partial_fit(X, codes)
    gone = model.labels_[:20]
    model.remove_labels(gone)
    assert not set(model.predict(X)) & set(gone)
    assert not set(model.labels_) & set(gone)
    with pytest.raises(ValueError, match="does not know"):
        model.remove_labels(gone[:1])
    for _ in range(3):
        model.partial_fit(X, codes)
    assert set(gone) <= set(model.labels_)
    assert model.score(X, codes) > 0.8


def test_nothing_is_left():
    X, codes = stream(60, 12)
    model = LabelBTreeClassifier(arity=4, max_leaf=4, random_state=0).partial_fit(X, codes)
    model.remove_labels(model.labels_)
    assert model.depth_ == 1
    with pytest.raises(NotFittedError, match="knows no label"):
        model.predict(X)


def test_decay_follows_a_stream_that_turns():
    X, truth = stream(4000, 12)
    random = np.random.default_rng(1)
    noisy = np.where(random.random(4000) < 0.4, random.integers(0, 12, 4000), truth)
    turned = (truth[3500:] + 1) % 12
    scores = []
    for decay in (0.0, 0.02):
        model = LabelBTreeClassifier(random_state=0, decay=decay, max_leaf=16).partial_fit(
            X[:3500], noisy[:3500]
        )
        model.partial_fit(X[3500:3600], turned[:100])
        scores.append(model.score(X[3600:], turned[100:]))
    assert scores[1] > scores[0] + 0.02


def test_depth_grows_with_the_logarithm():
    n = 20_000
    X = sp.csr_matrix((np.ones(n, np.float32), np.arange(n), np.arange(n + 1)), shape=(n, n))
    model = LabelBTreeClassifier(arity=16, max_leaf=16, random_state=0).partial_fit(X, np.arange(n))
    check_shape(model)
    assert model.depth_ <= math.log(n, 8) + 1


def test_explanation_and_figures():
    X, codes = stream(500, 60)
    model = LabelBTreeClassifier(arity=4, max_leaf=8, random_state=0).partial_fit(X, codes)
    told = model.explain(X[0])
    assert told.label == model.predict(X[0])[0]
    (steps,) = told.paths
    assert len(steps) == model.depth_
    share = [0.5] * (model.depth_ - 1) + [1.0]
    logs = [s * math.log(max(step.probability, 1e-30)) for s, step in zip(share, steps, strict=True)]
    assert told.score == pytest.approx(math.exp(sum(logs)), rel=1e-3)
    figures = inspect.nodes(model)
    assert figures["depth"].max() == model.depth_ - 1
    assert figures["n_labels"][figures["is_leaf"]].sum() == len(model.labels_)
    assert inspect.tree(model)


def test_a_second_look_is_learning_again():
    X, codes = stream(400, 60)
    twice = LabelBTreeClassifier(max_leaf=64, second_look=400, random_state=0).partial_fit(X, codes)
    once = LabelBTreeClassifier(max_leaf=64, second_look=0, random_state=0).partial_fit(X, codes)
    waiting = twice._tensors()
    assert 0 < len(waiting["waiting_learned"]) < 400
    assert len(once._tensors()["waiting_learned"]) == 0
    twice.partial_fit(
        X, codes
    )  # 400 rows after it each row that waits is learned again, after the row at hand
    for i in range(400):
        n = 2 if i + 1 in waiting["waiting_learned"] else 1
        once.partial_fit(sp.vstack([X[i]] * n).tocsr(), [codes[i]] * n)
    np.testing.assert_array_equal(once.predict(X), twice.predict(X))


def test_many_entries_do_not_wait():
    X = np.random.default_rng(0).uniform(0.1, 1, (600, 4000)).astype(np.float32)
    codes = np.arange(600) % 200
    model = LabelBTreeClassifier(random_state=0).partial_fit(X, codes)
    assert 200 * 4000 < len(model._tensors()["waiting_features"]) <= 2**20


def test_threads_agree():
    X, codes = stream(1000, 60)
    model = LabelBTreeClassifier(arity=4, max_leaf=8, random_state=0).partial_fit(X, codes)
    labels, scores = model.predict_topk(X, k=7)
    for n_jobs in (2, 5):
        again = model.set_params(n_jobs=n_jobs).predict_topk(X, k=7)
        np.testing.assert_array_equal(again[0], labels)
        np.testing.assert_array_equal(again[1], scores)


@pytest.mark.parametrize("name", ["arity", "max_leaf"])
@pytest.mark.parametrize("value", [2, 7, 258, 8.5])
def test_sizes_are_even(name, value):
    with pytest.raises(ValueError, match=name):
        LabelBTreeClassifier(**{name: value}).fit(np.eye(2), [0, 1])
