"""From a clinical phrase to one of the 1,900 categories of ICD-10-CM: learn, judge, keep, ask."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from rich.console import Console
from rich.table import Table

import sapwood
from sapwood import LabelTreeClassifier
from sapwood.metrics import precision_at_k, recall_at_k
from sapwood.text import TextVectorizer

OUTPUT = Path(__file__).resolve().parents[1] / "demo-output"
SEED = 0
HELD_OUT = 0.1
PHRASES = [
    "type 2 diabetes with kidney complications",
    "fracture of the wrist, lower end of radius",
    "myocardial infarction of the anterior wall",
    "preterm newborn with extremely low birth weight",
    "allergy status to penicillin",
    "bitten by a dog",
    "fear of heights",
]

TERMS = {"desc", "includes", "inclusionTerm", "excludes1", "excludes2"}
# "postprocedural diabetes mellitus (E13.-)": what a note sends elsewhere is a term of that place.
ELSEWHERE = re.compile(r"(.*\S)\s*\(([^()]*)\)$")
CATEGORY = re.compile(r"\b[A-Z]\d[0-9A-Z]")

console = Console(highlight=False, soft_wrap=True)


class Row(NamedTuple):
    """A phrase, and the category that it stands under."""

    phrase: str
    category: str


class Split(NamedTuple):
    """Rows to learn from and rows to be judged by."""

    train: list[Row]
    test: list[Row]


class Judgement(NamedTuple):
    """What the model said of the test rows."""

    ranking: np.ndarray  # test rows x 5, best first
    scores: np.ndarray
    correct: np.ndarray  # whether the first answer is right
    microseconds: float  # to predict one row


def main() -> None:
    """Run the demo."""
    OUTPUT.mkdir(exist_ok=True)
    with console.status("reading ICD-10-CM"):
        rows, names = read_icd10()
        split = hold_out(rows)
    console.print(
        f"[bold]ICD-10-CM[/]: {len(rows):,} clinical phrases under {len(names):,} categories. "
        f"{len(split.test):,} are held out; no phrase is in both parts."
    )
    with console.status("making features of the phrases"):
        vectorizer = TextVectorizer(ngrams=2)
        X_train = vectorizer.fit_transform([row.phrase for row in split.train])
        X_test = vectorizer.transform([row.phrase for row in split.test])

    console.print(
        f"Learning from {X_train.shape[0]:,} phrases, {X_train.shape[1]:,} words and pairs of words."
    )
    start = perf_counter()
    model = LabelTreeClassifier(random_state=SEED, n_jobs=2, verbose=1)
    model.fit(X_train, np.array([row.category for row in split.train]))
    seconds = perf_counter() - start

    judgement = judge(model, X_test, split.test)
    console.print(summary(split, seconds, judgement))
    show_answers(model, vectorizer, names)
    save_and_load(model, X_test, judgement)
    plot(split, judgement, OUTPUT / "icd10.png")
    console.print(f"Plot: {OUTPUT / 'icd10.png'}")


def read_icd10() -> tuple[list[Row], dict[str, str]]:
    """Read every phrase with its category, and the name of each category."""
    package = find_spec("simple_icd_10_cm")
    if package is None or package.origin is None:
        raise SystemExit("This demo needs ICD-10-CM: pip install simple-icd-10-cm")
    # Importing the package builds a tree of all codes, in two seconds; its XML is read in a fifth of that.
    [source] = Path(package.origin).with_name("data").glob("icd10c-tabular-*.xml")
    categories = ElementTree.parse(source).getroot().findall("chapter/section/diag")
    names = {category.findtext("name", ""): category.findtext("desc", "") for category in categories}
    found = (row for category in categories for row in phrases_under(category))
    distinct = {(row.phrase.casefold(), row.category): row for row in found if row.category in names}
    return list(distinct.values()), names


def phrases_under(category: Any) -> Iterator[Row]:
    """Give the descriptions and terms of a category and of every code below it."""
    name = category.findtext("name")
    for element in category.iter():
        if element.tag not in TERMS:
            continue
        for text in [element.text] if element.tag == "desc" else [note.text for note in element]:
            phrase = " ".join((text or "").split())
            row = referred(phrase) if element.tag.startswith("excludes") else Row(phrase, name)
            if row and row.phrase:
                yield row


def referred(note: str) -> Row | None:
    """Read a note that excludes a condition because it belongs to one other category."""
    match = ELSEWHERE.fullmatch(note)
    categories = set(CATEGORY.findall(match[2])) if match else set()
    return Row(match[1], categories.pop()) if match and len(categories) == 1 else None


def hold_out(rows: list[Row]) -> Split:
    """Set a tenth aside: all rows of a phrase together, and never the last row of a category."""
    by_phrase: dict[str, list[Row]] = {}
    for row in rows:
        by_phrase.setdefault(row.phrase.casefold(), []).append(row)
    remaining = Counter(row.category for row in rows)
    test: set[Row] = set()
    phrases = list(by_phrase)
    for place in np.random.default_rng(SEED).permutation(len(phrases)):
        same = by_phrase[phrases[place]]
        if len(test) < HELD_OUT * len(rows) and all(remaining[row.category] > 1 for row in same):
            test.update(same)
            remaining.subtract(row.category for row in same)
    return Split([row for row in rows if row not in test], [row for row in rows if row in test])


def judge(model: Any, X: Any, rows: list[Row]) -> Judgement:
    """Predict the test rows."""
    start = perf_counter()
    ranking, scores = model.predict_topk(X, k=5)
    microseconds = 1e6 * (perf_counter() - start) / len(rows)
    return Judgement(ranking, scores, ranking[:, 0] == truth(rows), microseconds)


def truth(rows: list[Row]) -> np.ndarray:
    """Give the category of every row."""
    return np.array([row.category for row in rows])


def summary(split: Split, seconds: float, judgement: Judgement) -> Table:
    """Lay out the figures of the run."""
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("labels", f"{len(set(truth(split.train))):,}")
    table.add_row("examples", f"{len(split.train):,}")
    table.add_row("seconds to learn", f"{seconds:.2f}")
    table.add_row("microseconds to predict", f"{judgement.microseconds:.1f}")
    for k in (1, 3, 5):
        table.add_row(f"P@{k} (%)", f"{100 * precision_at_k(truth(split.test), judgement.ranking, k):.2f}")
    for k in (3, 5):
        found = recall_at_k(truth(split.test), judgement.ranking, k)
        table.add_row(f"right one among first {k} (%)", f"{100 * found:.2f}")
    return table


def show_answers(model: Any, vectorizer: TextVectorizer, names: dict[str, str]) -> None:
    """Ask for the five best categories of a few phrases."""
    labels, scores = model.predict_topk(vectorizer.transform(PHRASES), k=5)
    for phrase, categories, worth in zip(PHRASES, labels, scores, strict=True):
        console.print(f"\n[bold]{phrase}[/]")
        for category, score in zip(categories, worth, strict=True):
            console.print(f"  {score:6.3f}  [cyan]{category}[/]  {names[category]}")
    console.print()


def save_and_load(model: Any, X: Any, judgement: Judgement) -> None:
    """Keep the model in a file and see that what comes back is the same model."""
    path = OUTPUT / "icd10.sapwood"
    model.save(path)
    labels, scores = sapwood.load(path).predict_topk(X, k=5)
    if not (np.array_equal(labels, judgement.ranking) and np.array_equal(scores, judgement.scores)):
        raise SystemExit("the loaded model does not answer as the saved one did")
    size = path.stat().st_size / 1e6
    console.print(f"Saved {path} ({size:.1f} MB), loaded it: all {len(labels):,} answers are the same.")


def plot(split: Split, judgement: Judgement, path: Path) -> None:
    """Draw where the model can be trusted: by how much it learned, and by how sure it is."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    style = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 10,
        "axes.titleweight": "bold",
    }
    with plt.rc_context(style):
        figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
        draw_by_examples(left, split, judgement)
        draw_by_confidence(right, judgement)
        figure.suptitle(
            f"ICD-10-CM: the category of {len(split.test):,} clinical phrases never seen\n", fontsize=12
        )
        figure.savefig(path, dpi=150)
        plt.close(figure)


