"""Error at a small share of the features on the asu_* sets: SBT and BAC against linear SVM and CART.

Five-fold cross-validation; every method chooses its parameters on --inner folds inside the training part, the
unpruned tree takes the pruned one's. "RFE", a linear SVM that drops its lightest features until the share is
reached, tells what a linear classifier can do at all with so few features. Run as

    python benchmarks/budgeted_asu.py PATH_OF_DATA --sets asu_pcmac asu_colon --share 0.02
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.feature_selection import RFE
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sapwood.reference.budgeted import Budgeted, BudgetedParameters
from sapwood.reference.budgeted_tree import BudgetedTree

SETS = ["asu_pcmac", "asu_colon", "asu_basehock", "asu_relathe", "asu_leukemia", "asu_madelon"]
TEXT = {"asu_pcmac", "asu_basehock", "asu_relathe"}
TREE_DEPTH = 6


def read(path):
    parts = [load_svmlight_file(str(path / f"{part}.txt.gz")) for part in ("train", "test")]
    width = max(X.shape[1] for X, _ in parts)
    X = sp.vstack([sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width)) for X, _ in parts])
    y = np.concatenate([y for _, y in parts])
    return X.tocsr(), np.where(y == y.max(), 1.0, -1.0)


def scalings(X, text):
    """Each is a function of (learn, test) indices; the choice among them is a parameter."""
    if not text:
        dense = X.toarray()

        def standard(learn, test):
            scaler = StandardScaler().fit(dense[learn])
            return scaler.transform(dense[learn]), scaler.transform(dense[test])

        return {"standard": standard}
    binary, unit = X.copy(), X.copy()
    binary.data[:] = 1.0
    unit.data = np.log1p(unit.data)
    unit = normalize(unit)
    return {
        "binary": lambda learn, test: (binary[learn], binary[test]),
        "tf": lambda learn, test: (unit[learn], unit[test]),
    }


def methods(limit, text):
    """Name -> list of (what was chosen, function of nothing to an estimator, how many features it uses)."""
    bac_C = (0.1, 1.0, 10.0) if text else (0.001, 0.01, 0.1)
    svm_C = (0.001, 0.01, 0.1, 1.0, 10.0)
    third, tenth = max(1, limit // 3), max(1, limit // 10)
    bacs = [
        BudgetedParameters(budget, C=C, max_planes=planes, tol=1e-2)
        for budget, planes in dict.fromkeys([(limit, 1), (third, 3), (tenth, 10)])
        for C in bac_C
    ]
    nodes = [
        BudgetedParameters(budget, C=C, max_planes=planes, tol=1e-2, class_weight=weight)
        for budget, planes in dict.fromkeys([(limit, 1), (third, 3), (tenth, 1)])
        for C in bac_C[1:]
        for weight in (None, "balanced")
    ]

    def tree(parameters, prune):
        return lambda: BudgetedTree(parameters, prune=prune, max_depth=TREE_DEPTH, max_features=limit)

    def name(p):
        weight = " balanced" if p.class_weight else ""
        return f"B={p.budget} planes={p.max_planes} C={p.C:g}{weight}"

    return {
        "SVM": [(f"C={C:g}", lambda C=C: LinearSVC(C=C, random_state=0)) for C in svm_C],
        "CART": [("", lambda: DecisionTreeClassifier(random_state=0))],
        "RFE": [
            (
                f"C={C:g}",
                lambda C=C: RFE(LinearSVC(C=C, random_state=0), n_features_to_select=limit, step=0.1),
            )
            for C in ((0.1, 1.0) if text else (0.01, 1.0))
        ],
        "BAC": [(name(p), lambda p=p: Budgeted(replace(p))) for p in bacs],
        "SBT": [(name(p), tree(p, True)) for p in nodes],
    }


def count_features(model, width):
    if isinstance(model, RFE):
        return int(model.support_.sum())
    if isinstance(model, DecisionTreeClassifier):
        return int(np.sum(model.feature_importances_ > 0))
    return width if isinstance(model, LinearSVC) else len(model.features_)


def describe(model, X, y, label):
    """Return error, features, nodes and the parameters."""
    nodes = len(model.nodes_) if isinstance(model, BudgetedTree) else 0
    return np.mean(model.predict(X) != y), count_features(model, X.shape[1]), nodes, label


def evaluate(X, y, text, candidates, inner_folds):
    """Return `describe` for each outer fold, and again for the tree without pruning if it is one."""
    rows, unpruned = [], []
    ways = scalings(X, text)
    for learn, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        options = [(way, label, make) for way in ways for label, make in candidates]
        wrong = np.zeros(len(options))
        if len(options) > 1:
            for inner, check in StratifiedKFold(inner_folds, shuffle=True, random_state=1).split(
                learn, y[learn]
            ):
                inner, check = learn[inner], learn[check]
                data = {way: ways[way](inner, check) for way in ways}
                for k, (way, _, make) in enumerate(options):
                    A, B = data[way]
                    wrong[k] += np.sum(make().fit(A, y[inner]).predict(B) != y[check])
        way, label, make = options[int(np.argmin(wrong))]
        A, B = ways[way](learn, test)
        model = make().fit(A, y[learn])
        rows.append(describe(model, B, y[test], f"{way} {label}"))
        if isinstance(model, BudgetedTree):
            model.prune = False
            unpruned.append(describe(model.fit(A, y[learn]), B, y[test], f"{way} {label}"))
    return rows, unpruned


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--inner", type=int, default=3)
    parser.add_argument("--methods", nargs="+")
    args = parser.parse_args()
    print("| set | method | error | features | nodes | seconds | chosen |")
    print("|---|---|---|---|---|---|---|")
    for name in args.sets:
        X, y = read(args.data / name)
        limit = int(args.share * X.shape[1])
        for method, candidates in methods(limit, name in TEXT).items():
            if args.methods and method not in args.methods:
                continue
            start = time.perf_counter()
            tables = evaluate(X, y, name in TEXT, candidates, args.inner)
            seconds = time.perf_counter() - start
            for rows, label in zip(tables, (method, f"{method} unpruned"), strict=True):
                if rows:
                    print_row(name, label, rows, seconds)


def print_row(name, method, rows, seconds):
    errors = np.array([row[0] for row in rows])
    chosen = "; ".join(dict.fromkeys(row[3] for row in rows))
    print(
        f"| {name} | {method} | {errors.mean():.2%} ± {errors.std(ddof=1) / np.sqrt(len(rows)):.2%} "
        f"| {np.mean([row[1] for row in rows]):.0f} | {np.mean([row[2] for row in rows]):.1f} "
        f"| {seconds:.0f} | {chosen} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
