"""Example F1 of the powerset tree and the annotation tree (reference) beside binary relevance, on one split.

Run as

    python benchmarks/budgeted_annotation.py PATH_OF_DATA --sets mulan_cal500 mulan_medical --budget 40
"""

from __future__ import annotations

import argparse
import gzip
import io
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sapwood.reference.annotation_tree import AnnotationTree
from sapwood.reference.budgeted import BudgetedParameters
from sapwood.reference.label_sets import as_indicator, as_label_sets, entropy
from sapwood.reference.powerset_tree import PowersetTree


def read(path):
    with gzip.open(path) as file:
        width = int(file.readline().split()[1])
        rest = io.BytesIO(file.read())
    X, labels = load_svmlight_file(rest, n_features=width, multilabel=True, zero_based=True)
    return X, [tuple(sorted(int(label) for label in row)) for row in labels]


def example_f1(truth, answers):
    scores = [
        2 * len(set(a) & set(b)) / (len(a) + len(b)) if a or b else 1.0
        for a, b in zip(truth, answers, strict=True)
    ]
    return float(np.mean(scores))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["mulan_cal500", "mulan_medical"])
    parser.add_argument("--budget", type=int, default=40)
    parser.add_argument("--planes", type=int, default=3)
    parser.add_argument("-C", type=float, nargs="+", default=[0.1, 1.0])
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)  # labels that no training example has
    print("| set | method | C | F1 | H | mean decisions | depth | train s | test s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in args.sets:
        (X, truth), (Z, answers) = (read(args.data / name / f"{part}.txt.gz") for part in ("train", "test"))
        scaler = StandardScaler(with_mean=False).fit(X)
        X, Z = scaler.transform(X).tocsr(), scaler.transform(Z).tocsr()
        for C in args.C:
            parameters = BudgetedParameters(args.budget, C=C, max_planes=args.planes, tol=1e-2)
            balanced = BudgetedParameters(
                args.budget, C=C, max_planes=args.planes, tol=1e-2, class_weight="balanced"
            )
            models = {
                "BR": OneVsRestClassifier(LinearSVC(C=C)),
                "PT": PowersetTree(parameters),
                "AT frequent": AnnotationTree(parameters),
                "AT balanced": AnnotationTree(parameters, rule="balanced"),
                "PT, class weights": PowersetTree(balanced),
                "AT frequent, class weights": AnnotationTree(balanced),
                "AT balanced, class weights": AnnotationTree(balanced, rule="balanced"),
            }
            for method, model in models.items():
                start = time.perf_counter()
                model.fit(X, as_indicator(truth) if method == "BR" else truth)
                fitted = time.perf_counter()
                given = model.predict(Z)
                done = time.perf_counter()
                shape = "| |"
                if method != "BR":
                    shape = f"{model.mean_decisions_:.2f} | {model.depth_} |"
                counts = np.unique([hash(s) for s in truth], return_counts=True)[1]
                print(
                    f"| {name} | {method} | {C:g} | {example_f1(answers, as_label_sets(given)):.3f} "
                    f"| {entropy(counts):.2f} | {shape} {fitted - start:.1f} | {done - fitted:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
