"""The ablations of the Recall Tree paper on the data sets there are: figure 5b, figure 5a, section 4.5.

Run as

    python benchmarks/recall_tree_ablations.py candidates --data PATH_OF_DATA
    python benchmarks/recall_tree_ablations.py order --data PATH_OF_DATA
    python benchmarks/recall_tree_ablations.py bound --data PATH_OF_DATA

`candidates`: test error against the size of the candidate set, with and without path features (figure 5b).
`order`: progressive accuracy of next-word prediction on a text in its order and permuted (figure 5a). The text is the
raw text of a data set, document after document: the six words before predict the next.
`bound`: test error at several lambda (section 4.5).

Each writes OUTPUT/recall_tree_NAME.json and .png, and prints the table. `--paper` turns off what this project adds:
two children a node, the paper's router weight, F and path features, no tolerance.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib import pyplot as plt

from harness import arrays, report
from sapwood import RecallTreeClassifier

PAPER = {
    "arity": 2,
    "router_weight": "mean",
    "tolerance": 0.0,
    "router_tolerance": 0.0,
    "coverage": 1.0,
    "early_stop": True,
    "path_features": "path",
    "max_candidates": None,
    "bound": 1.0,
}
PATHS: dict[str, dict[str, Any]] = {
    "without path features": {"path_features": "none"},
    "with path features": {"path_features": "path"},
    "with path features x columns": {"path_features": "leaf", "cross_path": True},
}
SIZES = (1, 2, 4, 8, 16, 32, 64)
LAMBDAS = (0.0, 0.01, 0.1, 1.0, 10.0)
WINDOW = 6
VOCABULARY = 20_000
CHECKPOINTS = 40


def candidates(arguments: argparse.Namespace, parameters: dict[str, Any]) -> dict[str, Any]:
    """Test error by the number of candidates, one line for each kind of path features."""
    data = arrays.read_text(arguments.data / (arguments.set or "icd10cm_category"))
    lines: dict[str, list[float]] = {name: [] for name in PATHS}
    for name, path in PATHS.items():
        for size in SIZES:
            own = {**parameters, **path, "max_candidates": size, "coverage": 1.0}
            model = learn(data["train"], arguments.passes, own)
            lines[name].append(error(model, data["test"]))
    return {"x": "candidates", "xs": list(SIZES), "y": "test error, %", "lines": lines}


def order(arguments: argparse.Namespace, parameters: dict[str, Any]) -> dict[str, Any]:
    """Progressive accuracy after more and more examples, in order and permuted."""
    X, y = next_words(arguments.data / (arguments.set or "debian_maintainer"), arguments.rows)
    permutation = np.random.default_rng(0).permutation(len(y))
    stops = np.unique(np.geomspace(1000, len(y), CHECKPOINTS).astype(int))
    lines = {}
    for name, rows in (("in order", np.arange(len(y))), ("permuted", permutation)):
        model = RecallTreeClassifier(random_state=0, **parameters)
        lines[name] = []
        for start, stop in zip([0, *stops[:-1]], stops, strict=True):
            model.partial_fit(X[rows[start:stop]], y[rows[start:stop]])
            lines[name].append(100 * (1 - model.progressive_loss_))
    return {"x": "examples", "xs": stops.tolist(), "y": "progressive accuracy, %", "lines": lines}


def bound(arguments: argparse.Namespace, parameters: dict[str, Any]) -> dict[str, Any]:
    """Test error by lambda."""
    data = arrays.read_text(arguments.data / (arguments.set or "nextword_gutenberg_sample"))
    errors = [
        error(
            learn(data["train"], arguments.passes, {**parameters, "early_stop": True, "bound": value}),
            data["test"],
        )
        for value in LAMBDAS
    ]
    return {"x": "lambda", "xs": list(LAMBDAS), "y": "test error, %", "lines": {"test error": errors}}


def learn(split: arrays.Split, passes: int, parameters: dict[str, Any]) -> RecallTreeClassifier:
    """One tree; in a single pass the rows come in the order of the file."""
    model = RecallTreeClassifier(passes=passes, shuffle=passes > 1, random_state=0, **parameters)
    return model.fit(split.X, split.Y)


def error(model: RecallTreeClassifier, split: arrays.Split) -> float:
    """In per cent."""
    return 100 * float((model.predict(split.X) != split.Y).mean())


def next_words(folder: Path, most_rows: int) -> tuple[Any, np.ndarray]:
    """Rows that hold the six words before, each at its place; the code of the word that follows."""
    documents = []
    with gzip.open(folder / "train.jsonl.gz", "rt") as file:
        for line in file:
            documents.append(re.findall(r"[a-z]+|[.,;:!?]", json.loads(line)["text"].lower()))
    counts = Counter(word for words in documents for word in words)
    code = {word: i for i, (word, _) in enumerate(counts.most_common(VOCABULARY))}
    stream = np.array([code.get(word, VOCABULARY) for words in documents for word in words])[
        : most_rows + WINDOW
    ]
    windows = np.lib.stride_tricks.sliding_window_view(stream, WINDOW + 1)
    windows = windows[windows[:, -1] < VOCABULARY]
    columns = windows[:, :-1] + (VOCABULARY + 1) * np.arange(WINDOW)
    n = len(windows)
    indptr = np.arange(0, n * WINDOW + 1, WINDOW)
    values = np.full(n * WINDOW, 1 / np.sqrt(WINDOW), dtype=np.float32)
    X = sp.csr_matrix((values, columns.ravel(), indptr), shape=(n, (VOCABULARY + 1) * WINDOW))
    return X, windows[:, -1]


def draw(result: dict[str, Any], path: Path) -> None:
    """One line for each series."""
    figure, axes = plt.subplots(figsize=(6, 4))
    for name, values in result["lines"].items():
        axes.plot(result["xs"], values, marker="o", markersize=3, label=name)
    axes.set_xscale("symlog", linthresh=0.01) if result["x"] == "lambda" else axes.set_xscale("log")
    axes.set_xlabel(result["x"])
    axes.set_ylabel(result["y"])
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ablations = {"candidates": candidates, "order": order, "bound": bound}
    parser.add_argument("ablation", choices=ablations)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--set", help="data set, if not the ablation's own")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1_000_000, help="most rows of `order`")
    parser.add_argument("--paper", action="store_true", help="without what this project adds")
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent / "results")
    arguments = parser.parse_args()
    result = ablations[arguments.ablation](arguments, PAPER if arguments.paper else {})
    name = f"recall_tree_{arguments.ablation}{'_paper' if arguments.paper else ''}"
    arguments.output.mkdir(parents=True, exist_ok=True)
    told = {"machine": report.machine(), "set": arguments.set, "passes": arguments.passes, **result}
    (arguments.output / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")
    draw(result, arguments.output / f"{name}.png")
    rows = [
        [str(x), *(report.number(values[i]) for values in result["lines"].values())]
        for i, x in enumerate(result["xs"])
    ]
    print(report.table([f"{result['x']}: {result['y']}", *result["lines"]], rows))


if __name__ == "__main__":
    main()
