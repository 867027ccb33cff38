"""Example F1 and speed of the powerset tree and the annotation tree beside BR, LP, HOMER and FastXML, in folds.

Run as

    python benchmarks/coding_trees.py --data PATH_OF_DATA
    python benchmarks/coding_trees.py --data PATH_OF_DATA --sets mulan_delicious --folds 1 --repeats 5 --output OUT

Training and test rows of a set are joined and dealt into folds anew. Every method sees the same rows; dense columns
(cal500) are standardised on the training rows. "LinearSVC" is scikit-learn's with its defaults, as in the paper; the
others are ours with theirs. Prediction runs on one thread; the time is the least of the repeats.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from harness import report
from sapwood import (
    AnnotationTreeClassifier,
    BinaryRelevanceClassifier,
    FastXMLClassifier,
    LabelPowersetClassifier,
    LabelTreeClassifier,
    PowersetTreeClassifier,
)
from sapwood.io import read_xmc
from sapwood.metrics import example_f1

REPOSITORY = Path(__file__).resolve().parent.parent
SETS = [
    "mulan_cal500",
    "mulan_corel5k",
    "mulan_bibtex",
    "mulan_delicious",
    "mulan_enron",
    "mulan_medical",
    "reuters21578",
]
MOST_FOLDS = {"mulan_delicious": 1, "mulan_corel5k": 5, "mulan_bibtex": 5, "reuters21578": 5}
"""Where ten folds of one-against-rest take too long."""
BEAMS = (1, 10, 30)
PAPER = ["BR LinearSVC", "LP", "HOMER", "FastXML", "PT", "AT"]
"""The methods that the paper ranks."""
OURS = ["BR", "LP", "HOMER", "FastXML", "PT, beam 30", "AT, beam 30"]
PRINTED = {
    "mulan_cal500": {
        "BR": 0.317,
        "LP": 0.345,
        "HOMER": 0.321,
        "FastXML": 0.259,
        "SLEEC": 0.310,
        "PD-Sparse": 0.322,
        "PT": 0.324,
        "AT": 0.362,
    },
    "mulan_corel5k": {
        "BR": 0.100,
        "LP": 0.138,
        "HOMER": 0.113,
        "FastXML": 0.056,
        "SLEEC": 0.084,
        "PD-Sparse": 0.110,
        "PT": 0.123,
        "AT": 0.141,
    },
}
"""As table 8 of the paper prints them; SLEEC and PD-Sparse are not run here."""


def read(folder):
    parts = [read_xmc(folder / f"{part}.txt.gz") for part in ("train", "test")]
    X = sp.vstack([X for X, _ in parts], format="csr").astype(np.float32)
    Y = sp.vstack([Y for _, Y in parts], format="csr")
    return X, Y


def methods(n_jobs):
    """Name of each method and how it is made."""
    return {
        "BR LinearSVC": lambda: OneVsRestClassifier(LinearSVC(random_state=0), n_jobs=n_jobs),
        "BR": lambda: BinaryRelevanceClassifier(random_state=0, n_jobs=n_jobs),
        "LP": lambda: LabelPowersetClassifier(random_state=0, n_jobs=n_jobs),
        "HOMER": lambda: LabelTreeClassifier(
            preset="homer", class_weight=None, random_state=0, n_jobs=n_jobs
        ),
        "FastXML": lambda: FastXMLClassifier(random_state=0, n_jobs=n_jobs),
        "PT": lambda: PowersetTreeClassifier(n_jobs=n_jobs),
        "AT": lambda: AnnotationTreeClassifier(n_jobs=n_jobs),
        "AT balanced": lambda: AnnotationTreeClassifier(rule="balanced", n_jobs=n_jobs),
    }


def split(X, Y, train, test):
    if X.nnz > 0.5 * X.shape[0] * X.shape[1]:
        scaler = StandardScaler().fit(X[train].toarray())
        X = sp.csr_matrix(scaler.transform(X.toarray()), dtype=np.float32)
    return X[train], Y[train], X[test], Y[test]


def least_seconds(predict, X, repeats):
    """The answer, and the shortest of the times that it took."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = predict(X)
        taken.append(time.perf_counter() - start)
    return answer, min(taken)


