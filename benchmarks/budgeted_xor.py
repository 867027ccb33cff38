"""The XOR experiment of section 8.1.1 of the budgeted-trees paper, on the reference implementation.

Two Gaussian features decide the label by their signs, the others are uniform noise; 10,000 examples to learn
from and 2,000 to test. SBT chooses its parameters on a fifth of the training set. Run as

    python benchmarks/budgeted_xor.py --noise 200 1000 4000 --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sapwood.reference.budgeted import Budgeted, BudgetedParameters
from sapwood.reference.budgeted_tree import BudgetedTree

TRAIN, TEST, CHOOSE = 10_000, 2_000, 8_000


def xor(noise, seed):
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(TRAIN + TEST, 2)), rng.random((TRAIN + TEST, noise))])
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


def error(model, X, y):
    return float(np.mean(model.predict(X) != y))


def fit_sbt(X, y, class_weight, prune=True):
    """B from the paper's {1, 3, 5, 10}, C from {0.01, 1}; one plane a node."""
    candidates = [
        BudgetedParameters(budget, C=C, max_planes=1, tol=1e-2, class_weight=class_weight)
        for budget in (1, 3, 5, 10)
        for C in (0.01, 1.0)
    ]
    held_out = [
        error(BudgetedTree(p, prune=prune).fit(X[:CHOOSE], y[:CHOOSE]), X[CHOOSE:], y[CHOOSE:])
        for p in candidates
    ]
    best = candidates[int(np.argmin(held_out))]
    return BudgetedTree(best, prune=prune).fit(X, y), f"B={best.budget} C={best.C:g}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--noise", type=int, nargs="+", default=[200, 1000, 4000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    print("| noise | seed | linear SVM | BAC (FGM) | CART | SBT, paper's weights | SBT, balanced weights |")
    print("|---|---|---|---|---|---|---|")
    for noise in args.noise:
        for seed in args.seeds:
            X, y = xor(noise, seed)
            learn, test = slice(0, TRAIN), slice(TRAIN, None)
            cells = [
                f"{error(model.fit(X[learn], y[learn]), X[test], y[test]):.1%}"
                for model in (
                    LinearSVC(C=0.01, dual=False),
                    Budgeted(BudgetedParameters(5, max_planes=5)),
                    DecisionTreeClassifier(random_state=0),
                )
            ]
            for class_weight in (None, "balanced"):
                start = time.perf_counter()
                tree, chosen = fit_sbt(X[learn], y[learn], class_weight)
                seconds = time.perf_counter() - start
                cells.append(
                    f"{error(tree, X[test], y[test]):.1%} ({chosen}, {len(tree.nodes_)} nodes, "
                    f"{len(tree.features_)} features, CV {tree.cv_error_:.1%}, {seconds:.0f} s)"
                )
            print(f"| {noise} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
