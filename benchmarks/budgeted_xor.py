"""The XOR experiment of section 8.1.1 of the budgeted-trees paper.

Two Gaussian features decide the label by their signs, the others are uniform noise; 10,000 examples to learn
from and 2,000 to test. SBT chooses B and C on a fifth of the training set, from the paper's grid. Run as

    python benchmarks/budgeted_xor.py --noise 200 1000 4000 --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness import report
from sapwood import BudgetedClassifier, BudgetedTreeClassifier

TRAIN, TEST, CHOOSE = 10_000, 2_000, 8_000
RESULTS = Path(__file__).parent / "results"


def xor(noise, seed):
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(TRAIN + TEST, 2)), rng.random((TRAIN + TEST, noise))]).astype(np.float32)
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def error(model, X, y):
    return float(np.mean(model.predict(X) != y))


def fit_sbt(X, y, class_weight, n_jobs):
    """B from the paper's {1, 3, 5, 10}, C from {0.01, 1}; one plane a node."""

    def make(budget, C):
        return BudgetedTreeClassifier(
            budget=budget, C=C, class_weight=class_weight, normalize=False, random_state=0, n_jobs=n_jobs
        )

    grid = [(budget, C) for budget in (1, 3, 5, 10) for C in (0.01, 1.0)]
    held_out = [
        error(make(*point).fit(X[:CHOOSE], y[:CHOOSE]), X[CHOOSE:TRAIN], y[CHOOSE:TRAIN]) for point in grid
    ]
    best = grid[int(np.argmin(held_out))]
    start = time.process_time()
    tree = make(*best).fit(X[:TRAIN], y[:TRAIN])
    return tree, best, time.process_time() - start


def sbt_results(X, y, class_weight, n_jobs):
    tree, (budget, C), seconds = fit_sbt(X, y, class_weight, n_jobs)
    return {
        "error": error(tree, X[TRAIN:], y[TRAIN:]),
        "cv_error": tree.cv_error_,
        "budget": budget,
        "C": C,
        "nodes": tree.n_nodes_,
        "features": len(tree.selected_features_),
        "seconds": seconds,
    }


def measure(noise, seed, n_jobs):
    X, y = xor(noise, seed)
    others = {
        "linear SVM": LinearSVC(C=0.01, dual=False),
        "FGM (BAC)": BudgetedClassifier(budget=5, max_planes=5, normalize=False),
        "CART": DecisionTreeClassifier(random_state=0),
    }
    result = {
        name: error(model.fit(X[:TRAIN], y[:TRAIN]), X[TRAIN:], y[TRAIN:]) for name, model in others.items()
    }
    result["SBT"] = sbt_results(X, y, "balanced", n_jobs)
    result["SBT, paper's weights"] = sbt_results(X, y, None, n_jobs)
    return {"noise": noise, "seed": seed, **result}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--noise", type=int, nargs="+", default=[200, 1000, 4000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS / "budgeted_xor.json")
    args = parser.parse_args()
    results, rows = [], []
    for noise in args.noise:
        for seed in args.seeds:
            result = measure(noise, seed, args.n_jobs)
            results.append(result)
            rows.append([str(noise), str(seed), *map(cell, list(result.values())[2:])])
            print("|", " | ".join(rows[-1]), "|", flush=True)
    print(report.table(list(results[0]), rows))
    content = {"command": "python benchmarks/budgeted_xor.py", "threads": args.n_jobs, "results": results}
    report.write(args.output, {"machine": report.machine(), **content})


def cell(value):
    if isinstance(value, float):
        return f"{value:.1%}"
    return (
        f"{value['error']:.1%} (B={value['budget']}, {value['nodes']} nodes, {value['features']} features, "
        f"{value['seconds']:.2f} CPU s)"
    )


if __name__ == "__main__":
    main()