def draw_by_examples(axes: Any, split: Split, judgement: Judgement) -> None:
    """Draw how often the first answer is right, by the number of phrases its category had to learn from."""
    learned = Counter(row.category for row in split.train)
    examples = np.array([learned[row.category] for row in split.test])
    edges = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, np.inf])
    bins = np.digitize(examples, edges) - 1
    shown = np.unique(bins)
    right = [100 * judgement.correct[bins == b].mean() for b in shown]
    bars = axes.bar(range(len(shown)), right, color="#2a7f62", width=0.75)
    axes.bar_label(bars, [f"{value:.0f}" for value in right], color="#2a7f62", padding=2)
    spans = [
        f"{edges[b]:.0f}" if edges[b + 1] - edges[b] == 1 else span(edges[b], edges[b + 1]) for b in shown
    ]
    rows = [f"{(bins == b).sum():,}" for b in shown]
    axes.set_xticks(range(len(shown)), [f"{s}\n{n}" for s, n in zip(spans, rows, strict=True)], fontsize=8.5)
    axes.set(
        title="By how many phrases the category had",
        xlabel="phrases that the category learned from\n(below each range: phrases tested)",
        ylabel="first answer right (%)",
        ylim=(0, 105),
    )


def span(low: float, end: float) -> str:
    """Write the whole numbers from `low` up to but without `end`."""
    return f"{low:.0f}+" if np.isinf(end) else f"{low:.0f}–{end - 1:.0f}"


def draw_by_confidence(axes: Any, judgement: Judgement) -> None:
    """Draw how often the first answer is right when only the surest answers are taken."""
    order = np.argsort(-judgement.scores[:, 0], kind="stable")
    answered = np.arange(1, len(order) + 1)
    right = 100 * np.cumsum(judgement.correct[order]) / answered
    coverage = 100 * answered / len(order)
    steady = answered >= min(100, len(order))  # of a few answers the share says nothing
    axes.plot(coverage[steady], right[steady], color="#b5541c", linewidth=2)
    axes.fill_between(coverage[steady], right[steady], color="#b5541c", alpha=0.12)
    for share in (50, 80, 100):
        at = int(np.ceil(share / 100 * len(order))) - 1
        axes.plot(share, right[at], "o", color="#b5541c")
        below = {"xytext": (-4, -6), "textcoords": "offset points", "ha": "right", "va": "top"}
        axes.annotate(f"{right[at]:.1f}", (share, right[at]), **below)
    axes.set(
        title="By how sure the model is",
        xlabel="phrases answered, the surest first (%)",
        ylabel="first answer right (%)",
        xlim=(0, 105),
        ylim=(max(0, right[steady].min() - 15), 103),
    )


if __name__ == "__main__":
    main()
