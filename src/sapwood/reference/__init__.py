"""The papers' algorithms in plain Python, line by line: the specification that the core is held to.

Slow on purpose. Only tests import it. `docs/online_trees.md` and `docs/budgeted_trees.md` state the decisions these
files take where a paper is silent or wrong.
"""
