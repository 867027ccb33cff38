"""What several commands are given, described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Examples, plain or gzip: svmlight; XMC (first line: rows, features, labels); "
        "or JSON Lines with a text and its label or labels. - is standard input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file that `sapwood train` wrote.", show_default=False)
]
TextField = Annotated[str, typer.Option(help="JSON Lines: the field that holds the text.")]
LabelField = Annotated[
    str | None,
    typer.Option(
        help="JSON Lines: the field that holds the label or the list of labels.",
        show_default="label or labels",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
