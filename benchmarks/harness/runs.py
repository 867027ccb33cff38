"""Starting a side's subprocess, taking turns, and the median over the repeats."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import arrays

BENCHMARKS = Path(__file__).resolve().parent.parent
REPOSITORY = BENCHMARKS.parent
CACHE = BENCHMARKS / "cache"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")

LONG_STREAMS = ("nextword_gutenberg_sample",)

Result = dict[str, Any]


def online_passes(name: str) -> int:
    """How often the online learners go over the rows of a set."""
    return 1 if name in LONG_STREAMS else 5


@dataclass(frozen=True)
class Variant:
    """One row of a table: a side, with options for its fit and for its load.

    Variants that differ at load only share one training.
    """

    name: str
    side: str
    fit: dict[str, Any] = field(default_factory=dict)
    load: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    threads: int = 1
    most_labels: int | None = None

    def takes(self, data: DataSet) -> bool:
        """Whether the data set has few enough labels for this variant."""
        return self.most_labels is None or data.n_labels <= self.most_labels

    @property
    def training(self) -> str:
        """What distinguishes one training from another."""
        return json.dumps([self.side, self.fit, self.environment, self.threads], sort_keys=True)


@dataclass(frozen=True)
class DataSet:
    """A data set whose arrays lie in `cache`."""

    name: str
    cache: Path
    n_labels: int
    shape: dict[str, int]


@dataclass(frozen=True)
class Interpreters:
    """Which Python runs which side; `prefix` stands before its command, such as `taskset -c 1`."""

    sapwood: Path = Path(sys.executable)
    peers: Path = REPOSITORY / ".venv-peers/bin/python"
    timeout: float = 1800
    prefix: tuple[str, ...] = ()

    def of(self, side: str) -> Path:
        """Give the interpreter that has this side's library."""
        return self.sapwood if side.startswith("sapwood") else self.peers


def prepare(folder: Path) -> DataSet:
    """Read a data set's text files once and leave the arrays where every side finds them."""
    splits = arrays.read_text(folder)
    cache = CACHE / folder.name
    arrays.save(splits, cache)
    train, test = splits["train"].X, splits["test"].X
    n_labels = arrays.count_labels(splits)
    shape = {"train": train.shape[0], "test": test.shape[0], "features": train.shape[1], "labels": n_labels}
    return DataSet(folder.name, cache, n_labels, shape)


def take_turns(
    variants: list[Variant],
    data: DataSet,
    repeats: int,
    interpreters: Interpreters,
) -> dict[str, list[Result]]:
    """Run every variant once, then every variant again: a slow minute of the machine hits all of them."""
    results: dict[str, list[Result]] = {variant.name: [] for variant in variants}
    for repeat in range(repeats):
        trained: dict[str, tuple[Path, Result]] = {}
        # a folder of its own: another benchmark may be at work on the same set
        with tempfile.TemporaryDirectory(prefix="models-", dir=data.cache) as models:
            for variant in variants:
                if variant.training not in trained:
                    model = Path(models) / f"model-{len(trained)}"
                    trained[variant.training] = model, run("train", variant, data, model, interpreters)
                model, result = trained[variant.training]
                if "error" not in result:
                    result = result | run("predict", variant, data, model, interpreters)
                results[variant.name].append(result)
                said = f"{data.name}, repeat {repeat + 1}, {variant.name}: {result.get('error', 'done')}"
                print(said, file=sys.stderr, flush=True)
    return results


def run(task: str, variant: Variant, data: DataSet, model: Path, interpreters: Interpreters) -> Result:
    """Run one task in its own process; whatever goes wrong there comes back as `{"error": ...}`."""
    outcome = model.with_suffix(".json")
    outcome.unlink(missing_ok=True)
    job = {
        "task": task,
        "side": variant.side,
        "fit": variant.fit,
        "load": variant.load,
        "threads": variant.threads,
        "cache": str(data.cache),
        "n_labels": data.n_labels,
        "model": str(model),
        "result": str(outcome),
    }
    python = str(interpreters.of(variant.side))
    command = [*interpreters.prefix, python, "-m", "harness.worker", json.dumps(job)]
    threads = dict.fromkeys(THREAD_VARIABLES, str(variant.threads))
    try:
        done = subprocess.run(
            command,
            cwd=BENCHMARKS,
            env={**os.environ, **threads, **variant.environment},
            capture_output=True,
            text=True,
            timeout=interpreters.timeout,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"{task}: not done after {interpreters.timeout:.0f} s"}
    except OSError as error:
        return {"error": f"{task}: {error.strerror}: no interpreter for {variant.side}"}
    if done.returncode == 0 and outcome.exists():
        result: Result = json.loads(outcome.read_text())
        return result
    return {"error": f"{task}: {_reason(done)}"}


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"killed by {signal.Signals(-done.returncode).name}"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else f"exit code {done.returncode}"
    return re.sub(r"(/[\w.+-]+){2,}/", "", last)[:200]


def median(results: list[Result]) -> Result:
    """Median of every figure over the repeats; the first failure, if one failed."""
    for result in results:
        if "error" in result:
            return {"error": result["error"]}
    figures = [key for key, value in results[0].items() if isinstance(value, float)]
    summary: Result = {key: statistics.median(result[key] for result in results) for key in figures}
    return summary | {key: value for key, value in results[0].items() if key not in figures}
