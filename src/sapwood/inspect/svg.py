"""The tree as a drawing for a browser, made without any program for drawing graphs."""

from __future__ import annotations

from xml.sax.saxutils import escape

from sapwood.inspect.drawing import Drawing, draw, shades
from sapwood.inspect.table import HasNodes

WIDTH, HEIGHT = 92, 46
"""Of a node, in pixels."""
GAP, LEVEL = 8, 84
"""Between two neighbours; from one depth to the next."""
LINE = 13
"""From one line of text to the next."""


def to_svg(model: HasNodes, *, max_depth: int = 5, color: str | None = None) -> str:
    """Draw the tree as SVG. On each node stand its number, heaviest label and examples; a tooltip tells the rest.

    Parameters
    ----------
    model : estimator
        A fitted tree.
    max_depth : int, default=5
        How deep to draw; below, the number of nodes left out is told.
    color : str, optional
        The figure that colours the nodes, one of `nodes(model)`: by default the entropy, if the method keeps it.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood import LabelTreeClassifier, inspect
    >>> X = np.eye(4, dtype=np.float32)
    >>> model = LabelTreeClassifier(arity=2, max_leaf=2, random_state=0).fit(X, list("abcd"))
    >>> inspect.to_svg(model).startswith("<svg")
    True
    """
    drawing = draw(model, max_depth)
    shade = shades(drawing, color)
    center = _centers(drawing)
    depth = drawing.table["depth"]
    size = {
        "width": max(center.values()) + WIDTH / 2 + GAP,
        "height": depth[drawing.order].max() * LEVEL + HEIGHT + LINE + 2 * GAP,
    }
    edges, boxes = [], []
    for node in drawing.order:
        x, top = center[node], depth[node] * LEVEL + GAP
        edges += [_edge(x, top + HEIGHT, center[child], top + LEVEL) for child in drawing.children[node]]
        boxes.append(_box(drawing, node, x, top, shade[node]))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size["width"]:g} {size["height"]:g}" '
            f'width="{size["width"]:g}" height="{size["height"]:g}" font-family="sans-serif" font-size="11" '
            'text-anchor="middle">',
            *edges,
            *boxes,
            "</svg>",
            "",
        ]
    )


def _centers(drawing: Drawing) -> dict[int, float]:
    """Where each node stands: those without children side by side, the others midway above their children."""
    center: dict[int, float] = {}
    bare = [node for node in drawing.order if not drawing.children[node]]
    for place, node in enumerate(bare):
        center[node] = place * (WIDTH + GAP) + WIDTH / 2 + GAP
    for node in reversed(drawing.order):  # children before their parents
        children = drawing.children[node]
        if children:
            center[node] = (center[children[0]] + center[children[-1]]) / 2
    return center


def _edge(x: float, y: float, child_x: float, child_y: float) -> str:
    middle = (y + child_y) / 2
    curve = f"M{x:g},{y:g} C{x:g},{middle:g} {child_x:g},{middle:g} {child_x:g},{child_y:g}"
    return f'<path d="{curve}" fill="none" stroke="#999"/>'


def _box(drawing: Drawing, node: int, x: float, top: float, shade: float) -> str:
    fill = "#" + "".join(f"{round(255 - shade * (255 - deep)):02x}" for deep in (0x66, 0xB3, 0xFF))
    text = "".join(
        f'<text x="{x:g}" y="{top + 14 + i * LINE:g}">{escape(line)}</text>'
        for i, line in enumerate(drawing.caption(node))
    )
    if node in drawing.hidden:
        below = f"{drawing.hidden[node]} more"
        text += f'<text x="{x:g}" y="{top + HEIGHT + LINE:g}" fill="#999">{below}</text>'
    return (
        f"<g><title>{escape(chr(10).join(drawing.figures(node)))}</title>"
        f'<rect x="{x - WIDTH / 2:g}" y="{top:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{fill}" '
        f'stroke="#555"/>{text}</g>'
    )
