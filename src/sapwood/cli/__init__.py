"""The command `sapwood`."""

from sapwood.cli.app import build_app, main

__all__ = ["build_app", "main"]
