"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import sapwood
from sapwood.cli.console import OneLineErrors
from sapwood.cli.evaluate import evaluate
from sapwood.cli.info import info
from sapwood.cli.methods import methods
from sapwood.cli.predict import predict
from sapwood.cli.train import train_command


def main() -> None:
    """Run the command that was typed."""
    build_app()()


def show_version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        print(f"sapwood {sapwood.__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
]


def build_app() -> typer.Typer:
    """Make the command, with all the methods that the package has now."""
    app = typer.Typer(
        name="sapwood",
        cls=OneLineErrors,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def options(version: Version = False) -> None:
        """Classify among thousands to millions of labels."""

    train = typer.Typer(help="Learn a model from labelled examples.", no_args_is_help=True)
    for method in methods():
        train.command(method.name, help=method.summary)(train_command(method))
    app.add_typer(train, name="train")
    for command in (predict, evaluate, info):
        app.command()(command)
    return app
