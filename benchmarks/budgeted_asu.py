"""Error at a small share of the features on the asu_* sets: BAC and SBT against other methods.

Five-fold cross-validation; every method chooses its parameters on --inner folds inside the training part, the
unpruned tree takes the pruned one's. Linear SVM has all features, FGM is BAC without a tree. LightGBM's
cost-efficient boosting and an oblique tree (treeple) run in the peers' environment: see setup_peers.sh. "RFE", on
demand (--methods RFE), is a linear SVM that drops its lightest features until the share is reached: it tells what a
linear classifier can do at all with so few features. Run as

    python benchmarks/budgeted_asu.py PATH_OF_DATA --sets asu_pcmac asu_colon --share 0.02
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import RFE
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from harness import report
from sapwood import BudgetedClassifier, BudgetedTreeClassifier
from sapwood.io import read_svmlight

SETS = ["asu_pcmac", "asu_colon", "asu_basehock", "asu_relathe", "asu_leukemia", "asu_madelon"]
TEXT = {"asu_pcmac", "asu_basehock", "asu_relathe"}
METHODS = ["SVM", "CART", "oblique tree", "LightGBM CEGB", "FGM (BAC)", "SBT"]
PEERS = {"oblique tree": "oblique", "LightGBM CEGB": "lightgbm"}
TREE_DEPTH = 6
FOLDS = 5
HERE = Path(__file__).parent


def read(path):
    parts = [read_svmlight(path / f"{part}.txt.gz")[:2] for part in ("train", "test")]
    width = max(X.shape[1] for X, _ in parts)
    X = sp.vstack([sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width)) for X, _ in parts])
    y = np.concatenate([y for _, y in parts])
    return X.tocsr().astype(np.float32), np.where(y == y.max(), 1, -1)


def scalings(X, text):
    """Each is a function of (learn, test) indices; if there are several, the choice among them is a parameter."""
    if not text:
        dense = X.toarray()

        def standard(learn, test):
            scaler = StandardScaler().fit(dense[learn])
            return scaler.transform(dense[learn]), scaler.transform(dense[test])

        return {"standard": standard}
    log_counts = X.copy()
    log_counts.data = np.log1p(log_counts.data)

    def tf_idf(learn, test):
        rows_with = np.bincount(X[learn].indices, minlength=X.shape[1])
        idf = sp.diags(np.log(len(learn) / np.maximum(1, rows_with)) + 1)
        return tuple(normalize(log_counts[part] @ idf).tocsr().astype(np.float32) for part in (learn, test))

    binary = X.copy()
    binary.data[:] = 1.0
    return {"tf-idf": tf_idf, "binary": lambda learn, test: (binary[learn], binary[test])}


def candidates(method, limit, text):
    """What a method's parameters are chosen from."""
    # Few planes of many columns are quick, many planes of few choose each with an eye on all that came before.
    bac_C = (10.0, 100.0, 300.0) if text else (0.001, 0.01, 0.1)
    third, tenth = max(1, limit // 3), max(1, limit // 10)
    shapes = [(tenth, 10), (1, limit)] if text else [(limit, 1), (third, 3), (tenth, 10)]
    if method == "SVM":
        return [LinearSVC(C=C, random_state=0) for C in (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)]
    if method == "CART":
        return [DecisionTreeClassifier(random_state=0)]
    if method == "RFE":
        svm = (LinearSVC(C=C, random_state=0) for C in ((0.1, 1.0) if text else (0.01, 1.0)))
        return [RFE(one, n_features_to_select=limit, step=0.1) for one in svm]
    if method == "FGM (BAC)":
        return [
            BudgetedClassifier(budget=budget, max_planes=most, C=C, normalize=False)
            for budget, most in dict.fromkeys(shapes)
            for C in bac_C
        ]
    return [
        BudgetedTreeClassifier(
            budget=budget,
            max_planes=most,
            C=C,
            class_weight=weight,
            max_depth=TREE_DEPTH,
            max_features=limit,
            normalize=False,
            random_state=0,
        )
        for budget, most in dict.fromkeys([*shapes, (tenth, 1)])
        for C in bac_C[1:]
        for weight in (None, "balanced")
    ]


def count_features(model, width):
    if isinstance(model, RFE):
        return int(model.support_.sum())
    if isinstance(model, DecisionTreeClassifier):
        return int(np.sum(model.feature_importances_ > 0))
    return width if isinstance(model, LinearSVC) else len(model.selected_features_)


def describe(model, X, y, chosen):
    """What is kept of one fold."""
    nodes = grown = 0
    if isinstance(model, BudgetedTreeClassifier):
        nodes = model.n_nodes_
        grown = getattr(model, "unpruned_n_nodes_", nodes)
    elif isinstance(model, DecisionTreeClassifier):
        nodes = model.tree_.node_count
    return {
        "error": float(np.mean(model.predict(X) != y)),
        "features": count_features(model, X.shape[1]),
        "nodes": nodes,
        "nodes grown": grown,
        "chosen": chosen,
    }


def told(model):
    """The parameters that were chosen from several."""
    base = model.estimator if isinstance(model, RFE) else model
    names = ("C", "budget", "max_planes", "class_weight")
    parameters = base.get_params()
    return " ".join(f"{name}={parameters[name]}" for name in names if parameters.get(name) is not None)


def outer_folds(X, y):
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))


