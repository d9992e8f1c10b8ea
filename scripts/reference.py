"""Write docs/reference from the code: `python scripts/reference.py`; with --check, only say what is out of date."""

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from types import ModuleType

import click

from quipu.cli.app import COMMANDS, cli
from quipu.derive import hierarchy, names, reports, summaries
from quipu.derive.catalog import ALWAYS_DERIVED, CATALOG
from quipu.ingest.chunkers import CHUNKERS, MAX_CHUNKS
from quipu.ingest.chunkers.structure import MAX_CUT_POINTS
from quipu.ingest.llm import conversation
from quipu.ingest.sources import MAX_BYTES
from quipu.model.chat import Role
from quipu.model.chunking import TAKES
from quipu.model.query import Options, Query, options_in
from quipu.parse import limits
from quipu.parse.formats import FORMATS
from quipu.prompts.catalog import PROMPTS
from quipu.retrieve import STRATEGIES, Strategy, strategies_by_options
from quipu.server.app import OPERATIONS
from quipu.settings import CONFIG_NAME, ENVIRONMENT_PREFIX, KEY_VARIABLES, Settings, effective
from quipu.settings.sources import SECRETS_NAME
from quipu.settings.tables import fields_of_tables

LIMITS = (
    ("bytes of a file", MAX_BYTES),
    ("characters of text in a document", limits.MAX_CHARACTERS),
    ("paragraphs, tables and headings in a document", limits.MAX_BLOCKS),
    ("sentences and lines in a document", MAX_CUT_POINTS),
    ("chunks of a document", MAX_CHUNKS),
    ("bytes of a part of an archive that is read at once", limits.MAX_PART_BYTES),
    ("bytes read of an archive", limits.MAX_UNPACKED_BYTES),
    ("times a part may be larger unpacked than packed", limits.MAX_RATIO),
    ("parts of an archive", limits.MAX_ENTRIES),
    ("XML elements and attributes of a part", limits.MAX_NODES),
    ("bytes of a single XML tag", limits.MAX_TAG_BYTES),
    ("cells of a row of CSV", limits.MAX_ROW_CELLS),
    ("texts the cells of a workbook share", limits.MAX_SHARED_STRINGS),
    ("values of a JSON file, or of a line of JSON lines", limits.MAX_JSON_VALUES),
    ("lines of an e-mail that can begin a part", limits.MAX_MAIL_PARTS),
    ("lines of an e-mail", limits.MAX_MAIL_LINES),
    ("lines of an e-mail's header", limits.MAX_MAIL_HEADER_LINES),
    ("tags of an HTML page", limits.MAX_HTML_TAGS),
    ("bytes of memory to read large or odd HTML or Markdown, beside a few times the text", limits.MAX_MARKUP_BYTES),
    ("seconds of CPU time to read it", limits.MAX_MARKUP_SECONDS),
    ("bytes of the reply of a server that parses files", limits.MAX_REMOTE_BYTES),
    ("pages of a PDF", limits.MAX_PDF_PAGES),
    ("lines of a PDF", limits.MAX_PDF_LINES),
    ("scanned pages of a PDF", limits.MAX_SCANS),
    ("pixels of a scanned page", limits.MAX_SCAN_PIXELS),
    ("bytes of memory to recognise scanned pages, beside the file", limits.MAX_SCAN_BYTES),
    (f"seconds of CPU time to recognise {limits.SCANS_AT_ONCE} scanned pages", limits.MAX_SCAN_SECONDS),
    ("seconds of CPU time to recognise a page after others failed", limits.MAX_SINGLE_SCAN_SECONDS),
    ("seconds of CPU time to recognise all scanned pages of a PDF", limits.MAX_RECOGNITION_SECONDS),
    ("bytes of memory to read a PDF, beside the file", limits.MAX_PDF_BYTES),
    ("seconds of CPU time to read a PDF", limits.MAX_PDF_SECONDS),
)
# What a docstring says after "Differences from ...:", one bullet for each: "- theirs → ours, because why."
DIFFERENCES = re.compile(r"^Differences from ([^:]+):\n((?:- .+\n(?:  .+\n)*)+)", re.MULTILINE)
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")
OWN_NUMBER = re.compile(r"(?<![\w.])(?:[2-9]|\d[\d,.]*\d)")  # 0 and 1 are also parts of rules
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
WIDTH = 100


