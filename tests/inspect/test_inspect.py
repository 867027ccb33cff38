"""`sapwood.inspect` on trees small enough to be known by heart, and on the reference's trees for the definitions."""

import math
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sapwood import LabelTreeClassifier, OneVsAllClassifier, inspect
from sapwood.reference.lom_tree import LOMTree

LN2 = math.log(2)


class Seven(BaseEstimator):
    """A tree of seven nodes: the root's right child has numbers 1, its left child 4.

    0 -> (4, 1); 1 -> (2, 3); 2 -> (6, 5). Columns may be added, or others put in place of these.
    """

    def __init__(self, **columns):
        self.classes_ = np.array(["ash", "beech", "cedar", '<elm> & "fir"'])
        self.columns = {
            "parent": np.array([-1, 0, 1, 1, 0, 2, 2], dtype=np.int32),
            "children": np.array(
                [[4, 1], [2, 3], [6, 5], [-1, -1], [-1, -1], [-1, -1], [-1, -1]], dtype=np.int32
            ),
            **columns,
        }

    def fit(self):
        """scikit-learn asks for it."""

    def __sklearn_is_fitted__(self):
        return True

    def _nodes(self):
        return self.columns


EXAMPLES = np.array([8.0, 4.0, 2.0, 2.0, 4.0, 2.0, 0.0])
ENTROPY = np.array([2 * LN2, LN2, LN2, 0.0, LN2, 0.0, 0.0])


def test_the_table_is_ready_for_pandas():
    table = inspect.nodes(Seven(examples=EXAMPLES))
    frame = pd.DataFrame(table)
    assert frame.shape == (7, 6)
    assert frame["node"].tolist() == list(range(7))
    assert frame["depth"].tolist() == [0, 1, 2, 2, 1, 3, 3]
    assert frame["place"].tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert frame["is_leaf"].tolist() == [False, False, False, True, True, True, True]


def test_majorities_are_labels():
    majority = np.array([0, 1, 2, 3, -1, 1, 1], dtype=np.int32)
    names = inspect.nodes(Seven(majority=majority))["majority"]
    assert names.tolist() == ["ash", "beech", "cedar", '<elm> & "fir"', None, "beech", "beech"]


def test_the_tree_s_figures_weigh_nodes_by_their_examples():
    nan = float("nan")
    model = Seven(
        examples=EXAMPLES,
        entropy=ENTROPY,
        recall=np.array([0.5, 0.5, 0.5, 1.0, 0.75, 1.0, 1.0]),
        balance=np.array([0.5, 0.75, nan, nan, nan, nan, nan]),
        recycles=np.array([0, 0, 3, 1, 0, 0, 0], dtype=np.int32),
    )
    figures = inspect.tree(model)
    assert figures["nodes"] == 7
    assert figures["leaves"] == 4
    assert figures["depth"] == 3
    assert figures["examples"] == 8
    assert figures["leaf_depth"] == (2 * 2 + 4 * 1 + 2 * 3) / 8
    assert figures["root_entropy"] == pytest.approx(2 * LN2)
    assert figures["entropy"] == pytest.approx(LN2 * 4 / 8)  # the empty leaf has no say
    assert figures["recall"] == pytest.approx((2 * 1.0 + 4 * 0.75 + 2 * 1.0) / 8)
    assert figures["balance"] == pytest.approx((8 * 0.5 + 4 * 0.25) / 12)  # of the smaller side
    assert figures["recycles"] == 4
    assert figures["most_recycles"] == 3


def test_entropy_of_the_tree_cut_at_each_depth():
    depth, entropy = inspect.entropy_by_depth(Seven(examples=EXAMPLES, entropy=ENTROPY))
    assert depth.tolist() == [0, 1, 2, 3]
    assert entropy == pytest.approx([2 * LN2, LN2, (2 * LN2 + 4 * LN2) / 8, 4 * LN2 / 8])


def test_the_last_cut_is_the_papers_tree_entropy():
    tree = LOMTree(max_internal=7)
    for x, y in clustered_stream():
        tree.learn(x, y)
    model = Seven(
        parent=np.array([node.parent for node in tree.nodes], dtype=np.int32),
        children=np.array([[node.left, node.right] for node in tree.nodes], dtype=np.int32),
        examples=np.array([node.l.total for node in tree.nodes]),
        entropy=np.array([node.l.entropy() for node in tree.nodes]),
    )
    _, entropy = inspect.entropy_by_depth(model)
    assert entropy[-1] == pytest.approx(tree.entropy())
    assert inspect.tree(model)["entropy"] == pytest.approx(tree.entropy())
    assert entropy[-1] < entropy[0]


