"""How much faster the online trees learn on several threads, and what it costs in accuracy. Wall time.

    python benchmarks/online_parallel.py --data DIR       # DIR holds <set>/train.txt.gz and <set>/test.txt.gz
    python benchmarks/online_parallel.py --data DIR --sets icd10cm_category --methods lom_tree --repeats 5

Compared are one thread; `n_jobs` of the Recall Tree without more, which gives the same model to the bit; and
`parallel="hogwild"`. They take turns, with another seed in each repeat; times are medians, errors means. Defaults, but
five passes over the rows, or one where a set is a long stream. What the output file holds of other sets and methods
is kept. Bars: 1.7 times the rows a second with two threads, error within half a point.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import sapwood
from harness import arrays, report
from harness.runs import REPOSITORY, Result, online_passes, prepare

SETS = "debian_maintainer,icd10cm_category,nextword_gutenberg_sample"
METHODS = {"recall_tree": "RecallTreeClassifier", "lom_tree": "LOMTreeClassifier"}
FASTER, LARGER_ERROR = 1.7, 0.5


def arguments() -> argparse.Namespace:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sets", default=SETS, help="names of data sets, with commas (%(default)s)")
    parser.add_argument("--methods", default=",".join(METHODS), help="with commas (%(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks/results/online_parallel.json")
    return parser.parse_args()


def modes(method: str, threads: int) -> dict[str, dict[str, Any]]:
    """Parameters of each way to learn."""
    ways: dict[str, dict[str, Any]] = {"one thread": {"n_jobs": 1}}
    if method == "recall_tree":
        ways["in order"] = {"n_jobs": threads}
    return ways | {"hogwild": {"n_jobs": threads, "parallel": "hogwild"}}


def measure(method: str, train: arrays.Split, test: arrays.Split, passes: int, args: Any) -> Result:
    """Seconds and errors of each way, a list of one for each repeat."""
    ways = modes(method, args.threads)
    found: Result = {way: {"learn_us": [], "error": []} for way in ways}
    for seed in range(args.repeats):
        for way, parameters in ways.items():
            model = getattr(sapwood, METHODS[method])(passes=passes, random_state=seed, **parameters)
            start = time.perf_counter()
            model.fit(train.X, train.Y)
            seconds = time.perf_counter() - start
            found[way]["learn_us"].append(seconds / (passes * train.X.shape[0]) * 1e6)
            found[way]["error"].append(100 * float(np.mean(model.predict(test.X) != test.Y)))
    return {"passes": passes, "threads": args.threads, "ways": found}


def lines(name: str, method: str, found: Result) -> list[list[str]]:
    """Rows of the table: each way beside one thread, with marks for the bars."""
    alone = found["ways"]["one thread"]
    rows = []
    for way, result in found["ways"].items():
        learn_us, error = statistics.median(result["learn_us"]), statistics.mean(result["error"])
        faster = statistics.median(alone["learn_us"]) / learn_us
        worse = error - statistics.mean(alone["error"])
        marks = (" +" if faster >= FASTER else " -", " +" if worse <= LARGER_ERROR else " -")
        compared = ["", ""] if way == "one thread" else [f"{faster:.2f}{marks[0]}", f"{worse:+.2f}{marks[1]}"]
        rows.append([name, method, way, report.number(learn_us), compared[0], f"{error:.2f}", compared[1]])
    return rows


HEADER = ["", "method", "learns", "us a row", "times as fast", "error %", "points worse"]


def main() -> None:
    args = arguments()
    outcome: dict[str, Any] = {"sets": {}}
    if args.output.exists():
        outcome["sets"] = json.loads(args.output.read_text())["sets"]
    outcome |= {"machine": report.machine()}
    for name in args.sets.split(","):
        cache = prepare(args.data / name).cache
        train, test = arrays.load(cache, "train"), arrays.load(cache, "test")
        for method in args.methods.split(","):
            passes = online_passes(name)
            found = measure(method, train, test, passes, args)
            outcome["sets"].setdefault(name, {})[method] = found
            report.write(args.output, outcome)
    table = [
        line
        for name, of_set in outcome["sets"].items()
        for method, found in of_set.items()
        for line in lines(name, method, found)
    ]
    print(report.table(HEADER, table))


if __name__ == "__main__":
    main()
