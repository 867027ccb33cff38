"""How many weights the online trees keep beside one-against-all: the paper's claim is at most twice as many.

    python benchmarks/online_memory.py --data DIR          # DIR holds <set>/train.txt.gz and <set>/test.txt.gz
    python benchmarks/online_memory.py --data DIR --sets icd10cm_category --passes 1

All learn the same rows with their defaults, one-against-all (ours, AdaGrad, logistic loss) by `partial_fit`. Counted
in the model's file: weights that are kept, in lines of 16 whether all have learned or not; of these the weights that
are not 0; both beside one-against-all's; and beside the table of labels x columns that a plain one-against-all is.
Sums of squared gradients, which are as many again on all sides, are left out.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from harness import arrays, report
from harness.runs import REPOSITORY, online_passes, prepare
from sapwood import model_file, online
from sapwood.flat import OneVsAllClassifier

SETS = "debian_maintainer,icd10cm_category,nextword_gutenberg_sample,omniglot"
TREES = ("RecallTreeClassifier", "LOMTreeClassifier", "FilterTreeClassifier")
TREE_WEIGHTS = ("weights", "line_weights", "dense_weights")


def count(model: Any) -> dict[str, int]:
    """Weights kept, and those that are not 0, as the model's file holds them."""
    with tempfile.NamedTemporaryFile() as file:
        model.save(file.name)
        held_in_file = model_file.read(file.name).tensors
        tensors = {name.removeprefix("model."): array for name, array in held_in_file.items()}
        if "lines" in tensors:  # one-against-all: 16 weights, then their 16 squares
            held = [tensors["lines"].reshape(-1, 2, 16)[:, 0]]
        else:
            held = [tensors[name] for name in TREE_WEIGHTS if name in tensors]
        return {
            "kept": sum(array.size for array in held),
            "not_zero": sum(int(np.count_nonzero(array)) for array in held),
        }


def measure(folder: Path, passes: int | None) -> dict[str, Any]:
    """Of one set: the table's size, and what each method keeps."""
    data = prepare(folder)
    train = arrays.load(data.cache, "train")
    n = passes or online_passes(data.name)
    flat = OneVsAllClassifier(solver="adagrad", loss="logistic", random_state=0)
    for _ in range(n):
        flat.partial_fit(train.X, train.Y)
    found: dict[str, Any] = {
        "passes": n,
        "table": len(flat.classes_) * train.X.shape[1],
        "OneVsAllClassifier": count(flat),
    }
    for name in TREES:
        model = getattr(online, name)(passes=n, random_state=0).fit(train.X, train.Y)
        found[name] = count(model)
    return found


def line(data: str, method: str, found: dict[str, Any]) -> list[str]:
    """A row of the table of one method."""
    own, flat = found[method], found["OneVsAllClassifier"]
    return [
        data,
        method,
        f"{own['kept'] / 1e6:.2f}",
        f"{own['kept'] / flat['kept']:.2f}",
        f"{own['not_zero'] / flat['not_zero']:.2f}",
        f"{own['kept'] / found['table']:.2f}",
    ]


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sets", default=SETS, help="names of data sets, with commas (%(default)s)")
    parser.add_argument("--passes", type=int, help="for all sets (5, or 1 where a set is a long stream)")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks/results/online_memory.json")
    args = parser.parse_args()
    outcome: dict[str, Any] = {"machine": report.machine(), "sets": {}}
    for name in args.sets.split(","):
        outcome["sets"][name] = measure(args.data / name, args.passes)
        report.write(args.output, outcome)
    header = [
        "",
        "method",
        "weights kept, millions",
        "x one-against-all's",
        "not 0, x its",
        "x labels x columns",
    ]
    rows = [
        line(name, method, found)
        for name, found in outcome["sets"].items()
        for method in ("OneVsAllClassifier", *TREES)
    ]
    print(report.table(header, rows))


if __name__ == "__main__":
    main()
