"""Classification among thousands to millions of labels, in time that grows with the logarithm of their number."""

import os
from importlib.metadata import version

from sapwood import inspect, io, metrics, model_file
from sapwood._estimator import SapwoodClassifier
from sapwood.budgeted import (
    AnnotationTreeClassifier,
    BudgetedClassifier,
    BudgetedTreeClassifier,
    PowersetTreeClassifier,
)
from sapwood.flat import BinaryRelevanceClassifier, LabelPowersetClassifier, OneVsAllClassifier
from sapwood.label_tree import FastXMLClassifier, LabelBTreeClassifier, LabelTreeClassifier
from sapwood.online import (
    FilterTreeClassifier,
    LOMTreeClassifier,
    RandomTreeClassifier,
    RecallTreeClassifier,
)

__all__ = [
    "AnnotationTreeClassifier",
    "BinaryRelevanceClassifier",
    "BudgetedClassifier",
    "BudgetedTreeClassifier",
    "FastXMLClassifier",
    "FilterTreeClassifier",
    "LOMTreeClassifier",
    "LabelBTreeClassifier",
    "LabelPowersetClassifier",
    "LabelTreeClassifier",
    "OneVsAllClassifier",
    "PowersetTreeClassifier",
    "RandomTreeClassifier",
    "RecallTreeClassifier",
    "inspect",
    "io",
    "load",
    "metrics",
    "model_file",
]

__version__ = version("sapwood")


def load(path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = True) -> SapwoodClassifier:
    """Read a model that an estimator's `save` wrote.

    Parameters
    ----------
    path : path-like
        The file.
    mmap : bool, default=True
        Map the weights from the file in place of reading them: quick, and shared between processes.
    verify : bool, default=True
        Check that no bit has changed since it was written. The structure is checked in any case.

    Returns
    -------
    estimator
        Of the class that was saved, ready to predict.
    """
    file = model_file.read(path, mmap=mmap, verify=verify)
    classes = {name: globals()[name] for name in __all__ if name.endswith("Classifier")}
    if file.estimator not in classes:
        raise model_file.ModelFileError(f"{os.fspath(path)}: unknown estimator {file.estimator!r}")
    estimator: SapwoodClassifier = classes[file.estimator]._from_file(file)
    return estimator
