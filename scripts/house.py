"""Measure how simple the code is, and fail where a figure gets worse.

    python scripts/house.py            # print the table
    python scripts/house.py --check    # print it, and exit with 1 if a figure is above its goal, or above its ceiling
                                       # where the goal is not reached yet
    python scripts/house.py --list     # also print what each figure counts

Two rows run Quipu: they add one Markdown file to a new index and ask one question, each in a process of its own.
"""

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SOURCE = PROJECT / "src"
PACKAGE = SOURCE / "quipu"
DOCUMENT = PACKAGE / "testing" / "corpora" / "demo" / "linear-b.md"
QUESTION = "Who deciphered Linear B?"
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
STORE_PORTS = ("ReadView", "Store", "ReplyCache")
VAGUE_NAMES = frozenset(
    [
        *("each", "found", "said", "told", "kept", "shown", "made", "given", "wanted", "brought", "gone", "asked"),
        *("held", "taken", "done", "item", "thing", "data", "obj", "res", "tmp"),
    ]
)

# Runs a command of Quipu, and writes as JSON which modules were imported and in which a function ran.
TRACER = """
import inspect, json, os, sys, threading
from pathlib import Path
root, target, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
codes = set()
importing = threading.local()  # functions that run while a module is imported do not count
def profile(frame, event, argument):
    is_module = frame.f_code.co_name == "<module>"
    depth = getattr(importing, "depth", 0)
    if event == "call" and is_module:
        importing.depth = depth + 1
    elif event == "return" and is_module:
        importing.depth = depth - 1
    elif event == "call" and not depth:
        codes.add(frame.f_code)
from quipu.cli import main
sys.setprofile(profile)
threading.setprofile(profile)
sys.argv = ["quipu", *arguments]
status = 0
try:
    main()
except SystemExit as end:
    status = end.code
sys.setprofile(None)
ran = {code.co_filename for code in codes if code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(root)}
imported = [name for name in sys.modules if name.split(".")[0] == "quipu"]
Path(target).write_text(json.dumps({"ran": sorted(ran), "imported": sorted(imported)}))
sys.exit(status)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table: what is counted, the count, the goal, and what was counted.

    `ceiling` is the count that is still accepted while the goal is not reached. Lower it with the count.
    """

    name: str
    value: float
    goal: float
    ceiling: float = 0
    unit: str = ""
    members: tuple[str, ...] = ()

    @property
    def limit(self) -> float:
        """The highest count that is accepted."""
        return max(self.goal, self.ceiling)

    @property
    def is_above_limit(self) -> bool:
        """Say whether the count is higher than accepted."""
        return self.value > self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One module: its dotted name, its text and its tree."""

    name: str
    is_package: bool
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str:
        """The dotted name of the package the module is in; of an `__init__` file, the package itself."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def n_lines(self) -> int:
        """How many lines the file has."""
        return len(self.text.splitlines())


def read_sources() -> list[Source]:
    """Return every module of the package, ordered by path."""
    sources = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        text = path.read_text(encoding="utf-8")
        name = ".".join(parts[:-1] if is_package else parts)
        sources.append(Source(name=name, is_package=is_package, text=text, tree=ast.parse(text)))
    return sources


def figures(sources: Sequence[Source]) -> Iterator[Figure]:
    """Yield every row of the table."""
    yield from running_figures()
    shipped = [source for source in sources if not source.name.startswith("quipu.testing")]
    small = [source.name for source in sources if source.n_lines < 40 and not source.is_package]
    yield Figure(name="modules under 40 lines", value=len(small), goal=25, members=tuple(small))
    lonely = modules_with_one_near_importer(sources)
    yield Figure(name="modules under 80 lines with one importer, nearby", value=len(lonely), goal=5, members=lonely)
    relational = [source.name for source in sources if source.folder == "quipu.stores.relational"]
    relational = [name for name in relational if name != "quipu.stores.relational"]
    yield Figure(
        name="modules of stores/relational", value=len(relational), goal=25, ceiling=34, members=tuple(relational)
    )
    methods = store_methods(sources)
    yield Figure(name="methods behind the store port", value=len(methods), goal=50, members=methods)
    names = list(local_names(sources))
    vague = [name for name in names if name.rpartition(" ")[2] in VAGUE_NAMES]
    share = 100 * len(vague) / len(names)
    yield Figure(name="local names that say nothing", value=round(share, 2), goal=1, unit="%", members=tuple(vague))
    repeated = repeated_classes(sources)
    yield Figure(name="class names used more than once", value=len(repeated), goal=0, members=repeated)
    yield Figure(name="modules", value=len(sources), goal=500)
    yield Figure(
        name="statements, comment and docstring lines",
        value=sum(map(n_statements_and_comments, shipped)),
        goal=31_150,
        ceiling=62_280,
    )