def one_fold(X, Y, Z, truth, n_jobs, repeats):
    results = {}
    for name, make in methods(n_jobs).items():
        start = time.perf_counter()
        model = make().fit(X, Y)
        fitted = time.perf_counter() - start
        if "n_jobs" in model.get_params():
            model.set_params(n_jobs=1)
        shape = {}
        if hasattr(model, "mean_decisions_"):
            shape = {"H": model.entropy_, "decisions": model.mean_decisions_, "depth": model.depth_}
        for beam in BEAMS if hasattr(model, "beam") and shape else (None,):
            if beam is not None:
                model.set_params(beam=beam)
            answer, seconds = least_seconds(model.predict, Z, repeats)
            results[name if beam in (None, 1) else f"{name}, beam {beam}"] = {
                "f1": example_f1(truth, answer),
                "train_seconds": fitted,
                "test_microseconds": 1e6 * seconds / Z.shape[0],
                **shape,
            }
    return results


def summary(folds):
    """Mean and standard error of F1, medians of the rest."""
    out = {}
    for name in folds[0]:
        runs = [fold[name] for fold in folds]
        f1 = [run["f1"] for run in runs]
        error = float(np.std(f1, ddof=1) / np.sqrt(len(f1))) if len(f1) > 1 else float("nan")
        rest = {key: float(np.median([run[key] for run in runs])) for key in runs[0] if key != "f1"}
        out[name] = {"f1": float(np.mean(f1)), "f1_error": error, **rest}
    return out


def ranks(results, names):
    """Mean rank of F1 over the sets, 1 the best; a method without a result on a set comes last there."""
    each = []
    for of_set in results.values():
        scores = np.array([of_set[name]["f1"] if name in of_set else -1.0 for name in names])
        each.append([1 + (scores > s).sum() + ((scores == s).sum() - 1) / 2 for s in scores])
    return dict(zip(names, np.mean(each, axis=0).tolist(), strict=True))


def print_tables(results):
    names = list(dict.fromkeys(name for of_set in results.values() for name in of_set))

    def rows(cell):
        return [
            [name, *(cell(of_set[name]) if name in of_set else "-" for of_set in results.values())]
            for name in names
        ]

    header = [name.removeprefix("mulan_") for name in results]
    print("\nExample F1\n")
    printed = [
        [f"{name} (printed)", *(f"{PRINTED[s][name]:.3f}" if s in PRINTED else "-" for s in results)]
        for name in PRINTED["mulan_cal500"]
    ]
    f1 = rows(lambda r: f"{r['f1']:.3f}" + (f" ± {r['f1_error']:.3f}" if r["f1_error"] is not None else ""))
    print(report.table(["method", *header], f1 + printed))
    print("\nMicroseconds to predict a row, one thread\n")
    print(report.table(["method", *header], rows(lambda r: report.number(r["test_microseconds"]))))
    print("\nSeconds to train\n")
    print(report.table(["method", *header], rows(lambda r: report.number(r["train_seconds"]))))
    print("\nMean decisions (H), depth\n")
    trees = [name for name in names if any("H" in of_set.get(name, {}) for of_set in results.values())]
    shapes = [
        [n, *(f"{r[n]['decisions']:.2f} ({r[n]['H']:.2f}), {r[n]['depth']:.0f}" for r in results.values())]
        for n in trees
        if "beam" not in n
    ]
    print(report.table(["method", *header], shapes))
    for title, chosen in (("as in the paper", PAPER), ("our solvers, beam 30", OURS)):
        means = ranks(results, chosen)
        print(
            f"\nMean rank, {title}: "
            + ", ".join(f"{n} {r:.2f}" for n, r in sorted(means.items(), key=lambda x: x[1]))
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--folds", type=int, default=10, help="how many of ten folds to run")
    parser.add_argument("--repeats", type=int, default=1, help="predictions of each fold")
    parser.add_argument("--jobs", type=int, default=2, help="threads to train")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks/results/coding_trees.json")
    parser.add_argument("--add", action="store_true", help="keep the sets that the output already holds")
    parser.add_argument("--tables", action="store_true", help="print the output as it is, run nothing")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)  # labels that no training row has
    results = {}
    if args.tables:
        return print_tables(json.loads(args.output.read_text())["results"])
    if args.add and args.output.exists():
        results = json.loads(args.output.read_text())["results"]
    for name in args.sets:
        X, Y = read(args.data / name)
        n_folds = min(args.folds, MOST_FOLDS.get(name, 10))
        folds = []
        for train, test in list(KFold(10, shuffle=True, random_state=0).split(X))[:n_folds]:
            folds.append(one_fold(*split(X, Y, train, test), args.jobs, args.repeats))
            print(f"{name}: {len(folds)} of {n_folds} folds", flush=True)
        results[name] = summary(folds)
        content = {
            "machine": report.machine(),
            "folds": args.folds,
            "repeats": args.repeats,
            "jobs": args.jobs,
        }
        report.write(args.output, {**content, "results": results})
    return print_tables(results)


if __name__ == "__main__":
    main()
