"""One side's training or prediction, measured, in that side's own environment; started by `harness.runs`.

In the folder benchmarks/: python -m harness.worker '{"task": "train", "side": "pecos", ...}'
"""

from __future__ import annotations

import gc
import hashlib
import importlib.metadata
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from harness import arrays, sides

WARM_UP_ROWS = 50
SINGLE_ROWS = 500
MIB = 2**20


def train(job: dict[str, Any]) -> dict[str, Any]:
    split = arrays.load(Path(job["cache"]), "train")
    side = sides.of(job["side"])(job["fit"], job["threads"])
    model = Path(job["model"])
    data = side.prepare_training(split.X, split.Y, job["n_labels"], model)
    wall, cpu = time.perf_counter(), side.seconds()
    side.fit(data)
    cpu, wall = side.seconds() - cpu, time.perf_counter() - wall
    side.save(model)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"train_s": cpu, "train_wall_s": wall, "train_peak_mb": peak, "model_mb": size_on_disk(model)}


def predict(job: dict[str, Any]) -> dict[str, Any]:
    split = arrays.load(Path(job["cache"]), "test")
    side = sides.of(job["side"])(job["load"], job["threads"])
    batch = side.prepare_batch(split.X)
    rows = [side.prepare_row(split.X[i]) for i in range(min(SINGLE_ROWS, split.X.shape[0]))]
    warm_up = side.prepare_batch(split.X[:WARM_UP_ROWS])

    gc.collect()
    before = resident_mb()
    start = time.perf_counter()
    side.load(Path(job["model"]))
    load_s = time.perf_counter() - start
    loaded = resident_mb()

    side.predict_batch(warm_up)
    passes_s, answers = time_passes(lambda: side.predict_batch(batch), side.seconds)
    # A mapped model is resident only once it has been used.
    used = resident_mb()
    labels = side.top_labels(answers)
    return {
        "load_s": load_s,
        "loaded_mb": loaded - before,
        "used_mb": used - before,
        "batch_us": float(np.median(passes_s)) / split.X.shape[0] * 1e6,
        "row_us": time_rows(side.predict_row, rows),
        "answers": hashlib.sha256(labels.tobytes()).hexdigest(),
        **precision(split, labels),
    }


def time_passes(
    call: Callable[[], Any], clock: Callable[[], float], seconds: float = 0.5
) -> tuple[list[float], Any]:
    """CPU seconds of each of as many calls as fill `seconds`; the last answer."""
    passes: list[float] = []
    while sum(passes) < seconds:
        start = clock()
        answers = call()
        passes.append(clock() - start)
    return passes, answers


def time_rows(call: Callable[[Any], Any], rows: list[Any], rounds: int = 3) -> float:
    """Median wall microseconds of one call: reading the clock of CPU time costs as much as a fast call."""
    times = []
    for _ in range(rounds):
        for row in rows:
            start = time.perf_counter()
            call(row)
            times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


def precision(split: arrays.Split, labels: np.ndarray) -> dict[str, float]:
    """Precision at 1, 3 and 5 in per cent."""
    n, k = labels.shape
    if split.is_multilabel:
        found = np.asarray(split.Y[np.repeat(np.arange(n), k), np.maximum(labels, 0).ravel()]).reshape(n, k)
        hits = (found > 0) & (labels >= 0)
    else:
        hits = labels == split.Y[:, None]
    return {f"p{top}": float(hits[:, :top].mean()) * 100 for top in (1, 3, 5)}


def resident_mb() -> float:
    """Resident memory now (Linux only; not a number elsewhere)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def size_on_disk(path: Path) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / MIB


def versions(package: str) -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in (package, "numpy", "scipy")}
    return {"python": platform.python_version(), **packages}


def main() -> None:
    job = json.loads(sys.argv[1])
    result = {"train": train, "predict": predict}[job["task"]](job)
    result["load_average"] = os.getloadavg()[0]
    result["versions"] = versions(sides.of(job["side"]).package)
    Path(job["result"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
