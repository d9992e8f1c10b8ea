"""The source under test, parsed once: every module of the package with its path and tree."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "src" / "quipu"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file: its name below `quipu` ("cli.app", "" for the package itself), text and tree."""

    name: str
    text: str
    tree: ast.Module

    @property
    def n_lines(self) -> int:
        """How many lines the file has."""
        return len(self.text.splitlines())

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Yield every function with its name, as in "cli.app.run" or "engine.Quipu.add"."""
        yield from _functions(self.tree, self.name)


@cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package, ordered by path."""
    return tuple(_module(path) for path in sorted(PACKAGE.rglob("*.py")))


def _module(path: Path) -> Module:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Module(name=name, text=text, tree=ast.parse(text))


def _functions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{node.name}"
            if not isinstance(node, ast.ClassDef):
                yield name, node
            yield from _functions(node, name)
        else:
            yield from _functions(node, prefix)