def clustered_stream():
    """Sixteen labels, each with columns of its own and columns that a group shares."""
    rng = np.random.default_rng(0)
    for label in rng.integers(0, 16, 600).tolist():
        yield [(label, 1.0), (16 + label // 4, 1.0)], label


def test_no_entropy_without_label_counts():
    with pytest.raises(TypeError, match="keeps no label counts"):
        inspect.entropy_by_depth(Seven())


def test_no_table_without_a_tree():
    X = np.eye(4, dtype=np.float32)
    with pytest.raises(TypeError, match="OneVsAllClassifier has no tree"):
        inspect.nodes(OneVsAllClassifier().fit(X, list("abcd")))


def test_a_tree_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        inspect.nodes(LabelTreeClassifier())


def test_svg_draws_each_node_above_its_children():
    svg = ElementTree.fromstring(inspect.to_svg(Seven(examples=EXAMPLES, entropy=ENTROPY)))
    space = "{http://www.w3.org/2000/svg}"
    boxes = {}
    for group in svg.iter(f"{space}g"):
        rectangle = group.find(f"{space}rect")
        boxes[int(group.find(f"{space}text").text)] = (float(rectangle.get("x")), float(rectangle.get("y")))
    assert sorted(boxes) == list(range(7))
    assert len(list(svg.iter(f"{space}path"))) == 6
    for node, (left, right) in {0: (4, 1), 1: (2, 3), 2: (6, 5)}.items():
        assert boxes[left][0] < boxes[node][0] < boxes[right][0]
        assert boxes[left][1] == boxes[right][1] > boxes[node][1]
    titles = [group.find(f"{space}title").text for group in svg.iter(f"{space}g")]
    assert any("entropy 0.6931" in title for title in titles)


def test_svg_boxes_of_one_depth_do_not_overlap():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 10), dtype=np.float32), rng.integers(0, 60, 400)
    model = LabelTreeClassifier(arity=3, max_leaf=3, random_state=0).fit(X, y)
    svg = ElementTree.fromstring(inspect.to_svg(model, color="n_labels"))
    rows = {}
    for rectangle in svg.iter("{http://www.w3.org/2000/svg}rect"):
        rows.setdefault(rectangle.get("y"), []).append(float(rectangle.get("x")))
        width = float(rectangle.get("width"))
    assert len(rows) > 2
    assert all((np.diff(sorted(row)) > width).all() for row in rows.values())


def test_drawings_escape_labels():
    model = Seven(majority=np.full(7, 3, dtype=np.int32))
    ElementTree.fromstring(inspect.to_svg(model))
    assert r"<elm> & \"fir\"" in inspect.to_graphviz(model)


def test_drawings_tell_what_they_leave_out():
    model = Seven()
    text = inspect.to_graphviz(model, max_depth=1)
    assert "  0 -> 4;\n  0 -> 1;" in text
    assert "  1 -> 2;" not in text
    assert '[label="4 more"' in text
    assert "4 more" in inspect.to_svg(model, max_depth=1)
    assert "more" not in inspect.to_svg(model, max_depth=3)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"max_depth": -1}, "0 or more"), ({"color": "x"}, "one of")]
)
def test_drawings_refuse_nonsense(arguments, message):
    for draw in (inspect.to_svg, inspect.to_graphviz):
        with pytest.raises(ValueError, match=message):
            draw(Seven(), **arguments)


def test_label_tree_labels_add_up():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 10), dtype=np.float32), rng.integers(0, 60, 400)
    model = LabelTreeClassifier(arity=4, max_leaf=4, n_trees=2, random_state=0).fit(X, y)
    frame = pd.DataFrame(inspect.nodes(model))
    assert (frame["parent"] == -1).sum() == 2
    assert frame.loc[frame["is_leaf"], "n_labels"].sum() == 2 * len(model.classes_)
    inner = frame[~frame["is_leaf"]]
    below = frame.groupby("parent")["n_labels"].sum()
    assert (below[inner["node"]].to_numpy() == inner["n_labels"].to_numpy()).all()


def test_plot_draws_the_curve():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    model = Seven(examples=EXAMPLES, entropy=ENTROPY)
    ax = inspect.plot_entropy(model, label="seven")
    (line,) = ax.get_lines()
    assert np.array_equal(line.get_ydata(), inspect.entropy_by_depth(model)[1])
    assert line.get_label() == "seven"
    assert inspect.plot_entropy(model, ax=ax) is ax
    plt.close(ax.figure)
