"""Rules of STYLE that a machine can check: imports at the top, one reader of the environment, names, docstrings."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import PACKAGE, Module, modules

# Optional drivers, each imported in its own adapter where it is used.
OPTIONAL_IMPORTS = {
    ("engine.mirroring", "pathspec"),
    ("engine.mirroring", "watchfiles"),
    ("algo.vector_clusters", "sklearn.mixture"),
    ("engine.graph_export.tables", "pyarrow"),
    ("ingest.graph_import.graphrag", "pyarrow"),
    ("ingest.llm.ontology_file", "tomllib"),
    ("ingest.llm.ontology_file", "yaml"),
    ("providers.jieba", "rjieba"),
    ("providers.litellm", "litellm"),
    ("providers.local", "tiktoken"),
    ("providers.minilm.embedder", "onnxruntime"),
    ("providers.minilm.embedder", "onnxruntime.capi"),
    ("providers.openai.session", "quipu.providers.openai.client"),
    ("providers.pretrained", "fastembed"),
    ("providers.pretrained", "fastembed.common"),
    ("providers.pretrained", "fastembed.rerank.cross_encoder"),
    ("providers.pretrained", "sentence_transformers"),
    ("wiring.ray_cluster", "ray"),
}

# What takes time to import and only some settings need.
SELDOM_NEEDED = {
    ("engine", "quipu.engine.estimation"),
    ("engine", "quipu.engine.tuning"),
    ("engine.lookups", "quipu.parse.pdf"),
    ("ingest.local", "quipu.ingest.local.extraction"),
    ("ingest.local.script_rules", "quipu.ingest.local.chinese_names"),
    ("ingest.local.script_rules", "quipu.ingest.local.russian"),
    ("engine.ingestion", "quipu.derive.imported_communities"),
    ("engine.ingestion", "quipu.ingest.graph_import"),
    ("engine.ingestion", "quipu.ingest.graph_import.documents"),
    ("server.mcp_endpoint", "quipu.server.mcp_tools"),
    ("settings.sources", "quipu.model.index_address"),
    ("text.words", "snowballstemmer.russian_stemmer"),
    ("settings.tables", "quipu.prompts.catalog"),
    ("wiring", "quipu.providers.jieba"),
    ("wiring", "quipu.providers.minilm.embedder"),
    ("wiring", "quipu.providers.pretrained"),
    ("wiring", "quipu.wiring.candidates"),
    ("wiring.candidates", "quipu.stores.postgres.backend"),
    ("wiring.candidates", "quipu.stores.postgres.pgvector"),
    ("wiring.candidates", "quipu.vectors.qdrant"),
    ("wiring", "quipu.wiring.models"),
    ("wiring", "quipu.wiring.ray_cluster"),
    ("wiring", "quipu.wiring.services"),
}

# Modules that are imported by name when they are needed, as one entry of a table.
IMPORTED_BY_NAME = {"", "cli.app", "parse.formats", "parse.markup_process", "retrieve"}

FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "manager", "base", "misc"}
FORBIDDEN_CLASS = re.compile(r"^(Base|Abstract)[A-Z]|(Impl|Manager|Helper)$")
# Before 3.11.5 Python matched a possessive group wrongly where its body backtracks.
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\{?[^}]*\}\}?\}?)\+(?!\+)")
FORBIDDEN_TEXT = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")


def test_imports_are_at_the_top_but_for_the_two_kinds_of_exception() -> None:
    """What keeps start-up fast: cli, the package itself, and a list. What is optional: on the other list."""
    inner = {
        (module.name, name)
        for module in modules()
        if not module.name.startswith("cli") and module.name != ""
        for _, function in module.functions()
        for name in _imported(function)
    }
    assert inner == OPTIONAL_IMPORTS | SELDOM_NEEDED


def test_only_tables_import_modules_by_name() -> None:
    assert {module.name for module in modules() if "import_module" in set(_called(module.tree))} == IMPORTED_BY_NAME


def test_only_settings_reads_the_environment() -> None:
    readers = {
        module.name.partition(".")[0] for module in modules() if re.search(r"\bos\.(environ|getenv)\b", module.text)
    }
    assert readers == {"settings"}


def test_only_the_command_line_and_benchmarks_print() -> None:
    printing = {module.name for module in modules() if "print" in set(_called(module.tree))}
    assert {name for name in printing if not name.startswith(("cli", "bench"))} == set()


def test_a_logger_is_named_after_its_module_and_the_only_way_to_log() -> None:
    """The one object a module may hold: `_log = logging.getLogger(__name__)`. Command line and server show it.

    `server.mcp_tools` also keeps a library from setting up the log of the process.
    """
    lines = {
        line.strip()
        for module in modules()
        if not module.name.startswith(("cli", "server.listening", "server.mcp_tools"))
        for line in module.text.splitlines()
        if re.search(r"\blogging\.", line)
    }
    handler = "logging.getLogger(__name__).addHandler(logging.NullHandler())"
    assert {line.partition("  #")[0] for line in lines} == {"_log = logging.getLogger(__name__)", handler}


def test_no_module_is_named_after_nothing() -> None:
    parts = {part for module in modules() for part in module.name.split(".")}
    assert parts & FORBIDDEN_NAMES == set()


def test_no_class_is_named_after_its_place_in_a_hierarchy() -> None:
    classes = {
        f"{module.name}.{node.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and FORBIDDEN_CLASS.search(node.name)
    }
    assert classes == set()


def test_every_module_opens_with_one_line_that_says_what_it_is() -> None:
    assert [module.name for module in modules() if not _opens_well(module)] == []


def test_nothing_is_left_for_later() -> None:
    assert [module.name for module in modules() if FORBIDDEN_TEXT.search(module.text)] == []


def test_no_pattern_has_a_possessive_group() -> None:
    assert POSSESSIVE_GROUP.search(r"(?:a|b)*+c") and POSSESSIVE_GROUP.search("(?:a|b){{0,{MAX_PARTS}}}+")
    assert [module.name for module in modules() if POSSESSIVE_GROUP.search(module.text)] == []


def test_every_package_has_an_init_file() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder.relative_to(PACKAGE)) for folder in folders if not (folder / "__init__.py").exists()] == []


def _opens_well(module: Module) -> bool:
    first = (ast.get_docstring(module.tree) or "").split("\n\n")[0]
    return "\n" not in first and first.endswith((".", "?", "!", ":"))


def _imported(parent: ast.AST) -> Iterator[str]:
    for node in ast.walk(parent):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
