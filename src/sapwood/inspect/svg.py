"""The tree as a drawing for a browser, made without any program for drawing graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from sapwood.inspect.drawing import Drawing, draw, shades
from sapwood.inspect.table import HasNodes

WIDTH, HEIGHT = 92, 46
"""Of a node, in pixels, if its lines are short and few."""
GAP, FALL = 8, 38
"""Between two neighbours; from the bottom of a node to the top of its children."""
LINE, LETTER = 13, 6.2
"""From one line of text to the next; the width of a letter, by and large."""


@dataclass(frozen=True)
class _Size:
    """Of all nodes of a drawing, in pixels."""

    width: float
    height: float

    @property
    def level(self) -> float:
        """From one depth to the next."""
        return self.height + FALL


def _size(drawing: Drawing) -> _Size:
    lines = [drawing.caption(node) for node in drawing.order]
    longest = max(len(line) for caption in lines for line in caption)
    most = max(len(caption) for caption in lines)
    return _Size(max(WIDTH, round(longest * LETTER) + 12), max(HEIGHT, most * LINE + 9))


def to_svg(
    model: HasNodes,
    *,
    max_depth: int = 5,
    color: str | None = None,
    captions: Sequence[Sequence[str]] | None = None,
) -> str:
    """Draw the tree as SVG. On each node stand its number, heaviest label and examples; a tooltip tells the rest.

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
    >>> inspect.to_svg(model).startswith("<svg")
    True
    """
    drawing = draw(model, max_depth, captions)
    shade = shades(drawing, color)
    size = _size(drawing)
    center = {
        node: slot * (size.width + GAP) + size.width / 2 + GAP for node, slot in drawing.slots().items()
    }
    depth = drawing.table["depth"]
    width = max(center.values()) + size.width / 2 + GAP
    height = depth[drawing.order].max() * size.level + size.height + LINE + 2 * GAP
    edges, boxes = [], []
    for node in drawing.order:
        x, top = center[node], depth[node] * size.level + GAP
        for child in drawing.children[node]:
            edges.append(_edge(x, top + size.height, center[child], top + size.level))
        boxes.append(_box(drawing, node, size, x, top, shade[node]))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" font-family="sans-serif" font-size="11" '
            'text-anchor="middle">',
            *edges,
            *boxes,
            "</svg>",
            "",
        ]
    )


def _edge(x: float, y: float, child_x: float, child_y: float) -> str:
    middle = (y + child_y) / 2
    curve = f"M{x:g},{y:g} C{x:g},{middle:g} {child_x:g},{middle:g} {child_x:g},{child_y:g}"
    return f'<path d="{curve}" fill="none" stroke="#999"/>'


def _box(drawing: Drawing, node: int, size: _Size, x: float, top: float, shade: float) -> str:
    fill = "#" + "".join(f"{round(255 - shade * (255 - deep)):02x}" for deep in (0x66, 0xB3, 0xFF))
    text = "".join(
        f'<text x="{x:g}" y="{top + 14 + i * LINE:g}">{escape(line)}</text>'
        for i, line in enumerate(drawing.caption(node))
    )
    if node in drawing.hidden:
        below = f"{drawing.hidden[node]} more"
        text += f'<text x="{x:g}" y="{top + size.height + LINE:g}" fill="#999">{below}</text>'
    return (
        f"<g><title>{escape(chr(10).join(drawing.figures(node)))}</title>"
        f'<rect x="{x - size.width / 2:g}" y="{top:g}" width="{size.width:g}" height="{size.height:g}" rx="6" '
        f'fill="{fill}" stroke="#555"/>{text}</g>'
    )
