"""Compare the online trees with Vowpal Wabbit's on the very same arrays, one thread.

    sh benchmarks/setup_peers.sh
    python benchmarks/online_trees.py --data DIR          # DIR holds <set>/train.txt.gz and <set>/test.txt.gz
    python benchmarks/online_trees.py --data DIR --sets omniglot --methods lom_tree --repeats 1

For each method and side a small grid of step sizes is run once; the step with the smallest test error, for both sides
alike, is then run `--repeats` times, sides in turns (with 1 the search is the measurement). Figures are medians. Both
learn as often over the rows: five times, or once where a set is a long stream. Learning and predicting are CPU time,
parsing excluded on both sides: Vowpal Wabbit's examples are parsed off the clock (harness/sides/vw.py), ours are
arrays. What the output file holds of other sets and methods is kept. Bars: learning 6 times, predicting 4 times as
fast, error below by a tenth.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import report
from harness.runs import (
    REPOSITORY,
    DataSet,
    Interpreters,
    Result,
    Variant,
    median,
    online_passes,
    prepare,
    take_turns,
)

SETS = "debian_maintainer,icd10cm_category,nextword_gutenberg_sample,omniglot"
# Ours, what it is compared with, and the steps of both.
METHODS: dict[str, tuple[dict[str, Any], str, tuple[float, ...], tuple[float, ...]]] = {
    "lom_tree": ({"estimator": "LOMTreeClassifier"}, "log_multi", (0.1, 0.3, 1.0), (0.25, 0.5, 1.0, 2.0)),
    "recall_tree": (
        {"estimator": "RecallTreeClassifier"},
        "recall_tree",
        (0.1, 0.3, 1.0),
        (0.25, 0.5, 1.0),
    ),
    "filter_tree": ({"estimator": "FilterTreeClassifier"}, "ect", (0.1, 0.3, 1.0), (0.25, 0.5, 1.0)),
}
FASTER_LEARNING, FASTER_PREDICTING, SMALLER_ERROR = 6.0, 4.0, 0.9


def arguments() -> argparse.Namespace:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sets", default=SETS, help="names of data sets, with commas (%(default)s)")
    parser.add_argument("--methods", default=",".join(METHODS), help="with commas (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one training or prediction")
    parser.add_argument("--sapwood-python", type=Path, default=Interpreters.sapwood, help="this one")
    parser.add_argument("--peers-python", type=Path, default=Interpreters.peers, help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks/results/online_trees.json")
    return parser.parse_args()


def grid(method: str, passes: int) -> tuple[list[Variant], list[Variant]]:
    """A variant for each step, ours and theirs."""
    own, peer, own_steps, peer_steps = METHODS[method]
    ours = [
        Variant(f"{method}, step {step}", "sapwood_online", fit={**own, "step": step, "passes": passes})
        for step in own_steps
    ]
    theirs = [
        Variant(
            f"VW --{peer}, step {step}",
            "vw",
            fit={"method": peer, "step": step, "passes": passes},
            load={"method": peer},
        )
        for step in peer_steps
    ]
    return ours, theirs


def best(variants: list[Variant], runs: dict[str, list[Result]]) -> Variant | None:
    """The variant with the smallest error; None if all failed."""
    sound = [variant for variant in variants if "error" not in runs[variant.name][0]]
    return max(sound, key=lambda variant: float(runs[variant.name][0]["p1"]), default=None)


def compare(method: str, data: DataSet, args: argparse.Namespace, interpreters: Interpreters) -> Result:
    """Search the grids, then measure the best of each."""
    passes = online_passes(data.name)
    ours, theirs = grid(method, passes)
    searched = take_turns([*ours, *theirs], data, 1, interpreters)
    chosen = [best(ours, searched), best(theirs, searched)]
    found: Result = {"passes": passes, "grid": searched}
    for side, variant in zip(("ours", "theirs"), chosen, strict=True):
        if variant is None:
            return found
        found[side] = {"step": variant.fit["step"]}
    again = [
        replace(variant, name=side)
        for side, variant in zip(("ours", "theirs"), chosen, strict=True)
        if variant
    ]
    runs = (
        searched_once(chosen, searched)
        if args.repeats == 1
        else take_turns(again, data, args.repeats, interpreters)
    )
    for side in ("ours", "theirs"):
        result = median(runs[side])
        if "error" in result:
            return found
        n = data.shape["train"] * passes
        found[side] |= {
            "learn_us": result["train_s"] / n * 1e6,
            "predict_us": result["batch_us"],
            "error": 100 - result["p1"],
            "model_mb": result["model_mb"],
        }
    found["runs"] = runs
    return found


def searched_once(chosen: list[Variant | None], searched: dict[str, list[Result]]) -> dict[str, list[Result]]:
    """With one repeat the runs of the search are the measurement."""
    return {side: searched[v.name] for side, v in zip(("ours", "theirs"), chosen, strict=True) if v}


def line(data: str, method: str, found: Result) -> list[str]:
    """A row of the table: both sides, and the ratios with their bars."""
    if "error" not in found.get("theirs", {}) or "error" not in found.get("ours", {}):
        return [data, method, "failed", *[""] * (len(HEADER) - 3)]
    ours, theirs = found["ours"], found["theirs"]
    learn, predict = theirs["learn_us"] / ours["learn_us"], theirs["predict_us"] / ours["predict_us"]
    error = ours["error"] / theirs["error"]
    cells = [f"{ours['step']:g}", f"{theirs['step']:g}"]
    cells += [report.number(side[key]) for key in ("learn_us", "predict_us") for side in (ours, theirs)]
    cells += [f"{side['error']:.2f}" for side in (ours, theirs)]
    return [
        data,
        method,
        *cells,
        f"{learn:.1f}{mark(learn >= FASTER_LEARNING)}",
        f"{predict:.1f}{mark(predict >= FASTER_PREDICTING)}",
        f"{error:.2f}{mark(error <= SMALLER_ERROR)}",
    ]


def mark(reached: bool) -> str:
    """Whether a bar is reached."""
    return " +" if reached else " -"


HEADER = ["", "method", "step", "VW's", "learn us", "VW's", "predict us", "VW's", "error %", "VW's"]
HEADER += ["learning x", "predicting x", "error ratio"]


def main() -> None:
    args = arguments()
    interpreters = Interpreters(args.sapwood_python, args.peers_python, args.timeout)
    outcome: dict[str, Any] = {"machine": report.machine(), "threads": 1, "repeats": args.repeats, "sets": {}}
    if args.output.exists():
        outcome["sets"] = json.loads(args.output.read_text())["sets"]
    rows = []
    for name in args.sets.split(","):
        data = prepare(args.data / name)
        kept = outcome["sets"].get(name, {}).get("methods", {})
        outcome["sets"][name] = {"shape": data.shape, "methods": kept}
        for method in args.methods.split(","):
            found = compare(method, data, args, interpreters)
            outcome["sets"][name]["methods"][method] = found
            report.write(args.output, outcome)
    for name, of_set in outcome["sets"].items():
        rows += [line(name, method, found) for method, found in of_set["methods"].items()]
    print(report.table(HEADER, rows))


if __name__ == "__main__":
    main()
