"""The `quipu` command: each file in `commands` is one command; this folder holds what they share."""

from quipu.cli.app import main

__all__ = ["main"]
