"""Compare sapwood.LabelTreeClassifier with PECOS XR-Linear, Omikuji and napkinXC on the very same arrays.

    sh benchmarks/setup_peers.sh
    python benchmarks/label_tree.py --data DIR          # DIR holds <set>/train.txt.gz and <set>/test.txt.gz
    python benchmarks/label_tree.py --data DIR --sets debian_debtags --options '{}' --options '{"n_trees": 3}'
    python benchmarks/label_tree.py --data DIR --sides pecos,omikuji,napkinxc      # the peers alone

Every side runs in its own process and takes turns with the others; a figure is the median over the repeats.
Training and batches are CPU time, one row at a time and loading are wall time; MB are 2^20 bytes. `loaded MB`
is what loading adds to resident memory, `used MB` what loading and predicting the test rows add. A side that
fails is a row, and its reason stands below the table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from harness import report
from harness.runs import REPOSITORY, DataSet, Interpreters, Result, Variant, median, prepare, take_turns

SETS = "debian_maintainer,debian_debtags,wordnet_ancestors,mulan_delicious,mulan_bibtex"
SIDES = "sapwood,pecos,omikuji,napkinxc"
PECOS = "PECOS XR-Linear"
# Omikuji's own recipe for Bonsai: unbalanced clusters, 100 to a node.
BONSAI = {"cluster_balanced": False, "cluster_k": 100, "min_branch_size": 100}
PEERS = [
    Variant(PECOS, "pecos"),
    Variant("PECOS XR-Linear, hashed rows", "pecos", load={"weight_matrix_type": "HASH_CHUNKED"}),
    Variant("Omikuji Parabel-like, 3 trees", "omikuji"),
    Variant("Omikuji Parabel-like, densified", "omikuji", load={"densify": True}),
    Variant("Omikuji Bonsai-like, 3 trees", "omikuji", fit=BONSAI),
    Variant("napkinXC PLT", "napkinxc", fit={"model": "PLT"}, load={"model": "PLT"}),
    Variant(
        "napkinXC PLT, beam",
        "napkinxc",
        fit={"model": "PLT"},
        load={"model": "PLT", "tree_search_type": "beam", "beam_search_width": 10},
    ),
    Variant("napkinXC BR", "napkinxc", fit={"model": "BR"}, load={"model": "BR"}, most_labels=200),
]
COLUMNS = {
    "train s": "train_s",
    "batch us": "batch_us",
    "row us": "row_us",
    "P@1": "p1",
    "P@3": "p3",
    "P@5": "p5",
    "disk MB": "model_mb",
    "loaded MB": "loaded_mb",
    "used MB": "used_mb",
    "load s": "load_s",
}


def arguments() -> argparse.Namespace:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sets", default=SETS, help="names of data sets, with commas (%(default)s)")
    parser.add_argument("--sides", default=SIDES, help="sides to run, with commas (%(default)s)")
    parser.add_argument("--options", action="append", help="LabelTreeClassifier's, as JSON; repeatable")
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures of other sets in the output file"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one training or prediction")
    parser.add_argument("--sapwood-python", type=Path, default=Interpreters.sapwood, help="this one")
    parser.add_argument("--peers-python", type=Path, default=Interpreters.peers, help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks/results/label_tree.json")
    return parser.parse_args()


def variants(args: argparse.Namespace) -> list[Variant]:
    own = [sapwood_variant(options, args.threads) for options in args.options or ["{}"]]
    peers = [Variant(**{**vars(peer), "threads": args.threads}) for peer in PEERS]
    return [variant for variant in [*own, *peers] if variant.side in args.sides.split(",")]


def sapwood_variant(options: str, threads: int) -> Variant:
    fit = json.loads(options)
    name = ", ".join(["sapwood", *(f"{key}={value}" for key, value in fit.items())])
    return Variant(name, "sapwood", fit=fit, threads=threads)


def set_table(medians: dict[str, Result]) -> str:
    rows, reasons = [], []
    for name, result in medians.items():
        if "error" in result:
            rows.append([name, "failed", *([""] * (len(COLUMNS) - 1))])
            reasons.append(f"\n{name} failed: {result['error']}")
        else:
            rows.append([name, *(cell(key, result[key]) for key in COLUMNS.values())])
    return report.table(["", *COLUMNS], rows) + "".join(reasons)


def cell(key: str, value: float) -> str:
    return f"{value:.2f}" if key in ("p1", "p3", "p5") else report.number(value)


def ratios(own: Result, peers: dict[str, Result]) -> dict[str, Any]:
    """What the project watches: speed over the fastest peer, P@1 against the best, size against PECOS."""
    trained = min(peers, key=lambda name: peers[name]["train_s"])
    batched = min(peers, key=lambda name: peers[name]["batch_us"])
    accurate = max(peers, key=lambda name: peers[name]["p1"])
    return {
        "train_speedup": peers[trained]["train_s"] / own["train_s"],
        "fastest_to_train": trained,
        "p1_gain": own["p1"] - peers[accurate]["p1"],
        "most_accurate": accurate,
        "batch_speedup": peers[batched]["batch_us"] / own["batch_us"],
        "fastest_in_batch": batched,
        "model_mb": own["model_mb"],
        "pecos_mb": peers.get(PECOS, {}).get("model_mb", float("nan")),
    }


def ratio_table(medians: dict[str, dict[str, Result]]) -> tuple[str, dict[str, Any]]:
    header = ["", "train speed-up", "over", "P@1 gain", "over"]
    header += ["batch speed-up", "over", "disk MB", "PECOS MB"]
    rows, kept = [], {}
    for data, results in medians.items():
        working = {name: result for name, result in results.items() if "error" not in result}
        own = {name: result for name, result in working.items() if name.startswith("sapwood")}
        peers = {name: result for name, result in working.items() if name not in own}
        for name, result in own.items() if peers else ():
            r = kept[f"{data}, {name}"] = ratios(result, peers)
            train = [f"{r['train_speedup']:.2f}", r["fastest_to_train"]]
            accuracy = [f"{r['p1_gain']:+.2f}", r["most_accurate"]]
            batch = [f"{r['batch_speedup']:.2f}", r["fastest_in_batch"]]
            size = [report.number(r["model_mb"]), report.number(r["pecos_mb"])]
            rows.append([f"{data}, {name}", *train, *accuracy, *batch, *size])
    return (report.table(header, rows) if rows else "no ratios: sapwood or the peers did not run"), kept


def title(data: DataSet) -> str:
    shape = ", ".join(f"{count:,} {what}" for what, count in data.shape.items())
    return f"\n{data.name} ({shape})\n"


def main() -> None:
    args = arguments()
    interpreters = Interpreters(args.sapwood_python, args.peers_python, args.timeout)
    outcome: dict[str, Any] = {"machine": report.machine(), "threads": args.threads, "repeats": args.repeats}
    outcome |= {"versions": {}, "sets": {}}
    if args.keep:
        outcome["sets"] = json.loads(args.output.read_text())["sets"]
    medians = {name: measured["median"] for name, measured in outcome["sets"].items()}
    for name in args.sets.split(","):
        data = prepare(args.data / name)
        chosen = [variant for variant in variants(args) if variant.takes(data)]
        runs = take_turns(chosen, data, args.repeats, interpreters)
        medians[name] = {variant: median(results) for variant, results in runs.items()}
        for variant in chosen:
            found = medians[name][variant.name].pop("versions", None)
            outcome["versions"].update({variant.side: found} if found else {})
        outcome["sets"][name] = {"shape": data.shape, "median": medians[name], "runs": runs}
        print(title(data) + set_table(medians[name]), flush=True)
        report.write(args.output, outcome)
    text, outcome["ratios"] = ratio_table(medians)
    print("\n" + text)
    report.write(args.output, outcome)


if __name__ == "__main__":
    main()
