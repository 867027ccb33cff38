"""Compare sapwood.LabelBTreeClassifier with the online learners of napkinXC and Vowpal Wabbit, and with the batch tree.

    sh benchmarks/setup_peers.sh
    python benchmarks/label_btree.py --data DIR          # DIR holds <set>/train.txt.gz and <set>/test.txt.gz
    python benchmarks/label_btree.py --data DIR --parts growth,late

Three parts. `sets`: every side learns the same arrays in the same order in its own process, on one thread; learning and
batches are CPU time per example, the median over the repeats. PECOS, which is no online learner, stands for prediction.
`growth`: synthetic streams of 1,000 to 1,000,000 labels; the exponent a of time ~ labels^a, and the depth against its
bound; settled rows are counted with the prediction that `partial_fit` makes before it learns them. `late`: half of the
labels come in the second half of the stream; how the old and the new fare. What the output file holds of other
parts and sets is kept.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from harness import arrays, report
from harness.runs import REPOSITORY, DataSet, Interpreters, Variant, median, prepare, take_turns
from sapwood import LabelBTreeClassifier

SETS = (
    "debian_maintainer,wordnet_hypernym,icd10cm_category,nextword_gutenberg_sample,debian_debtags,"
    "wordnet_ancestors,mulan_delicious"
)
BTREE = {"estimator": "LabelBTreeClassifier"}
OPLT = {"model": "PLT", "online_tree": "onlineBestScore"}
OURS = [
    *(Variant(f"label B-tree, pass {n}", "sapwood", fit={**BTREE, "passes": n}) for n in (1, 2, 3)),
    Variant("batch label tree", "sapwood"),
]
ONLINE_PEERS = [
    Variant("napkinXC online PLT", "napkinxc", fit=OPLT, load=OPLT),
    Variant("VW plt", "vw", fit={"method": "plt"}, load={"method": "plt"}),
]
ONE_LABEL_PEERS = [
    Variant("VW recall_tree", "vw", fit={"method": "recall_tree"}, load={"method": "recall_tree"}),
    Variant("VW log_multi", "vw", fit={"method": "log_multi"}, load={"method": "log_multi"}),
]
PECOS = Variant("PECOS XR-Linear (batch)", "pecos")
PARTS = ("sets", "growth", "late")
MANY = 100  # labels among which there is an old one


def arguments() -> argparse.Namespace:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sets", default=SETS, help="names of data sets, with commas (%(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of them to run (%(default)s)")
    parser.add_argument("--ours", action="store_true", help="without the peers")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-labels", type=int, default=1_000_000, help="for growth")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one training or prediction")
    parser.add_argument("--peers-python", type=Path, default=Interpreters.peers, help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks/results/label_btree.json")
    return parser.parse_args()


def run_sets(args: argparse.Namespace, results: dict[str, Any]) -> Iterator[None]:
    """Fill in the results, set by set, and stop after each so that it can be kept."""
    interpreters = Interpreters(peers=args.peers_python, timeout=args.timeout)
    for name in args.sets.split(","):
        data = prepare(args.data / name)
        sides = take_turns(variants(data, args.ours), data, args.repeats, interpreters)
        results[name] = {
            "shape": data.shape,
            "repeats": args.repeats,
            "median": {side: median(runs) for side, runs in sides.items()},
        }
        print(f"\n{name}: {data.shape}\n\n{sets_table(results[name])}\n", flush=True)
        yield


def variants(data: DataSet, ours: bool) -> list[Variant]:
    if ours:
        return OURS
    is_multilabel = arrays.load(data.cache, "train").is_multilabel
    return [*OURS, *ONLINE_PEERS, *([] if is_multilabel else ONE_LABEL_PEERS), PECOS]


def sets_table(result: dict[str, Any]) -> str:
    n_train = result["shape"]["train"]
    rows = []
    for side, figures in result["median"].items():
        if "error" in figures:
            rows.append([side, figures["error"], "", "", "", ""])
            continue
        passes = int(side[-1]) if side.startswith("label B-tree") else 1
        learn = figures["train_s"] / n_train / passes * 1e6
        cells = (learn, figures["batch_us"], figures["p1"], figures["p5"], figures["model_mb"])
        rows.append(
            [side, *(report.number(x) if i in (0, 1, 4) else f"{x:.2f}" for i, x in enumerate(cells))]
        )
    return report.table(["", "learn us / row and pass", "predict us", "P@1", "P@5", "disk MB"], rows)


def synthetic(n_labels: int, rows_a_label: int, seed: int) -> tuple[Any, np.ndarray]:
    """Rows of 20 features, labels Zipf-like: 5 features of a label, 5 of its group, 10 at random."""
    random = np.random.default_rng(seed)
    n, n_features = n_labels * rows_a_label, 4 * n_labels
    codes = np.concatenate([np.arange(n_labels), random.zipf(1.3, n - n_labels) % n_labels])
    random.shuffle(codes)
    own = (codes[:, None] * 2654435761 + np.arange(5) * 40503) % n_features
    group = ((codes[:, None] // 50 + 7) * 97 + np.arange(5) * 1009) % n_features
    noise = random.integers(0, n_features, (n, 10))
    indices = np.sort(np.concatenate([own, group, noise], axis=1), axis=1).astype(np.int32)
    X = sp.csr_matrix(
        (np.ones(indices.size, np.float32), indices.ravel(), np.arange(n + 1) * 20), (n, n_features)
    )
    X.sum_duplicates()
    return X, codes


def run_growth(args: argparse.Namespace) -> list[dict[str, Any]]:
    results = []
    for n_labels in (10**k for k in range(3, 7)):
        if n_labels > args.most_labels:
            break
        rows_a_label = 5 if n_labels < 10**6 else 2
        X, codes = synthetic(n_labels, rows_a_label, 0)
        model = LabelBTreeClassifier(random_state=0, passes=1)
        start = time.process_time()
        model.fit(X, codes)
        first = time.process_time() - start
        rows = np.random.default_rng(1).permutation(X.shape[0])[:20_000]
        held = sp.csr_matrix(X[rows])
        start = time.process_time()
        model.predict_topk(held, k=5)
        predict = time.process_time() - start
        start = time.process_time()
        model.partial_fit(held, codes[rows])
        settled = time.process_time() - start
        bound = math.floor(math.log(n_labels, 8) + 1)
        figures = {
            "labels": n_labels,
            "rows": X.shape[0],
            "first_pass_us": first / X.shape[0] * 1e6,
            "settled_us": settled / len(rows) * 1e6,
            "predict_us": predict / len(rows) * 1e6,
            "depth": model.depth_,
            "depth_bound": bound,
            "memory_mb": model.memory_ / 2**20,
        }
        print(figures, flush=True)
        results.append(figures)
    return results


def exponent(results: list[dict[str, Any]], figure: str) -> float:
    """The slope of log time over log labels."""
    labels, times = (np.log([r[key] for r in results]) for key in ("labels", figure))
    return float(np.polyfit(labels, times, 1)[0])


def run_late(args: argparse.Namespace, name: str = "debian_maintainer") -> dict[str, float]:
    """Errors on old and new labels where the new come in the second half, against never and from the start.

    "Among the old": the best of the old labels is the answer. That is what the same rows ask where the new have never
    been met, so it tells how much was forgotten; the rest of the error on the old is that the new can be mistaken for.
    """
    data = prepare(args.data / name)
    train, test = (arrays.load(data.cache, split) for split in ("train", "test"))
    is_new = np.random.default_rng(0).permutation(data.n_labels) % 2 == 1
    old_rows, new_rows = (np.flatnonzero(is_new[train.Y] == late) for late in (False, True))
    half = len(old_rows) // 2
    second = np.random.default_rng(1).permutation(np.concatenate([old_rows[half:], new_rows]))
    streams = {
        "late": np.concatenate([old_rows[:half], second]),
        "from the start": np.arange(len(train.Y)),
        "never": np.concatenate([old_rows[:half], second[~is_new[train.Y[second]]]]),
    }
    results = {}
    for when, rows in streams.items():
        model = LabelBTreeClassifier(random_state=0, passes=1).fit(train.X[rows], train.Y[rows])
        answers = model.predict_topk(test.X, k=MANY)[0]
        first_old = answers[np.arange(len(answers)), np.argmax(~is_new[answers], axis=1)]
        known = np.isin(test.Y, train.Y)
        old, new = (known & (is_new[test.Y] == late) for late in (False, True))
        results[f"old, new {when}"] = error(answers[old, 0], test.Y[old])
        results[f"old, new {when}, among the old"] = error(first_old[old], test.Y[old])
        if when != "never":
            results[f"new, {when}"] = error(answers[new, 0], test.Y[new])
    return results


def error(answers: np.ndarray, truth: np.ndarray) -> float:
    """In percent."""
    return 100 * float((answers != truth).mean())


def main() -> None:
    args = arguments()
    parts = args.parts.split(",")
    content: dict[str, Any] = json.loads(args.output.read_text()) if args.output.exists() else {}
    content |= {"machine": report.machine(), "threads": 1}
    if "growth" in parts:
        content["growth"] = run_growth(args)
        for figure in ("first_pass_us", "settled_us", "predict_us"):
            content[f"exponent_{figure}"] = exponent(content["growth"], figure)
            print(f"{figure}: labels^{content[f'exponent_{figure}']:.3f}", flush=True)
    if "late" in parts:
        content["late"] = run_late(args)
        print(content["late"], flush=True)
    report.write(args.output, content)
    if "sets" in parts:
        for _ in run_sets(args, content.setdefault("sets", {})):
            report.write(args.output, content)


if __name__ == "__main__":
    main()
