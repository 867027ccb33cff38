"""Scores of rankings and of label sets, for many labels.

True labels may be given in three kinds, here called *label sets*:

- a 1-D array (or list) of labels, one for each row;
- a list with one list of labels for each row;
- a 2-D indicator, CSR (or any scipy sparse format) or a dense array, of zeros and ones. Its labels are
  the column numbers, unless ``labels=`` names the columns.

A list of lists is always read as lists of labels: an indicator must be an array.

The scores at k follow the scripts of the Extreme Classification Repository: every row counts in the mean,
a row without true labels as 0. A ranking is taken in the order given, so ties are the ranker's to break.
A label that stands twice in one row of a ranking counts once, in its first place, and a label that no row
has (-1, say, where a ranker had nothing more to offer) is a miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sapwood._sparse import check_structure

__all__ = [
    "example_f1",
    "macro_f1",
    "micro_f1",
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
    "propensity_scored_precision_at_k",
    "recall_at_k",
]

Labels: TypeAlias = NDArray[Any]
Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
# Quoted, as scipy before 1.11 has no sparray.
LabelSets: TypeAlias = "ArrayLike | Sequence[Sequence[Any]] | sparse.spmatrix | sparse.sparray"


def precision_at_k(
    Y_true: LabelSets, topk_labels: ArrayLike, k: int | None = None, *, labels: ArrayLike | None = None
) -> float:
    """Share of the first k labels of a ranking that are true.

    Parameters
    ----------
    Y_true : label sets
        The true labels: 1-D labels, lists of labels, or an indicator (see the module).
    topk_labels : array-like of shape (n, m)
        Labels in descending order of score, as ``predict_topk`` gives them.
    k : int, optional
        How many of the m columns count; all of them by default.
    labels : array-like of shape (n_labels,), optional
        The names of an indicator's columns; for other kinds, the labels there may be.

    Returns
    -------
    float
        Mean over the rows of (true labels among the first k) / k. A row without true labels counts as 0.

    Raises
    ------
    ValueError
        If k exceeds the columns of `topk_labels`, or the rows do not agree.

    Examples
    --------
    >>> precision_at_k(["oak", "elm"], [["oak", "ash"], ["fir", "elm"]], 1)
    0.5
    >>> precision_at_k([["oak", "ash"], []], [["oak", "ash"], ["fir", "elm"]], 2)
    0.5
    """
    truth, ranking = _ranked(Y_true, topk_labels, k, labels)
    return float(_hits(truth, ranking).mean())


def recall_at_k(
    Y_true: LabelSets, topk_labels: ArrayLike, k: int | None = None, *, labels: ArrayLike | None = None
) -> float:
    """Share of the true labels that stand among the first k of a ranking.

    Parameters
    ----------
    Y_true, topk_labels, k, labels
        As in `precision_at_k`.

    Returns
    -------
    float
        Mean over the rows of (true labels among the first k) / (true labels). A row without true labels
        counts as 0.

    Examples
    --------
    >>> recall_at_k([["oak", "ash"], ["elm"]], [["oak", "fir"], ["elm", "oak"]], 2)
    0.75
    """
    truth, ranking = _ranked(Y_true, topk_labels, k, labels)
    found = _hits(truth, ranking).sum(axis=1)
    return float(np.mean(found / np.maximum(truth.row_counts, 1)))


def ndcg_at_k(
    Y_true: LabelSets, topk_labels: ArrayLike, k: int | None = None, *, labels: ArrayLike | None = None
) -> float:
    """Normalised discounted cumulative gain of the first k labels of a ranking.

    A true label in place i (from 1) gains 1 / log2(i + 1).

    Parameters
    ----------
    Y_true, topk_labels, k, labels
        As in `precision_at_k`.

    Returns
    -------
    float
        Mean over the rows of (gain) / (gain of a ranking that begins with the true labels). A row without
        true labels counts as 0.

    Examples
    --------
    >>> ndcg_at_k(["oak", "elm"], [["oak", "ash", "fir"], ["fir", "ash", "elm"]], 3)
    0.75
    """
    truth, ranking = _ranked(Y_true, topk_labels, k, labels)
    discounts = 1 / np.log2(np.arange(ranking.shape[1]) + 2)
    best = np.cumsum(discounts)[np.clip(truth.row_counts, 1, len(discounts)) - 1]
    return float(np.mean(_hits(truth, ranking) @ discounts / best))


def propensity_scored_precision_at_k(
    Y_true: LabelSets,
    topk_labels: ArrayLike,
    k: int | None = None,
    *,
    weights: ArrayLike,
    labels: ArrayLike | None = None,
) -> float:
    """Precision at k with every hit weighted, normalised by the best that any ranking attains (psP@k).

    With ``weights=1 / propensities(Y_train)`` it is the repository's psP@k: rare labels weigh more.

    Parameters
    ----------
    Y_true, topk_labels, k
        As in `precision_at_k`.
    weights : array-like of shape (n_labels,)
        What a hit of each label is worth, in the order of the indicator's columns, or of `labels`.
    labels : array-like of shape (n_labels,), optional
        The labels that `weights` speaks of; must be given unless `Y_true` is an indicator.

    Returns
    -------
    float
        The weights of all hits, divided by the weights of the k heaviest true labels of every row: a quotient
        of two sums over the rows, so that rows without true labels change neither. 0 if no row has any.

    Examples
    --------
    >>> Y = np.array([[1, 1], [0, 1]])
    >>> propensity_scored_precision_at_k(Y, [[1], [1]], 1, weights=[3.0, 1.0])
    0.5
    """
    if labels is None and not _is_indicator(Y_true):
        raise ValueError("labels= must say which labels weights= speaks of, as Y_true is no indicator")
    truth, ranking = _ranked(Y_true, topk_labels, k, labels)
    worth = np.asarray(weights, dtype=np.float64)
    if worth.shape != (truth.n_labels,):
        raise ValueError(f"weights has shape {worth.shape}, but there are {truth.n_labels} labels")
    # A true label outside `labels` is refused above, so the code -1 of a ranking is never a hit.
    gained = worth[ranking[_hits(truth, ranking)]].sum()
    best = _heaviest(truth, worth, ranking.shape[1]).sum()
    return float(gained / best) if best else 0.0


def propensities(
    Y_train: LabelSets, a: float = 0.55, b: float = 1.5, *, labels: ArrayLike | None = None
) -> Floats:
    """Chance that a true label is noted at all, by the model of Jain, Prabhu and Varma (KDD 2016).

    With N rows, N_l of them with label l: p_l = 1 / (1 + C (N_l + b)^-a), where C = (log N - 1) (b + 1)^a.

    Parameters
    ----------
    Y_train : label sets
        The labels of the training rows.
    a, b : float
        The repository uses 0.5 and 0.4 for Wikipedia sets, 0.6 and 2.6 for Amazon sets, else 0.55 and 1.5.
    labels : array-like of shape (n_labels,), optional
        Which labels to return, in this order; they may include labels that no training row has. By default
        the columns of an indicator, else the sorted distinct labels of `Y_train`.

    Returns
    -------
    ndarray of shape (n_labels,)
        One propensity for each label, in (0, 1).

    Examples
    --------
    >>> rare_and_frequent = np.array([[1, 1], [0, 1], [0, 1], [0, 1]])
    >>> propensities(rare_and_frequent).round(2).tolist()
    [0.72, 0.8]
    """
    train = _encode(_read(Y_train, labels), labels)
    if train.n_rows < 3:
        raise ValueError(f"the propensity model needs at least 3 training rows, Y_train has {train.n_rows}")
    scale = (np.log(train.n_rows) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + scale * (train.label_counts + b) ** -a), dtype=np.float64)


def micro_f1(Y_true: LabelSets, Y_pred: LabelSets, *, labels: ArrayLike | None = None) -> float:
    """F1 of all (row, label) decisions pooled.

    Parameters
    ----------
    Y_true, Y_pred : label sets
        True and predicted labels; the two need not be of one kind.
    labels : array-like of shape (n_labels,), optional
        The names of an indicator's columns; for other kinds, the labels there may be.

    Returns
    -------
    float
        2 hits / (true + predicted), over all rows; 0 if nothing is true and nothing predicted.

    Examples
    --------
    >>> micro_f1([["oak", "ash"], ["elm"]], [["oak"], ["fir"]])
    0.4
    """
    true, predicted, hits = _compared(Y_true, Y_pred, labels)
    return float(_f1(len(hits.keys), len(true.keys), len(predicted.keys)))


def macro_f1(Y_true: LabelSets, Y_pred: LabelSets, *, labels: ArrayLike | None = None) -> float:
    """Mean over the labels of each label's F1.

    Parameters
    ----------
    Y_true, Y_pred, labels
        As in `micro_f1`.

    Returns
    -------
    float
        Mean over all columns of an indicator or all of `labels`; where there are neither, over the labels
        that are true or predicted somewhere. A label that is neither, in any row, counts as 0.

    Examples
    --------
    >>> macro_f1(["oak", "elm", "elm"], ["oak", "elm", "ash"])
    0.5555555555555555
    """
    true, predicted, hits = _compared(Y_true, Y_pred, labels)
    scores = _f1(hits.label_counts, true.label_counts, predicted.label_counts)
    return float(scores.sum() / max(true.n_labels, 1))


def example_f1(Y_true: LabelSets, Y_pred: LabelSets, *, labels: ArrayLike | None = None) -> float:
    """Mean over the rows of each row's F1.

    Parameters
    ----------
    Y_true, Y_pred, labels
        As in `micro_f1`.

    Returns
    -------
    float
        Mean over the rows of 2 hits / (true + predicted). A row with neither true nor predicted labels
        counts as 0, as in scikit-learn's ``f1_score(average="samples")``.

    Examples
    --------
    >>> example_f1([["oak", "ash"], ["elm"]], [["oak", "ash"], ["fir"]])
    0.5
    """
    true, predicted, hits = _compared(Y_true, Y_pred, labels)
    return float(_f1(hits.row_counts, true.row_counts, predicted.row_counts).mean())


def _f1(hits: Any, true: Any, predicted: Any) -> Any:
    return 2 * hits / np.maximum(true + predicted, 1)


class _Pairs(NamedTuple):
    """(row, label) pairs as they were given: label values, or column numbers if n_columns is known."""

    n_rows: int
    rows: Integers
    values: Labels
    n_columns: int | None


class _Coded(NamedTuple):
    """Distinct (row, label code) pairs, each as one number: row * n_labels + code, ascending."""

    n_rows: int
    keys: Integers
    classes: Labels

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    @property
    def rows(self) -> Integers:
        return self.keys // max(self.n_labels, 1)

    @property
    def codes(self) -> Integers:
        return self.keys % max(self.n_labels, 1)

    @property
    def row_counts(self) -> Integers:
        return np.bincount(self.rows, minlength=self.n_rows)

    @property
    def label_counts(self) -> Integers:
        return np.bincount(self.codes, minlength=self.n_labels)


def _ranked(
    Y_true: LabelSets, topk_labels: ArrayLike, k: int | None, labels: ArrayLike | None
) -> tuple[_Coded, Integers]:
    """Code the true labels and the first k columns of a ranking, where -1 stands for an unknown label."""
    truth = _encode(_read(Y_true, labels), labels)
    ranking = _plain(topk_labels)
    if ranking.ndim != 2:
        raise ValueError(f"topk_labels must have shape (n, k), not {ranking.shape}")
    _require_same_rows(truth.n_rows, len(ranking), "topk_labels")
    if k is None:
        k = ranking.shape[1]
    if not 1 <= k <= ranking.shape[1]:
        raise ValueError(f"k must lie between 1 and the {ranking.shape[1]} columns of topk_labels, not {k}")
    return truth, _without_repeats(_codes(ranking[:, :k], truth.classes))


def _hits(truth: _Coded, ranking: Integers) -> NDArray[np.bool_]:
    """Shape of `ranking`: whether the label in each place is true."""
    rows = np.arange(truth.n_rows)[:, None]
    return (ranking >= 0) & _contains(truth.keys, rows * truth.n_labels + ranking)


def _heaviest(truth: _Coded, weights: Floats, k: int) -> Floats:
    """Return the weights of the k heaviest true labels of every row, all rows in one array."""
    rows, worth = truth.rows, weights[truth.codes]
    worth = worth[np.lexsort((-worth, rows))]
    row_starts = np.cumsum(truth.row_counts) - truth.row_counts
    place = np.arange(len(rows)) - row_starts[rows]
    return np.asarray(worth[place < k])


def _compared(
    Y_true: LabelSets, Y_pred: LabelSets, labels: ArrayLike | None
) -> tuple[_Coded, _Coded, _Coded]:
    """Code true and predicted labels alike; the third is what both have."""
    pairs = [_read(Y, labels) for Y in (Y_true, Y_pred)]
    _require_same_rows(pairs[0].n_rows, pairs[1].n_rows, "Y_pred")
    true, predicted = (_encode(p, _shared_labels(*pairs) if labels is None else labels) for p in pairs)
    both = np.intersect1d(true.keys, predicted.keys, assume_unique=True)
    return true, predicted, true._replace(keys=both)


def _shared_labels(first: _Pairs, second: _Pairs) -> Labels:
    widths = [p.n_columns for p in (first, second) if p.n_columns is not None]
    if len(set(widths)) > 1:
        raise ValueError(f"Y_true has {first.n_columns} columns and Y_pred has {second.n_columns}")
    if widths:
        return np.arange(widths[0])
    _require_comparable(first.values, second.values)
    filled = [p.values for p in (first, second) if p.values.size]
    return np.unique(np.concatenate(filled)) if filled else first.values


def _require_same_rows(n_true: int, n_other: int, other: str) -> None:
    if n_true != n_other:
        raise ValueError(f"Y_true has {n_true} rows and {other} has {n_other}")
    if n_true == 0:
        raise ValueError("there are no rows to score")


def _read(Y: LabelSets, labels: ArrayLike | None) -> _Pairs:
    """Read label sets of any kind."""
    if _is_indicator(Y):
        return _read_indicator(Y, None if labels is None else np.size(labels))
    if _holds_lists(Y):
        return _read_lists(Y)
    values = _require_flat(_plain(Y))
    return _Pairs(len(values), np.arange(len(values)), values, None)


def _is_indicator(Y: Any) -> bool:
    return bool(sparse.issparse(Y)) or (isinstance(Y, np.ndarray) and Y.ndim == 2)


def _holds_lists(Y: Any) -> bool:
    return np.iterable(Y) and isinstance(next(iter(Y), None), list | tuple | set | frozenset | np.ndarray)


def _read_indicator(Y: Any, n_names: int | None) -> _Pairs:
    if Y.dtype.kind not in "biuf":
        raise ValueError(f"a 2-D array of labels must be an indicator of zeros and ones, not {Y.dtype}")
    if sparse.issparse(Y):
        check_structure(Y, "the indicator")
    indicator = sparse.csr_matrix(Y)
    n_rows, n_columns = indicator.shape
    if n_names not in (None, n_columns):
        raise ValueError(f"the indicator has {n_columns} columns, but labels= has {n_names}")
    stored = indicator.data != 0
    if (indicator.data[stored] != 1).any():
        raise ValueError("a 2-D array of labels must be an indicator: zeros and ones only")
    rows = np.repeat(np.arange(n_rows), np.diff(indicator.indptr))
    return _Pairs(n_rows, rows[stored], indicator.indices[stored].astype(np.int64), n_columns)


def _read_lists(Y: Any) -> _Pairs:
    lengths = np.fromiter(map(len, Y), dtype=np.int64, count=len(Y))
    values = _require_flat(_plain(list(chain.from_iterable(Y))))
    return _Pairs(len(Y), np.repeat(np.arange(len(Y)), lengths), values, None)


def _require_flat(labels: Labels) -> Labels:
    if labels.ndim != 1:
        raise ValueError(
            f"labels must be 1-D, lists of labels or a 2-D indicator, not of {labels.ndim} dimensions"
        )
    return labels


def _plain(values: Any) -> Labels:
    """Return an array of numbers or of strings, never of objects."""
    array = np.asarray(values)
    if array.dtype == object:
        values = array.tolist()
        array = np.asarray(values)
    if array.dtype.kind not in "biufUS":
        raise ValueError(f"labels must be numbers or strings, not {array.dtype}")
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        _require_no_mixture(np.asarray(values, dtype=object))
    return array


def _require_no_mixture(objects: Labels) -> None:
    # numpy would turn the 1 of [1, "a"] into "1".
    kinds = set(map(type, objects.ravel()))
    if len({issubclass(kind, str) for kind in kinds}) > 1:
        raise ValueError("labels must be all numbers or all strings, not a mixture")


def _encode(pairs: _Pairs, labels: ArrayLike | None) -> _Coded:
    """Give every label its code: its place in `labels`, its column, or its rank among the distinct labels."""
    if labels is not None:
        classes = _plain(labels)
        if len(np.unique(classes)) < len(classes):
            raise ValueError("labels= names a label twice")
    elif pairs.n_columns is not None:
        classes = np.arange(pairs.n_columns)
    else:
        classes = np.unique(pairs.values)
    codes = pairs.values if pairs.n_columns is not None else _codes(pairs.values, classes)
    if (codes < 0).any():
        at = int(np.argmax(codes < 0))
        raise ValueError(
            f"row {pairs.rows[at]} has the label {pairs.values[at]!r}, which is not a known label"
        )
    return _Coded(pairs.n_rows, _distinct(pairs.rows * len(classes) + codes), classes)


def _distinct(keys: Integers) -> Integers:
    # Rows mostly come in order: sorting what is nearly sorted beats the hash table of np.unique.
    keys = np.sort(keys, kind="stable")
    return keys[np.diff(keys, prepend=-1) > 0]


def _codes(values: Labels, classes: Labels) -> Integers:
    """Return the place of every value in `classes`, or -1; the shape is that of `values`."""
    _require_comparable(values, classes)
    if not (classes.size and values.size):
        return np.full(values.shape, -1)
    order = np.argsort(classes, kind="stable")
    place = np.searchsorted(classes, values, sorter=order)
    codes = order[np.minimum(place, len(classes) - 1)]
    return np.where(classes[codes] == values, codes, -1)


def _contains(ascending: Integers, values: Integers) -> NDArray[np.bool_]:
    if not ascending.size:
        return np.zeros(values.shape, dtype=np.bool_)
    place = np.searchsorted(ascending, values)
    return np.asarray(ascending[np.minimum(place, len(ascending) - 1)] == values)


def _without_repeats(ranking: Integers) -> Integers:
    """Put -1 in place of each code that its row has further left."""
    order = np.argsort(ranking, axis=1, kind="stable")
    ascending = np.take_along_axis(ranking, order, axis=1)
    repeated = np.zeros(ranking.shape, dtype=np.bool_)
    np.put_along_axis(repeated, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    return np.where(repeated, -1, ranking)


def _require_comparable(first: Labels, second: Labels) -> None:
    kinds = {"number" if a.dtype.kind in "biuf" else a.dtype.kind for a in (first, second) if a.size}
    if len(kinds) > 1:
        raise ValueError(
            f"labels of dtype {first.dtype} cannot be compared with labels of dtype {second.dtype}"
        )