def settings_page() -> str:
    """Return the page of every setting."""
    lines = [
        "# Settings",
        "",
        f"Arguments win over the environment, that over `{CONFIG_NAME}`, that over the defaults. `quipu config` shows",
        f"each value in force and where it came from. `{CONFIG_NAME}` is looked for in the current directory, then",
        f"beside the index; `{ENVIRONMENT_PREFIX}CONFIG` names another file.",
        "",
        "| setting | environment | default | allowed | what it is |",
        "|---|---|---|---|---|",
    ]
    for each in effective(Settings.model_construct()):
        if not each.group:
            variable = "–" if " in quipu.toml" in each.allowed else f"`{ENVIRONMENT_PREFIX}{each.name.upper()}`"
            default = _default(each.default, "`auto`" if "auto" in each.allowed else "")
            lines.append(f"| `{each.name}` | {variable} | {default} | {each.allowed} | {each.description} |")
    lines += ["", "## Options of the question", "", *_options(Query)]
    for kind, strategies in strategies_by_options().items():
        lines += [f"## Options of {strategies}", "", *_options(kind)]
    return "\n".join([*lines, *_tables(), *_keys(), ""])


def _default(value: object, if_none: str = "") -> str:
    return if_none if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _options(kind: type[Query | Options]) -> Iterator[str]:
    """Yield the table of the options of a query or of strategies, with their names in `kb.query(...)`."""
    yield "| setting | environment | Python | default | allowed | what it is |"
    yield "|---|---|---|---|---|---|"
    for option in options_in(kind):
        names = f"`{option.name}` | `{ENVIRONMENT_PREFIX}{option.name.upper()}` | `{'.'.join(option.path)}`"
        yield f"| {names} | {_default(option.default)} | {option.allowed} | {option.description} |"
    yield ""


def _tables() -> Iterator[str]:
    """Yield what is said of tables in a settings file."""
    yield "## Tables"
    yield ""
    yield f"Only in `{CONFIG_NAME}`. What a table leaves out is as the settings say."
    yield ""
    yield "| table | field | allowed |"
    yield "|---|---|---|"
    for table, fields in fields_of_tables().items():
        for name, allowed in fields.items():
            yield f"| `{table}` | `{name}` | {allowed} |"
    yield ""
    yield f"Roles: {', '.join(f'`{role}`' for role in Role)}."
    yield ""


def _keys() -> Iterator[str]:
    """Yield what is said of keys."""
    yield "## Keys"
    yield ""
    yield "No setting holds a key. They come from the environment (the variable of the provider, or"
    yield f"{', '.join(f'`{name}`' for name in KEY_VARIABLES)}), or from a file of secrets,"
    yield f"`{SECRETS_NAME}`: [keys](../providers/README.md#keys)."


def commands_page() -> str:
    """Return the page of every command: its help page as the command line prints it."""
    lines = [
        "# Commands",
        "",
        "Results go to stdout, everything else (progress, errors) to stderr. With `--json` a result is one JSON",
        "document (`demo`: one for each command it runs); `dump` prints JSON lines; an error is",
        '`{"error": {"kind", "message", "remedy"}}` on stderr. Exit codes: 0 done, 1 failed (also: a document could',
        "not be read, `verify` or `doctor` found something), 2 wrong usage, 130 stopped by Ctrl-C.",
        "",
        *_help("quipu", cli),
    ]
    for section in COMMANDS.values():
        for name in section:
            command = cli.get_command(click.Context(cli), name)
            lines += _help(f"quipu {name}", command) if command else []
    return "\n".join(lines)


def strategies_page() -> str:
    """Return the page of every strategy."""
    lines = [
        "# Strategies",
        "",
        "A strategy is one file in `src/quipu/retrieve`: it turns a question into scored ids with reasons. Packing,",
        "rendering, answering and citing are the same for all: [which one, and how to compare them](../strategies.md).",
        "Model calls are the most made before the answer, only where there is a language model. What is needed in",
        "`this type` is made on demand. Its own options are beside those of [every question](settings.md).",
        "",
        "| strategy | what it does | after | choose it when | needs | model calls | own options |",
        "|---|---|---|---|---|---|---|",
    ]
    made_on_demand = {each.name for each in CATALOG}
    for each in STRATEGIES.values():
        needs = ", ".join(f"`{need}`" if need in made_on_demand else need for need in each.needs) or "nothing"
        needs += "".join(f"; better with `{name}`" for name in each.better_with)
        calls = each.model_calls or each.n_model_calls
        options = ", ".join(f"`{option.name}`" for kind in each.options for option in options_in(kind))
        row = (f"`{each.name}`", each.summary, each.after, each.when, needs, str(calls), options)
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join([*lines, "", *_derivations(), *_presets(), *_differences(), ""])


