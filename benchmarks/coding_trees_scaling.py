"""The powerset tree and the balanced annotation tree on 100,000 label sets over a million labels, by power laws.

Run as

    python benchmarks/coding_trees_scaling.py

A label set has 1 to 5 labels; labels and sets are drawn by Zipf's law. A row holds some words of each of its labels and
some noise. Prints shape, time and the answers' F1 on new rows.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from harness import report
from sapwood import AnnotationTreeClassifier, PowersetTreeClassifier
from sapwood.metrics import example_f1

REPOSITORY = Path(__file__).resolve().parent.parent
WORDS_A_LABEL = 3
NOISE_WORDS = 5


def power_law(random, n, most):
    """Draw n numbers below `most`, number k in proportion to 1 / (k + 1)."""
    return np.minimum((most + 1.0) ** random.random(n) - 1, most - 1).astype(np.int64)


def draw_sets(random, n_sets, n_labels):
    """Distinct label sets."""
    found = {}
    while len(found) < n_sets:
        for size in random.integers(1, 6, n_sets):
            found[tuple(np.unique(power_law(random, size, n_labels)))] = None
    return list(found)[:n_sets]


def draw_rows(random, sets, chosen, n_labels, n_features):
    """Rows of words, and the indicator of their labels."""
    sizes = np.array([len(s) for s in sets])
    flat = np.concatenate([np.array(s) for s in sets])
    begin = np.concatenate([[0], np.cumsum(sizes)])
    indptr = np.concatenate([[0], np.cumsum(sizes[chosen])])
    labels = flat[np.repeat(begin[chosen] - indptr[:-1], sizes[chosen]) + np.arange(indptr[-1])]
    n = len(chosen)
    Y = sp.csr_matrix((np.ones(len(labels), np.int8), labels, indptr), shape=(n, n_labels))
    word = (
        np.repeat(labels, WORDS_A_LABEL) * 2654435761 + np.tile(np.arange(WORDS_A_LABEL), len(labels)) * 40503
    )
    rows = np.repeat(np.repeat(np.arange(n), sizes[chosen]), WORDS_A_LABEL)
    noise = power_law(random, n * NOISE_WORDS, n_features)
    columns = np.concatenate([word % n_features, noise])
    rows = np.concatenate([rows, np.repeat(np.arange(n), NOISE_WORDS)])
    X = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, n_features))
    X.sum_duplicates()
    return X, Y


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--output", type=Path, default=REPOSITORY / "benchmarks/results/coding_trees_scaling.json"
    )
    args = parser.parse_args()
    random = np.random.default_rng(0)
    sets = draw_sets(random, args.sets, args.labels)
    every = np.arange(args.sets)
    chosen = np.concatenate([every, power_law(random, args.rows - args.sets, args.sets)])
    X, Y = draw_rows(random, sets, chosen, args.labels, args.features)
    Z, truth = draw_rows(random, sets, power_law(random, 10_000, args.sets), args.labels, args.features)
    print(
        f"{X.shape[0]:,} rows, {X.shape[1]:,} columns, {X.nnz:,} entries; {args.sets:,} sets over {args.labels:,} "
        f"labels, {args.jobs} threads",
        flush=True,
    )
    results, rows = {}, []
    for name, model in (
        ("PT", PowersetTreeClassifier(beam=1, n_jobs=args.jobs)),
        ("AT balanced", AnnotationTreeClassifier(rule="balanced", beam=1, n_jobs=args.jobs)),
    ):
        start, cpu = time.perf_counter(), time.process_time()
        model.fit(X, Y)
        fitted, cpu = time.perf_counter() - start, time.process_time() - cpu
        model.set_params(n_jobs=1)
        start = time.perf_counter()
        answer = model.predict(Z)
        taken = 1e6 * (time.perf_counter() - start) / Z.shape[0]
        results[name] = {
            "train_seconds": fitted,
            "train_cpu_seconds": cpu,
            "depth": model.depth_,
            "twice_log2_sets": 2 * float(np.log2(args.sets)),
            "mean_decisions": model.mean_decisions_,
            "entropy": model.entropy_,
            "test_microseconds": taken,
            "f1": example_f1(truth, answer),
            "model_megabytes": model.trees_.nbytes / 1e6,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        }
        rows.append([name, *(report.number(value) for value in results[name].values())])
        print(report.table(["method", *results[name]], rows[-1:]), flush=True)
        del model
    arguments = {name: value for name, value in vars(args).items() if name != "output"}
    report.write(args.output, {"machine": report.machine(), "arguments": arguments, "results": results})
    print(report.table(["method", *results["PT"]], rows))


if __name__ == "__main__":
    main()