def evaluate(X, y, text, models, inner_folds):
    """A description for each outer fold, and again for the tree without pruning if it is one."""
    rows, unpruned = [], []
    ways = scalings(X, text)
    if isinstance(models[0], (BudgetedClassifier, BudgetedTreeClassifier)):
        ways = dict(list(ways.items())[:1])  # the first was better on all sets, and their grids are larger
    options = [(way, model) for way in ways for model in models]
    for learn, test in outer_folds(X, y):
        wrong = np.zeros(len(options))
        inner = StratifiedKFold(inner_folds, shuffle=True, random_state=1)
        for part, check in inner.split(learn, y[learn]) if len(options) > 1 else ():
            data = {way: ways[way](learn[part], learn[check]) for way in ways}
            for k, (way, model) in enumerate(options):
                A, B = data[way]
                wrong[k] += np.sum(clone(model).fit(A, y[learn[part]]).predict(B) != y[learn[check]])
        way, model = options[int(np.argmin(wrong))]
        A, B = ways[way](learn, test)
        chosen = f"{way} {told(model)}"
        rows.append(describe(clone(model).fit(A, y[learn]), B, y[test], chosen))
        if isinstance(model, BudgetedTreeClassifier):
            whole = clone(model).set_params(prune=False).fit(A, y[learn])
            unpruned.append(describe(whole, B, y[test], chosen))
    return rows, unpruned


def evaluate_peer(X, y, method, limit, inner_folds, python):
    """The same, in the peers' environment. Trees are told the numbers as they are in the file."""
    with tempfile.TemporaryDirectory() as folder:
        sp.save_npz(Path(folder, "X.npz"), X)
        fold = np.empty(len(y), dtype=np.int64)
        for number, (_, test) in enumerate(outer_folds(X, y)):
            fold[test] = number
        np.savez(Path(folder, "y.npz"), y=y, fold=fold)
        command = [str(python), HERE / "budgeted_peers.py", method, folder, str(limit), str(inner_folds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        print(f"{method}: {lines[-1]}", flush=True)
        return []
    return json.loads(done.stdout.splitlines()[-1])


def summary(name, method, rows, seconds):
    errors = np.array([row["error"] for row in rows])
    return {
        "set": name,
        "method": method,
        "error": float(errors.mean()),
        "standard error": float(errors.std(ddof=1) / np.sqrt(len(errors))),
        "features": float(np.mean([row["features"] for row in rows])),
        "most features": int(max(row["features"] for row in rows)),
        "nodes": float(np.mean([row["nodes"] for row in rows])),
        "nodes grown": float(np.mean([row.get("nodes grown", row["nodes"]) for row in rows])),
        "seconds": seconds,
        "chosen": list(dict.fromkeys(row["chosen"] for row in rows)),
        "fold errors": errors.tolist(),
    }


def line(result):
    return [
        result["set"],
        result["method"],
        f"{result['error']:.2%} ± {result['standard error']:.2%}",
        f"{result['features']:.0f}",
        f"{result['nodes']:.1f}",
        f"{result['seconds']:.0f}",
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--inner", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--peers-python", type=Path, default=HERE.parent / ".venv-peers/bin/python")
    parser.add_argument("--output", type=Path, default=HERE / "results/budgeted_asu.json")
    args = parser.parse_args()
    results = []
    for name in args.sets:
        X, y = read(args.data / name)
        limit = int(args.share * X.shape[1])
        for method in args.methods:
            start = time.process_time()
            if method in PEERS:
                rows, unpruned = evaluate_peer(X, y, PEERS[method], limit, args.inner, args.peers_python), []
            else:
                models = candidates(method, limit, name in TEXT)
                rows, unpruned = evaluate(X, y, name in TEXT, models, args.inner)
            seconds = time.process_time() - start
            for table, label in ((rows, method), (unpruned, f"{method} unpruned")):
                if table:
                    results.append(summary(name, label, table, seconds))
                    print("|", " | ".join(line(results[-1])), "|", flush=True)
            write(args.output, args.share, results)
    print(report.table(["set", "method", "error", "features", "nodes", "CPU s"], [line(r) for r in results]))


def write(path, share, results):
    content = {"command": "python benchmarks/budgeted_asu.py DATA", "share": share}
    content["results"] = earlier(path, share, results) + results
    report.write(path, {"machine": report.machine(), **content})


def earlier(path, share, results):
    """What earlier runs at this share have found for other sets and methods: a run may do a part."""
    if not path.exists():
        return []
    content = json.loads(path.read_text())
    done = {(result["set"], result["method"]) for result in results}
    kept = content["results"] if content["share"] == share else []
    return [result for result in kept if (result["set"], result["method"]) not in done]


if __name__ == "__main__":
    main()