def _presets() -> Iterator[str]:
    """Yield which options the preset "faithful" sets for each strategy, and to what."""
    yield ""
    yield "## The preset `faithful`"
    yield ""
    yield "`--preset faithful`, in Python `preset='faithful'`, gives these options the values of the paper; where it"
    yield "has none, those of its authors' code. An option that you set to another value than its default keeps it."
    yield "For strategies that are not listed, no option changes. Differences that no option removes are listed below."
    yield ""
    yield "| strategy | option | default | faithful |"
    yield "|---|---|---|---|"
    shared = {option.name: option for option in options_in(Query)}
    for strategy in STRATEGIES.values():
        own = [option for kind in strategy.options for option in options_in(kind) if option.faithful is not None]
        values = [(shared[name], value) for name, value in strategy.faithful.items()]
        for option, value in [*((option, option.faithful) for option in own), *values]:
            default, faithful = (_default(round(v, 4) if isinstance(v, float) else v) for v in (option.default, value))
            yield f"| `{strategy.name}` | `{option.name}` | {default} | {faithful} |"


def _differences() -> Iterator[str]:
    """Yield how each strategy differs from its source, as the docstring of its file tells it."""
    yield ""
    yield "## Differences from the sources"
    yield ""
    yield "From the opening of each strategy's file. In parentheses stands the value of a constant in the code, or the"
    yield "default of an option. All strategies share the first table; the last ones are about what strategies read."
    options: dict[str, object] = {setting.name: setting.default for setting in effective(Settings.model_construct())}
    yield from difference_tables(sys.modules[Strategy.__module__], options)
    for strategy in STRATEGIES.values():
        own = {option.name: option.default for kind in strategy.options for option in options_in(kind)}
        tables = list(difference_tables(sys.modules[strategy.retrieve.__module__], {**options, **own}))
        if tables:
            yield from ("", f"### `{strategy.name}`: {strategy.after}", *tables)
    parts = {
        "Extraction by a model": conversation,
        "Summaries and keywords": summaries,
        "Names and synonyms": names,
        "Communities and reports": reports,
        "The hierarchy": hierarchy,
    }
    for title, module in parts.items():
        yield from ("", f"### {title}", *difference_tables(module, options))


def difference_tables(module: ModuleType, options: Mapping[str, object]) -> Iterator[str]:
    """Yield the tables of the differences that a module's docstring lists; names in what is ours get their values.

    Raises ValueError for a bullet of another form, for a name that is no option, constant, strategy or derivation, and
    for a number of ours that is written out: it would stay when the code changes.
    """
    for heading, bullets in DIFFERENCES.findall(f"{inspect.getdoc(module)}\n"):
        rows = [" ".join(bullet.split()) for bullet in bullets.removeprefix("- ").split("\n- ")]
        yield from (line for row in rows if row.startswith("Those of ") for line in ("", row))
        rows = [row for row in rows if not row.startswith("Those of ")]
        if rows:
            yield from ("", f"| {heading} | Quipu | why |", "|---|---|---|")
        for row in rows:
            theirs, arrow, rest = row.removesuffix(".").partition(" → ")
            ours, because, reason = rest.rpartition(", because ")
            if not arrow or not because:
                raise ValueError(f"{module.__name__}: write '- theirs → ours, because why.', not '- {row}'")
            if number := OWN_NUMBER.search(NAME.sub("", ours)):
                raise ValueError(f"{module.__name__}: name the constant or option that is {number[0]} in '{ours}'")
            values = NAME.sub(lambda match: match[0] + _value(match[1], module, options), ours)
            yield f"| {theirs} | {values} | {reason} |"


