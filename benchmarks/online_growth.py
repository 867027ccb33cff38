"""How the time of the online trees grows with the number of labels, and where they overtake one-against-all.

    python benchmarks/online_growth.py
    python benchmarks/online_growth.py --most 10000 --plot growth.png

Synthetic streams: Zipf labels, always 16 non-zeros a row (12 of the label's own 24 features, 4 of anyone's), and four
rows a label or more. The second half of a stream is timed, when the tree has grown; `partial_fit` predicts each row
before it learns it. One-against-all learns the same rows. Time ~ K^a: the exponent a is that of a straight line through
the logarithms. One thread, CPU time, the rows are in memory. Bars: a at most 0.2; one-against-all overtaken below 500
labels.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from harness import report
from harness.runs import REPOSITORY
from sapwood import online
from sapwood.flat import OneVsAllClassifier

COUNTS = [100, 200, 300, 500, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
MOST_AGAINST_ALL = 10_000
ROWS_A_LABEL = 4
OWN, SHARED, NON_ZEROS = 24, 4, 16
N_FEATURES = 1 << 20
METHODS = {
    "lom_tree": lambda: online.LOMTreeClassifier(random_state=0),
    "recall_tree": lambda: online.RecallTreeClassifier(random_state=0),
    "one_against_all": lambda: OneVsAllClassifier(solver="adagrad", loss="logistic", random_state=0),
}


def stream(n_labels: int, n_rows: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of NON_ZEROS features each and their labels, drawn by Zipf's law."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_labels + 1)
    labels = random.choice(n_labels, n_rows, p=share / share.sum())
    place = random.integers(0, OWN, (n_rows, NON_ZEROS - SHARED))
    own = (labels[:, None].astype(np.uint64) * OWN + place.astype(np.uint64) + 1) * np.uint64(
        0x9E3779B97F4A7C15
    )
    columns = (own >> np.uint64(44)).astype(np.int64)
    columns = np.concatenate([columns, random.integers(0, N_FEATURES, (n_rows, SHARED))], axis=1)
    values = random.uniform(0.5, 1.5, columns.shape).astype(np.float32)
    rows = np.repeat(np.arange(n_rows), NON_ZEROS)
    X = sp.csr_matrix((values.ravel(), (rows, columns.ravel())), shape=(n_rows, N_FEATURES))
    return X, labels


def measure(method: str, n_labels: int, n_rows: int) -> dict[str, float]:
    """Microseconds to learn a row and to predict one, and the error on rows not learned."""
    X, y = stream(n_labels, n_rows)
    X_test, y_test = stream(n_labels, 20_000, seed=1)
    half = n_rows // 2
    model = METHODS[method]().partial_fit(X[:half], y[:half])
    start = time.process_time()
    model.partial_fit(X[half:], y[half:])
    learn = time.process_time() - start
    model.predict(X_test[:100])
    times = []
    for _ in range(3):
        start = time.process_time()
        predicted = model.predict(X_test)
        times.append(time.process_time() - start)
    return {
        "learn_us": learn / (n_rows - half) * 1e6,
        "predict_us": float(np.median(times)) / X_test.shape[0] * 1e6,
        "error": float((predicted != y_test).mean()) * 100,
    }


def exponent(counts: list[int], times: list[float]) -> float:
    """The a of time ~ K^a."""
    return float(np.polyfit(np.log(counts), np.log(times), 1)[0])


def overtakes(tree: dict[int, float], flat: dict[int, float]) -> float:
    """The number of labels from which on the tree is faster, between the counts tried on a logarithmic scale."""
    counts = [count for count in tree if count in flat]
    gain = [np.log(flat[count] / tree[count]) for count in counts]
    if gain[0] > 0:
        return float(counts[0])
    for i in range(1, len(counts)):
        if gain[i] > 0:
            part = -gain[i - 1] / (gain[i] - gain[i - 1])
            return float(np.exp(np.log(counts[i - 1]) + part * np.log(counts[i] / counts[i - 1])))
    return float("nan")


def arguments() -> argparse.Namespace:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--rows", type=int, default=200_000, help="of each stream, at least (%(default)s)")
    parser.add_argument("--most", type=int, default=COUNTS[-1], help="labels (%(default)s)")
    parser.add_argument("--methods", default=",".join(METHODS), help="with commas (%(default)s)")
    parser.add_argument("--plot", type=Path, help="where to draw the times")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks/results/online_growth.json")
    return parser.parse_args()


def summary(found: dict[str, dict[int, dict[str, float]]]) -> list[list[str]]:
    """For each method the exponents, and where it overtakes one-against-all."""
    flat = found.get("one_against_all", {})
    rows = []
    for method, by_count in found.items():
        counts = list(by_count)
        cells = [method]
        for what in ("learn_us", "predict_us"):
            times = {count: by_count[count][what] for count in counts}
            cells.append(f"{exponent(counts, list(times.values())):.2f}" if len(counts) > 1 else "-")
            if method != "one_against_all" and flat:
                cells.append(report.number(overtakes(times, {count: flat[count][what] for count in flat})))
            else:
                cells.append("")
        rows.append(cells)
    return rows


def plot(found: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    """Time against labels, both axes logarithmic."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for ax, what in zip(axes, ("learn_us", "predict_us"), strict=True):
        for method, by_count in found.items():
            ax.loglog(
                list(by_count), [result[what] for result in by_count.values()], marker="o", label=method
            )
        ax.set_xlabel("labels")
        ax.set_ylabel(f"{what.removesuffix('_us')}, microseconds a row")
        ax.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    args = arguments()
    found: dict[str, dict[int, dict[str, float]]] = {method: {} for method in args.methods.split(",")}
    rows = []
    for n_labels in (count for count in COUNTS if count <= args.most):
        for method in found:
            if method == "one_against_all" and n_labels > MOST_AGAINST_ALL:
                continue
            result = found[method][n_labels] = measure(
                method, n_labels, max(args.rows, ROWS_A_LABEL * n_labels)
            )
            rows.append([f"{n_labels:,}", method, *(report.number(value) for value in result.values())])
            print(
                report.table(["labels", "method", "learn us", "predict us", "error %"], rows[-1:]), flush=True
            )
    print(report.table(["labels", "method", "learn us", "predict us", "error %"], rows))
    header = ["", "learning K^", "overtakes at", "predicting K^", "overtakes at"]
    print("\n" + report.table(header, summary(found)))
    report.write(
        args.output,
        {"machine": report.machine(), "rows": args.rows, "found": found, "summary": summary(found)},
    )
    if args.plot:
        plot(found, args.plot)


if __name__ == "__main__":
    main()
