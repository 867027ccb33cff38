"""The entropy of the tree against its depth, with matplotlib."""

from __future__ import annotations

from typing import Any

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
        try:
            from matplotlib import pyplot as plt
        except ImportError as error:
            raise ImportError("plot_entropy draws with matplotlib: pip install 'sapwood[plot]'") from error
        _, ax = plt.subplots()
    ax.plot(depth, entropy, **{"marker": "o", **line})
    ax.set_xlabel("depth")
    ax.set_ylabel("entropy of the tree cut there, nats")
    ax.set_ylim(bottom=0)
    ax.locator_params(axis="x", integer=True)
    return ax
