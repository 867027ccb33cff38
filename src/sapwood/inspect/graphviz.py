"""The tree as text in Graphviz's language."""

from __future__ import annotations

from collections.abc import Sequence

from sapwood.inspect.drawing import draw, shades
from sapwood.inspect.table import HasNodes


def to_graphviz(
    model: HasNodes,
    *,
    max_depth: int = 5,
    color: str | None = None,
    captions: Sequence[Sequence[str]] | None = None,
) -> str:
    """Write the tree in Graphviz's language, for `dot` and whatever else reads it.

    Parameters
    ----------
    model : estimator
        A fitted tree.
    max_depth : int, default=5
        How deep to draw; below, the number of nodes left out is told.
    color : str, optional
        The figure that colours the nodes, one of `nodes(model)`: by default the entropy, if the method keeps it.
    captions : sequence of sequence of str, optional
        For each node of the model the lines to write on it, in the place of number, heaviest label and examples.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import LabelTreeClassifier, inspect
    >>> X = np.eye(4, dtype=np.float32)
    >>> model = LabelTreeClassifier(arity=2, max_leaf=2, random_state=0).fit(X, list("abcd"))
    >>> print(inspect.to_graphviz(model).splitlines()[0])
    digraph tree {
    """
    drawing = draw(model, max_depth, captions)
    shade = shades(drawing, color)
    lines = ["digraph tree {", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    for node in drawing.order:
        # 0.58 is blue, as in the SVG drawing; the saturation tells the figure.
        fill = f"0.580 {0.6 * shade[node]:.3f} 1.000"
        label, tooltip = (_escape(text) for text in (drawing.caption(node), drawing.figures(node)))
        lines.append(f'  {node} [label="{label}", tooltip="{tooltip}", fillcolor="{fill}"];')
        lines += [f"  {node} -> {child};" for child in drawing.children[node]]
        if node in drawing.hidden:
            lines.append(f'  hidden{node} [label="{drawing.hidden[node]} more", shape=plaintext, style=""];')
            lines.append(f"  {node} -> hidden{node} [style=dotted, arrowhead=none];")
    return "\n".join([*lines, "}", ""])


def _escape(lines: list[str]) -> str:
    return r"\n".join(line.replace("\\", r"\\").replace('"', r"\"") for line in lines)
