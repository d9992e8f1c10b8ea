"""The `quipu` command: one file a command in `commands`, everything they share beside it."""

from quipu.cli.app import main

__all__ = ["main"]
