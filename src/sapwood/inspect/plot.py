"""The tree, and its entropy against its depth, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sapwood.inspect.drawing import draw, shades
from sapwood.inspect.table import HasNodes, entropy_by_depth


def plot_entropy(model: HasNodes, *, ax: Any = None, **line: Any) -> Any:
    """Plot the entropy of the tree cut off at each depth: how much each level of routers tells about the label.

    Parameters
    ----------
    model : estimator
        A fitted tree that keeps label counts: the Recall Tree, the LOMtree.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    **line
        Passed on to `Axes.plot`: `label`, `color` and so on.

    Returns
    -------
    matplotlib Axes
        It draws nothing on a screen: `ax.figure.savefig("entropy.png")`, or `matplotlib.pyplot.show()`.
    """
    depth, entropy = entropy_by_depth(model)
    if ax is None:
        ax = _new_axes()
    ax.plot(depth, entropy, **{"marker": "o", **line})
    ax.set_xlabel("depth")
    ax.set_ylabel("entropy of the tree cut there, nats")
    ax.set_ylim(bottom=0)
    ax.locator_params(axis="x", integer=True)
    return ax


def plot_tree(
    model: HasNodes,
    *,
    max_depth: int = 5,
    color: str | None = None,
    captions: Sequence[Sequence[str]] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the tree.

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
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, large enough for all nodes.

    Returns
    -------
    matplotlib Axes
        It draws nothing on a screen: `ax.figure.savefig("tree.png")`, or `matplotlib.pyplot.show()`.
    """
    drawing = draw(model, max_depth, captions)
    shade, slot, depth = shades(drawing, color), drawing.slots(), drawing.table["depth"]
    lines = {node: drawing.caption(node) for node in drawing.order}
    if ax is None:
        inches = 0.2 + 0.075 * max(len(line) for caption in lines.values() for line in caption)
        rows = max(len(caption) for caption in lines.values())
        levels = 1 + int(depth[drawing.order].max())
        ax = _new_axes(figsize=((1 + max(slot.values())) * inches, levels * (0.6 + 0.17 * rows)))
    for node in drawing.order:
        for child in drawing.children[node]:
            ax.plot([slot[node], slot[child]], [-depth[node], -depth[child]], color="#999", zorder=1)
        below = [f"({drawing.hidden[node]} more)"] if node in drawing.hidden else []
        red, green, blue = (1 - shade[node] * (1 - deep) for deep in (0.4, 0.7, 1.0))
        box = {"boxstyle": "round", "facecolor": (red, green, blue), "edgecolor": "#555"}
        text = "\n".join([*lines[node], *below]).replace("$", r"\$")
        ax.text(slot[node], -depth[node], text, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    ax.set_xlim(min(slot.values()) - 0.5, max(slot.values()) + 0.5)
    ax.set_ylim(-depth[drawing.order].max() - 0.5, 0.5)
    ax.axis("off")
    return ax


def _new_axes(**figure: Any) -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("this draws with matplotlib: pip install 'sapwood[plot]'") from error
    return plt.subplots(**figure)[1]
