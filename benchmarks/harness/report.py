"""Tables for a terminal or a Markdown page, and the JSON that keeps a run with the machine it ran on."""

from __future__ import annotations

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any


def table(header: list[str], rows: list[list[str]]) -> str:
    """Align the columns, in Markdown: first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join([first.strip().ljust(widths[0]), *rest]) + " |"

    rule = "|" + "|".join("-" * (width + 1) + (":" if i else "-") for i, width in enumerate(widths)) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])


def number(value: float, digits: int = 3) -> str:
    """Write a figure with `digits` significant digits and no exponent: 0.0123, 4.07, 262."""
    if value != value:
        return "-"
    decimals = max(0, digits - len(str(int(abs(value))))) if abs(value) >= 1 else digits
    return f"{value:.{decimals}f}"


def machine() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "instruction_sets": _instruction_sets(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_info(field: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(field)), "")


def _cpu_model() -> str:
    name = _cpu_info("model name") or platform.processor() or "unknown"
    family, model = _cpu_info("cpu family"), _cpu_info("model\t")
    return f"{name}, family {family} model {model}" if family else name


def _instruction_sets() -> list[str]:
    wanted = ("sse4_2", "avx2", "fma", "avx512f", "avx512bw", "avx512vl")
    return [name for name in wanted if name in _cpu_info("flags").split()]


def write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