def running_figures() -> Iterator[Figure]:
    """Yield how many modules take part in adding a file and in asking a question."""
    with tempfile.TemporaryDirectory() as folder:
        index = ["--index", str(Path(folder) / "index")]
        adding = _traced([*index, "add", str(DOCUMENT)], Path(folder))
        asking = _traced([*index, "ask", QUESTION, "-s", "ppr"], Path(folder))
    for name, trace, goal, ceiling in (("add FILE", adding, 85, 85), ("ask Q -s ppr", asking, 70, 71)):
        ran = tuple(Path(path).relative_to(SOURCE).as_posix() for path in trace["ran"])
        yield Figure(
            name=f"modules that run for `quipu {name}`", value=len(ran), goal=goal, ceiling=ceiling, members=ran
        )
    imported = tuple(asking["imported"])
    yield Figure(name="modules imported for `quipu ask`", value=len(imported), goal=250, members=imported)


def modules_with_one_near_importer(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the modules under 80 lines that only one module imports, which is in the same folder.

    A module that an `__init__` file imports does not count.
    """
    folders = {source.name: source.folder for source in sources}
    packages = {source.name for source in sources if source.is_package}
    importers: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        for name in _imports(source.tree, folders):
            importers[name].add(source.name)
    return tuple(
        source.name
        for source in sources
        if source.n_lines < 80 and not source.is_package
        if len(importers[source.name]) == 1
        if {folders[name] for name in importers[source.name] - packages} == {source.folder}
    )


def store_methods(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the public methods and properties of the protocols a store implements."""
    classes = {
        node.name: node
        for source in sources
        if source.folder == "quipu.ports"
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
    }
    todo, protocols = list(STORE_PORTS), set[str]()
    while todo:
        name = todo.pop()
        if name not in classes or name in protocols:
            continue
        bases = {base.id for base in classes[name].bases if isinstance(base, ast.Name)}
        if "Protocol" in bases:
            protocols.add(name)
            returns = {_name(node.returns) for node in ast.walk(classes[name]) if isinstance(node, ast.FunctionDef)}
            todo += [*bases, *returns]  # also the protocols that its properties lead to
    return tuple(
        f"{name}.{node.name}"
        for name in sorted(protocols)
        for node in classes[name].body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    )


def local_names(sources: Sequence[Source]) -> Iterator[str]:
    """Yield every parameter and local variable as "MODULE:LINE NAME", each once a function."""
    for source in sources:
        for function in ast.walk(source.tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                lines: dict[str, int] = {}
                for node in _own_nodes(function):
                    if isinstance(node, ast.arg):
                        lines.setdefault(node.arg, node.lineno)
                    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        lines.setdefault(node.id, node.lineno)
                for name, line in lines.items():
                    yield f"{source.name}:{line} {name}"


def repeated_classes(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the class names, a leading underscore aside, that more than one class of the package has."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(source.name)
    return tuple(f"{name}: {', '.join(modules)}" for name, modules in sorted(places.items()) if len(modules) > 1)


def n_statements_and_comments(source: Source) -> int:
    """Return how many statements, lines with a comment, and lines of docstrings a module has."""
    docstrings = [
        node.body[0] for node in ast.walk(source.tree) if isinstance(node, DOCUMENTED) and _has_docstring(node)
    ]
    n_docstring_lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in docstrings)
    n_statements = sum(isinstance(node, ast.stmt) for node in ast.walk(source.tree)) - len(docstrings)
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    n_comments = sum(token.type == tokenize.COMMENT for token in tokens)
    return n_statements + n_docstring_lines + n_comments


def _traced(arguments: Sequence[str], folder: Path) -> dict[str, list[str]]:
    target = folder / "trace.json"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
    environment["PYTHONPATH"] = str(SOURCE)
    command = [sys.executable, "-c", TRACER, str(PACKAGE), str(target), *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode or not target.exists():
        raise SystemExit(f"quipu {' '.join(arguments)} failed:\n{ran.stdout}{ran.stderr}")
    trace: dict[str, list[str]] = json.loads(target.read_text())
    target.unlink()
    return trace


def _imports(tree: ast.Module, modules: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
            yield from below
            if node.module in modules and len(below) < len(node.names):
                yield node.module


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function but not those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield node
            yield from _own_nodes(node)


def _has_docstring(node: Documented) -> bool:
    return ast.get_docstring(node, clean=False) is not None


def _name(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def main() -> int:
    """Print the table; return 1 where --check finds a figure above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure is above its limit")
    parser.add_argument("--list", action="store_true", help="print what each figure counts")
    options = parser.parse_args()
    rows = list(figures(read_sources()))
    for row in rows:
        mark = f"ABOVE {row.limit:,}" if row.is_above_limit else "" if row.value <= row.goal else "not reached"
        print(f"{row.name:<52}{row.value:>9,}{row.unit:<2} goal {row.goal:>7,}{row.unit:<2} {mark}".rstrip())
        if options.list:
            names = Counter(re.sub(r":\d+ ", " ", member) for member in row.members)
            print("".join(f"    {name}{f' x{n}' if n > 1 else ''}\n" for name, n in sorted(names.items())), end="")
    is_above_limit = any(row.is_above_limit for row in rows)
    return 1 if options.check and is_above_limit else 0


if __name__ == "__main__":
    sys.exit(main())
