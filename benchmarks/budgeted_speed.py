"""How long a budget-aware classifier takes on a text, and how much memory a budgeted tree on a wide matrix.

    python benchmarks/budgeted_speed.py DATA_FOLDER

First part: 12,000 rows x 47,000 columns with 75 non-zeros at most (the shape of the paper's rcv1), made from the
tf-idf rows of news20_bydate: 75 heaviest entries of each row, 47,000 most frequent columns; labels 1 to 10 against 11
to 20. One thread, median of the repeats. Second part: rows x 16,000,000 columns with 3,700 non-zeros a row (the shape
of webspam); an SBT of depth 3, in a process of its own that tells its peak
memory. Its matrix is made in that process, so its size is counted with the training.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from harness import report
from sapwood import BudgetedClassifier, BudgetedTreeClassifier
from sapwood.io import read_svmlight

RESULTS = Path(__file__).parent / "results"
ROWS, COLUMNS, ENTRIES = 12_000, 47_000, 75
WIDE_COLUMNS, WIDE_ENTRIES = 16_000_000, 3_700
MARKERS, WRONG = 40, 0.05


def read_text(folder):
    parts = [read_svmlight(folder / f"{part}.txt.gz")[:2] for part in ("train", "test")]
    width = max(X.shape[1] for X, _ in parts)
    X = sp.vstack([sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width)) for X, _ in parts])[
        :ROWS
    ]
    y = np.concatenate([y for _, y in parts])[:ROWS]
    for first, last in zip(X.indptr, X.indptr[1:], strict=False):
        light = np.argsort(X.data[first:last])[: max(0, last - first - ENTRIES)]
        X.data[first + light] = 0
    X.eliminate_zeros()
    frequent = np.argsort(-np.bincount(X.indices, minlength=width), kind="stable")[:COLUMNS]
    return sp.csr_matrix(X[:, np.sort(frequent)], dtype=np.float32), np.where(y <= 10, 1, -1)


def speed(folder, repeats):
    X, y = read_text(folder)
    results = []
    for budget, max_planes, C in ((500, 1, 1.0), (100, 10, 1.0), (50, 20, 10.0), (10, 100, 10.0)):
        wall, cpu = [], []
        for _ in range(repeats):
            start, start_cpu = time.perf_counter(), time.process_time()
            model = BudgetedClassifier(budget=budget, max_planes=max_planes, C=C).fit(X, y)
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - start_cpu)
        results.append(
            {
                "budget": budget,
                "max_planes": max_planes,
                "C": C,
                "selected": len(model.selected_features_),
                "gap": float(model.gap_[0] / model.objective_[0]),
                "training error": 1 - model.score(X, y),
                "wall s": statistics.median(wall),
                "CPU s": statistics.median(cpu),
            }
        )
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz / X.shape[0]:.1f} non-zeros a row, one thread")
    header = list(results[0])
    print(
        report.table(header, [[report.number(float(r[key])) for key in header] for r in results]), flush=True
    )
    return {"shape": X.shape, "entries": int(X.nnz), "results": results}


def wide_rows(n_rows, seed=0):
    """Rows of random columns; one of a label's MARKERS columns in each row tells it; one label in 20 is wrong."""
    rng = np.random.default_rng(seed)
    indices = np.empty((n_rows, WIDE_ENTRIES), dtype=np.int32)
    step = WIDE_COLUMNS // WIDE_ENTRIES
    for i in range(n_rows):
        indices[i] = np.arange(WIDE_ENTRIES) * step + rng.integers(1, step, WIDE_ENTRIES)
    y = rng.integers(0, 2, n_rows)
    block = rng.integers(0, MARKERS, n_rows) + MARKERS * y
    indices[np.arange(n_rows), block] = block * step
    values = rng.random(n_rows * WIDE_ENTRIES, dtype=np.float32)
    values.reshape(n_rows, -1)[np.arange(n_rows), block] = 1.0
    y = np.where(rng.random(n_rows) < WRONG, 1 - y, y)
    indptr = np.arange(0, n_rows * WIDE_ENTRIES + 1, WIDE_ENTRIES, dtype=np.int32)
    return sp.csr_matrix((values, indices.reshape(-1), indptr), shape=(n_rows, WIDE_COLUMNS), copy=False), y


def peak():
    """Peak resident memory of this process in bytes (getrusage would tell the parent's, if that was larger)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def train_wide(n_rows, n_jobs):
    """Train in this process and print its figures as JSON."""
    base = peak()
    X, y = wide_rows(n_rows)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    with_data = peak()
    start, start_cpu = time.perf_counter(), time.process_time()
    model = BudgetedTreeClassifier(budget=20, max_planes=2, max_depth=3, random_state=0, n_jobs=n_jobs).fit(
        X, y
    )
    figures = {
        "rows": n_rows,
        "data MB": size / 1e6,
        "peak of making the data / data": (with_data - base) / size,
        "peak of training / data": (peak() - base) / size,
        "wall s": time.perf_counter() - start,
        "CPU s": time.process_time() - start_cpu,
        "nodes": model.n_nodes_,
        "selected": len(model.selected_features_),
        "training error": 1 - model.score(X, y),
        "held-out error": model.cv_error_,
    }
    print(json.dumps(figures))


def memory(n_rows, n_jobs):
    command = [sys.executable, __file__, "-", "--train-wide", str(n_rows), "--n-jobs", str(n_jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    print(f"rows x {WIDE_COLUMNS:,}, {WIDE_ENTRIES:,} non-zeros a row, SBT of depth 3, {n_jobs} thread(s)")
    print(report.table(list(figures), [[report.number(float(value)) for value in figures.values()]]))
    return figures


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000], help="of the wide matrix")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--train-wide", type=int, help="used by this program itself")
    parser.add_argument("--output", type=Path, default=RESULTS / "budgeted_speed.json")
    args = parser.parse_args()
    if args.train_wide:
        train_wide(args.train_wide, args.n_jobs)
        return
    content = {
        "command": "python benchmarks/budgeted_speed.py DATA_FOLDER",
        "machine": report.machine(),
        "text": speed(args.data / "news20_bydate", args.repeats),
        "wide": [memory(n_rows, args.n_jobs) for n_rows in args.rows],
    }
    report.write(args.output, content)


if __name__ == "__main__":
    main()
