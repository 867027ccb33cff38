"""Progress of long work: a bar in a terminal, plain lines elsewhere, nothing unless asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress(description: str, verbose: int) -> Iterator[Report | None]:
    """Give a function that is called with (done, total) now and then, or None where `verbose` is 0."""
    if not verbose:
        yield None
    elif sys.stderr.isatty():
        with _bar(description) as report:
            yield report
    else:
        yield _lines(description)


@contextmanager
def _bar(description: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield report


def _lines(description: str) -> Report:
    start = time.monotonic()
    last = 0.0

    def report(done: int, total: int) -> None:
        nonlocal last
        elapsed = time.monotonic() - start
        finished = total > 0 and done >= total
        if finished or elapsed - last >= _SECONDS_BETWEEN_LINES:
            last = elapsed
            share = f"{100 * done / total:3.0f} %" if total else "..."
            print(f"{description}: {share}, {elapsed:.1f} s", file=sys.stderr, flush=True)

    return report
