"""The commands, put together."""

from __future__ import annotations

import typer

from sapwood.cli.console import OneLineErrors
from sapwood.cli.evaluate import evaluate
from sapwood.cli.info import info
from sapwood.cli.methods import methods
from sapwood.cli.predict import predict
from sapwood.cli.train import train_command


def main() -> None:
    """Run the command that was typed."""
    build_app()()


def build_app() -> typer.Typer:
    """Make the command, with all the methods that the package has now."""
    app = typer.Typer(
        name="sapwood",
        cls=OneLineErrors,
        help="Classify among thousands to millions of labels.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    train = typer.Typer(help="Learn a model from labelled examples.", no_args_is_help=True)
    for method in methods():
        train.command(method.name, help=method.summary)(train_command(method))
    app.add_typer(train, name="train")
    for command in (predict, evaluate, info):
        app.command()(command)
    return app
