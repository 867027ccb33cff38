"""How sapwood.LabelTreeClassifier gains from threads (wall time) and from instruction sets (CPU time).

    python benchmarks/label_tree_scaling.py --data DIR [--sets a,b] [--options '{"n_trees": 3}']
    python benchmarks/label_tree_scaling.py --data DIR --threads 1,2,4 --isas avx512,avx2,baseline

The variable SAPWOOD_ISA of the worker's process asks for an instruction set. The last column tells
whether the top labels of the test rows are those of the first line: they must be, for any number of threads.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from harness import report
from harness.runs import REPOSITORY, Interpreters, Result, Variant, median, prepare, take_turns

COLUMNS = {
    "train wall s": "train_wall_s",
    "train CPU s": "train_s",
    "batch us": "batch_us",
    "row us": "row_us",
}


def arguments() -> argparse.Namespace:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sets", default="debian_maintainer,wordnet_ancestors")
    parser.add_argument("--options", default="{}", help="parameters of LabelTreeClassifier as JSON")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (%(default)s)")
    parser.add_argument("--isas", default="avx512,avx2,baseline", help="values of SAPWOOD_ISA (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one training or prediction")
    parser.add_argument("--sapwood-python", type=Path, default=Interpreters.sapwood, help="this one")
    parser.add_argument(
        "--output", type=Path, default=REPOSITORY / "benchmarks/results/label_tree_scaling.json"
    )
    return parser.parse_args()


def variants(args: argparse.Namespace) -> list[list[Variant]]:
    fit = json.loads(args.options)
    threads = [int(count) for count in args.threads.split(",")]
    isas = args.isas.split(",")
    return [
        [Variant(f"n_jobs={count}", "sapwood", fit=fit, threads=count) for count in threads],
        [Variant(isa, "sapwood", fit=fit, environment={"SAPWOOD_ISA": isa}) for isa in isas],
    ]


def table(name: str, medians: dict[str, Result]) -> str:
    """One line a variant, with its speed-up over the first variant that worked."""
    working = [result for result in medians.values() if "error" not in result]
    header = [name, *COLUMNS, "train wall speed-up", "batch speed-up", "P@1", "same answers"]
    rows = []
    for variant, result in medians.items():
        if "error" in result:
            rows.append([f"{variant}: {result['error']}", *([""] * (len(header) - 1))])
            continue
        speedups = [working[0][key] / result[key] for key in ("train_wall_s", "batch_us")]
        same = "yes" if result["answers"] == working[0]["answers"] else "no"
        figures = [report.number(result[key]) for key in COLUMNS.values()]
        rows.append([variant, *figures, *(f"{ratio:.2f}" for ratio in speedups), f"{result['p1']:.2f}", same])
    return report.table(header, rows)


def main() -> None:
    args = arguments()
    interpreters = Interpreters(sapwood=args.sapwood_python, timeout=args.timeout)
    outcome: dict[str, Any] = {"machine": report.machine(), "repeats": args.repeats, "sets": {}}
    for name in args.sets.split(","):
        data = prepare(args.data / name)
        outcome["sets"][name] = {}
        for group in variants(args):
            runs = take_turns(group, data, args.repeats, interpreters)
            medians = {variant: median(results) for variant, results in runs.items()}
            outcome["sets"][name] |= medians
            print("\n" + table(name, medians), flush=True)
    report.write(args.output, outcome)


if __name__ == "__main__":
    main()
