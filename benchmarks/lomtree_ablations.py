"""The LOMtree paper's comparison (NIPS 2015, Table 4 and figure 3) on sets at hand, in one command.

    python benchmarks/lomtree_ablations.py --data DIR --plot lomtree.png

Test error of LOMtree, random tree, filter tree and one-against-all, each with the step, and the LOMtree with the T,
that has the smallest error on a tenth of the training rows; then log2 of the ratio of one-against-all's time to predict
a row to the LOMtree's, against log2 K. One thread, CPU time. Intervals are the paper's: binomial, 95 %.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness import arrays, report
from harness.runs import CACHE, REPOSITORY, prepare
from sapwood.flat import OneVsAllClassifier
from sapwood.online import FilterTreeClassifier, LOMTreeClassifier, RandomTreeClassifier

SETS = "usps,letter,isolet_partial,banking77,debian_maintainer,icd10cm_category"
STEPS = (0.1, 0.3, 1.0)
NODES = (1, 4, 16)
TREES = {
    "LOMtree": LOMTreeClassifier,
    "random tree": RandomTreeClassifier,
    "filter tree": FilterTreeClassifier,
}
FLAT = "one-against-all"


def candidates(method: str) -> list[Any]:
    """The settings of a method among which the validation rows choose."""
    if method == FLAT:
        return [OneVsAllClassifier(solver="adagrad", loss="logistic", passes=5, random_state=0)]
    if method == "LOMtree":
        return [
            LOMTreeClassifier(step=step, internal_per_label=nodes, random_state=0)
            for step in STEPS
            for nodes in NODES
        ]
    return [TREES[method](step=step, random_state=0) for step in STEPS]


def chosen(method: str, X: Any, y: np.ndarray) -> Any:
    """The setting with the smallest error on a tenth of the rows."""
    settings = candidates(method)
    if len(settings) == 1:
        return settings[0]
    held_out = np.random.default_rng(0).random(len(y)) < 0.1
    return max(
        settings, key=lambda model: model.fit(X[~held_out], y[~held_out]).score(X[held_out], y[held_out])
    )


def measure(method: str, train: arrays.Split, test: arrays.Split) -> dict[str, Any]:
    """Error, its interval, and microseconds to predict a row."""
    model = chosen(method, train.X, train.Y).fit(train.X, train.Y)
    times = []
    for _ in range(5):
        start = time.process_time()
        predicted = model.predict(test.X)
        times.append(time.process_time() - start)
    error = float((predicted != test.Y).mean())
    return {
        "error": 100 * error,
        "interval": 196 * math.sqrt(error * (1 - error) / len(test.Y)),
        "predict_us": float(np.median(times)) / len(test.Y) * 1e6,
        "settings": {name: getattr(model, name, None) for name in ("step", "internal_per_label")},
    }


def plot(found: dict[str, dict[str, Any]], labels: dict[str, int], path: Path) -> None:
    """Table 4 as bars, figure 3 as points."""
    from matplotlib import pyplot as plt

    figure, (bars, points) = plt.subplots(1, 2, figsize=(12, 4))
    methods = [*TREES, FLAT]
    for i, method in enumerate(methods):
        place = np.arange(len(found)) + i / (len(methods) + 1)
        errors = [result[method]["error"] for result in found.values()]
        intervals = [result[method]["interval"] for result in found.values()]
        bars.bar(place, errors, 1 / (len(methods) + 1), yerr=intervals, label=method)
    bars.set_xticks(np.arange(len(found)) + 0.3, list(found), rotation=20)
    bars.set_ylabel("test error, %")
    bars.legend()
    counts = [labels[name] for name in found]
    points.plot(np.log2(counts), [ratio(result) for result in found.values()], "o")
    points.set_xlabel("log2 of the number of labels")
    points.set_ylabel("log2 of one-against-all's time / LOMtree's")
    figure.tight_layout()
    figure.savefig(path)


def ratio(result: dict[str, Any]) -> float:
    """Figure 3's: log2 of the ratio of the times to predict."""
    return math.log2(result[FLAT]["predict_us"] / result["LOMtree"]["predict_us"])


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sets", default=SETS, help="names of data sets, with commas (%(default)s)")
    parser.add_argument("--plot", type=Path, help="where to draw")
    parser.add_argument(
        "--output", type=Path, default=REPOSITORY / "benchmarks/results/lomtree_ablations.json"
    )
    args = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    labels: dict[str, int] = {}
    rows = []
    for name in args.sets.split(","):
        labels[name] = prepare(args.data / name).n_labels
        train, test = (arrays.load(CACHE / name, part) for part in arrays.SPLITS)
        found[name] = {method: measure(method, train, test) for method in [*TREES, FLAT]}
        errors = [f"{result['error']:.2f} ± {result['interval']:.2f}" for result in found[name].values()]
        rows.append([name, f"{labels[name]}", *errors, f"{ratio(found[name]):.1f}"])
        print(report.table(["", "labels", *TREES, FLAT, "log2 time ratio"], rows), flush=True)
    report.write(args.output, {"machine": report.machine(), "labels": labels, "found": found})
    if args.plot:
        plot(found, labels, args.plot)


if __name__ == "__main__":
    main()