def _value(name: str, module: ModuleType, options: Mapping[str, object]) -> str:
    """Return the value of an option, or of a constant of a module or of one it imports from; "" for other names."""
    if name in STRATEGIES or name in {derivation.name for derivation in CATALOG}:
        return ""
    path, _, last = name.rpartition(".")
    if other := sys.modules.get(f"quipu.{path}"):  # a constant of a module that this one does not import
        name, module = last, other
    first, *rest = name.split(".")
    imported = (sys.modules.get(getattr(member, "__module__", "")) for member in vars(module).values())
    values = [vars(source)[first] for source in (module, *imported) if source and first in vars(source)]
    if name not in options and not values:
        raise ValueError(f"{module.__name__}: '{name}' is no option, constant, strategy or derivation")
    value = options[name] if name in options else reduce(getattr, rest, values[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f" ({str(value).lower()})"
    return f" ({round(value, 2):,g})" if isinstance(value, float) else f" ({value:,})"


def _derivations() -> Iterator[str]:
    """Yield what is said of derivations made on demand."""
    yield "## Made on demand"
    yield ""
    yield "What `quipu refresh NAME` makes, with all it needs, and what is kept up to date from then on:"
    yield "[how](../strategies.md#what-a-strategy-needs)."
    yield ""
    yield "| name | what it is | needs | asks a model |"
    yield "|---|---|---|---|"
    for each in CATALOG:
        needs = ", ".join(f"`{need}`" for need in each.needs if need not in ALWAYS_DERIVED) or "–"
        asks = "where there is one" if each.asks_model else "no"
        yield f"| `{each.name}` | {each.summary} | {needs} | {asks} |"


def prompts_page() -> str:
    """Return the page of every prompt."""
    lines = [
        "# Prompts",
        "",
        f"The instructions of every prompt are a setting. In the `[prompts]` table of `{CONFIG_NAME}`, a name is",
        "followed by a text, or `NAME.file` by the path of a file of text, relative to the settings file.",
        "`quipu config --prompt NAME` prints the default text to start from, and `quipu config` shows which prompts",
        "are yours. Write each placeholder where Quipu should fill it in: a text that lacks one is refused, so the",
        "form of the reply stays what Quipu reads. The lines that keep text of documents apart from instructions are",
        "added after your text.",
        "",
        "A changed text of `extraction` or `gleaning` applies to new and changed documents, and to the others with",
        "[`quipu add --reread`](../extraction.md#who-has-read-what). Summaries and reports that exist stay until",
        "their facts change or `quipu refresh --rebuild`. Replies are saved by the whole request, so a former text",
        "finds its replies again without a call.",
        "",
        "| prompt | what the model is asked for | placeholders |",
        "|---|---|---|",
    ]
    for prompt in PROMPTS.values():
        placeholders = ", ".join(f"`{{{name}}}`" for name in prompt.placeholders) or "none"
        lines.append(f"| `{prompt.name}` | {prompt.purpose} | {placeholders} |")
    return "\n".join([*lines, ""])


def chunkers_page() -> str:
    """Return the page of every chunker."""
    options = {"overlap": "chunk_overlap", "separator": "chunk_separator", "percentile": "chunk_percentile"}
    lines = [
        "# Chunkers",
        "",
        "A chunker cuts a document into the passages that are read, found and cited. It is chosen by a setting, for",
        f"some documents by a `[[chunking]]` table in `{CONFIG_NAME}` (the first whose `match` fits the id), or for",
        "one call by the options of `quipu add` or `kb.add(..., chunking=Chunking(...))`. The call wins over the",
        "tables, they win over the setting. All take `chunk_tokens`; a document cut another way than before is read",
        "again.",
        "",
        "| chunker | where it cuts | after | choose it when | takes besides `chunk_tokens` |",
        "|---|---|---|---|---|",
    ]
    for each in CHUNKERS.values():
        takes = ", ".join(f"`{options[name]}`" for name in TAKES[each.name]) or "nothing"
        lines.append(f"| `{each.name}` | {each.summary} | {each.after} | {each.when} | {takes} |")
    return "\n".join([*lines, ""])


def formats_page() -> str:
    """Return the page of every format."""
    lines = [
        "# Formats",
        "",
        "What `quipu add` reads, by the suffix of a file or, from Python, by the media type of a `SourceDocument`. A",
        "table is one block, a row a line; its header row goes with every chunk of it. Citations name the page.",
        "",
        "| format | suffixes | what is kept |",
        "|---|---|---|",
    ]
    for each in FORMATS:
        suffixes = " ".join(f"`{suffix}`" for _, suffixes in each.types for suffix in suffixes)
        lines.append(f"| {each.name} | {suffixes} | {each.keeps} |")
    lines += [
        "",
        "A file without a suffix is read if its first bytes are text or a PDF; so is a file with any other suffix, if",
        "you name it. Empty files and files in other formats are skipped; `quipu add` counts them by reason.",
        "",
        "Text is UTF-8, or Unicode with a byte order mark. HTML, XML and e-mail may declare another encoding.",
        "Otherwise the encoding in which the bytes make the most probable text is assumed: windows-1251, koi8-r,",
        "ibm866, gb18030, big5, shift_jis, euc-jp, euc-kr or windows-1252. `quipu add` prints it, and the document's",
        "metadata has it as `assumed_encoding`. `--meta encoding=NAME`, or `encoding` in NAME.meta.json, names one.",
        "",
        "A page of a PDF that is a picture, or whose text is nonsense, is recognised by Tesseract, if the extra `ocr`",
        "and its languages are installed: `pip install 'quipu-rag[ocr]'`, `apt-get install tesseract-ocr-eng",
        "tesseract-ocr-osd`. The script of the page chooses the language (English for the Latin script); the setting",
        "`ocr_languages` names others, `--meta ocr=deu+eng` those of a document, which is then read again, and `off`",
        "in either turns it off. The metadata has `recognised_pages`, `recognised_with`",
        "(other versions may read another text) and `recognition_confidence` in percent. A page below 75 % is not in",
        "the text but in the metadata `unread_pages`, with `unread_reason`; one below 85 %, of which many words may be",
        "wrong, is in `unsure_pages`. `quipu add`, `quipu docs` and the web page name both.",
        "",
        "The alternative text of a picture, which people write for those who do not see it, is in the text as",
        '"[Picture: …]", once. It is left out where it says nothing (the name of a file, "Image 3"), for icons and',
        "badges, and where a caption says the same.",
        "",
        "A file that cannot be read is a failed document with the reason and what to do, never an empty one: it is",
        "an illegible scan, protected by a password, cut short, without text, not what its suffix says, or over one of",
        "these limits.",
        "",
        "| limit | value |",
        "|---|---|",
    ]
    lines += [f"| {what} | {value:,} |" for what, value in LIMITS]
    lines += [
        "",
        "## Memory",
        "",
        "A document is published whole, so one is held whole, and no two large ones at a time. `quipu add` takes",
        "at most 0.4 GB for itself, 4 times the bytes of the file, 40 bytes for each character of its text, and 1 GB",
        "for its structure and chunks: 0.4 GB where texts are below a megabyte, 2 GB for a text of 50 MB (even in",
        "one line) or for a file of 500 MB. PDFs, and HTML and Markdown that is large or odd, are read in a process",
        "of their own, with the limits above (memory on Linux only). What goes over a limit is one failed document,",
        "before or while it is unpacked and never half of it; so is a file whose reader crashes or hangs. All others",
        "are indexed.",
    ]
    return "\n".join([*lines, ""])


def api_page() -> str:
    """Return the page of every operation of the server."""
    lines = [
        "# REST API",
        "",
        "`quipu serve` answers these operations. `/api/v1/openapi.json` describes every field of requests and replies",
        "(OpenAPI 3.1). A workspace is an index: `default`, or with `--root` the name of a folder. A permission",
        "includes those before it: read, write, admin.",
    ]
    for tag in dict.fromkeys(operation.subject for operation in OPERATIONS):
        lines += [
            "",
            f"## {tag.replace('_', ' ').capitalize()}",
            "",
            "| operation | key | what it does |",
            "|---|---|---|",
        ]
        for operation in OPERATIONS:
            if operation.subject == tag:
                summary = (inspect.getdoc(operation.function) or "").partition("\n\n")[0].replace("\n", " ")
                path = operation.path.replace(":path}", "}").replace("/api/v1/workspaces/{workspace}", "…")
                permission = operation.permission.value if operation.permission else "–"
                lines.append(f"| `{operation.method} {path}` | {permission} | {summary} |")
    lines += ["", "`…` stands for `/api/v1/workspaces/{workspace}`.", ""]
    return "\n".join(lines)


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "api.md": api_page,
    "commands.md": commands_page,
    "strategies.md": strategies_page,
    "formats.md": formats_page,
    "chunkers.md": chunkers_page,
    "prompts.md": prompts_page,
}


def _help(path: str, command: click.Command) -> list[str]:
    """Return the help page of a command and of its subcommands, as code blocks under a heading each."""
    above, _, name = path.rpartition(" ")
    parent = click.Context(cli, info_name=above) if above else None
    context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH, **cli.context_settings)
    lines = [f"## {path}", "", "```text", command.get_help(context), "```", ""]
    if isinstance(command, click.Group) and command is not cli:
        for name, nested in sorted(command.commands.items()):
            lines += _help(f"{path} {name}", nested)
    return lines


def main() -> int:
    """Write the pages, or with --check compare them; return 1 if one is out of date."""
    is_check = "--check" in sys.argv[1:]
    n_stale = 0
    for name, render in PAGES.items():
        file, page = FOLDER / name, render()
        found = file.read_text(encoding="utf-8") if file.exists() else ""
        if found == page:
            continue
        n_stale += 1
        if is_check:
            print("\n".join(difflib.unified_diff(found.splitlines(), page.splitlines(), name, f"{name} (now)", n=1)))
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            file.write_text(page, encoding="utf-8")
    return 1 if is_check and n_stale else 0


if __name__ == "__main__":
    sys.exit(main())
