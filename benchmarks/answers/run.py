"""Ask questions about real documents and score what a person sees: `python benchmarks/answers/run.py [--set NAME …]`.

Sets: `realdocs` (in the folder of data sets), `development` and `closed` (their documents: run documents.py first).
`closed` is asked only where it is named, once a milestone. An index is kept until the code that makes it changes.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

import quipu  # noqa: E402
from benchmarks.answers import scores  # noqa: E402
from benchmarks.answers.baselines import BASELINES, N_PASSAGES, WindowSearch, answer_with_windows  # noqa: E402
from benchmarks.answers.documents import FOLDER as MANUALS  # noqa: E402
from benchmarks.answers.plain import PlainDocument, read_plain, write_plain  # noqa: E402
from benchmarks.answers.questions import Question, read_questions  # noqa: E402
from quipu import sync  # noqa: E402
from quipu.errors import QuipuError  # noqa: E402

DATA = Path(os.environ.get("QUIPU_DATA") or ROOT / "../shared/data")
CACHE = Path(tempfile.gettempdir()) / "quipu-bench"
HERE = Path(__file__).parent
SETS = ("realdocs", "development", "closed")
SURROUNDING = 300  # characters on both sides of a quote: an answer that stands there was cut off
NOT_INDEXING = ("answer", "retrieve", "cli", "prompts", "testing", "bench")  # parts whose code does not make the index


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions, the folder of their documents, and the file with the plain text of these."""

    name: str
    questions: Path
    documents: Path
    plain: Path

    @property
    def exists(self) -> bool:
        """Say whether questions and documents are here."""
        return self.questions.is_file() and self.documents.is_dir()


def main() -> int:
    """Print a table for each set, baseline and strategy."""
    options = _options()
    for question_set in [_question_set(name, options) for name in options.sets]:
        if not question_set.exists:
            print(f"{question_set.name}: skipped, no {question_set.documents} (see README.md beside this file)")
            continue
        try:
            run(question_set, options)
        except QuipuError as error:
            sys.stderr.write(f"{question_set.name}: {error}\n")
            return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--set", action="append", dest="sets", choices=SETS, help="default: realdocs and development; repeatable"
    )
    parser.add_argument(
        "--strategy", action="append", dest="strategies", metavar="NAME", help="default: mix and lexical; repeatable"
    )
    parser.add_argument("--baselines", action="store_true", help="also score BM25 over windows")
    parser.add_argument("--no-strategies", action="store_true", help="only the baselines")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets (default: QUIPU_DATA)")
    parser.add_argument("--manuals", type=Path, default=MANUALS, help=f"default: QUIPU_MANUALS, or {MANUALS}")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the indexes, kept between runs")
    parser.add_argument("--complete", action="store_true", help="add what `add` could not read as plain text")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="a setting of quipu")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write answers-SET-STRATEGY.jsonl there")
    parser.add_argument("--misses", action="store_true", help="print the questions answered wrongly (not of `closed`)")
    parser.add_argument("--stages", action="store_true", help="where answers were lost: ranking, choice, cut, refusal")
    parser.add_argument("--kinds", action=argparse.BooleanOptionalAction, default=True, help="a row for each kind")
    options = parser.parse_args()
    options.sets = options.sets or ["realdocs", "development"]
    options.strategies = [] if options.no_strategies else options.strategies or ["mix", "lexical"]
    return options


def _question_set(name: str, options: argparse.Namespace) -> QuestionSet:
    if name == "realdocs":
        folder = options.data / name
        return QuestionSet(name, folder / "questions.jsonl", folder / "documents", folder / "plain.jsonl")
    manuals = options.manuals
    return QuestionSet(name, HERE / f"{name}.jsonl", manuals / "documents", manuals / "plain.jsonl")


def run(question_set: QuestionSet, options: argparse.Namespace) -> None:
    """Score the baselines and the strategies on one set."""
    questions = read_questions(question_set.questions)
    documents = plain_documents_of(question_set)
    answers: dict[str, list[scores.AnswerRow]] = {}
    if options.baselines or options.no_strategies:
        for baseline in BASELINES:
            search = WindowSearch(documents, baseline.size)
            answers[baseline.name] = answer_with_windows(questions, search, baseline)
    if options.strategies:
        with open_index(question_set, documents, options) as kb:
            for strategy in options.strategies:
                answers[strategy] = list(ask(kb, questions, strategy, question_set.documents))
    asked = {name: scores.pair(questions, rows) for name, rows in answers.items()}
    for name, rows in asked.items():
        print(f"\n{question_set.name}, {name}")
        lines = list(scores.table(rows))
        print("\n".join(lines if options.kinds else [line for line in lines if line.startswith((" ", "ALL"))]))
        if options.stages:
            print("\n".join(scores.stage_table(rows)))
        if options.misses and question_set.name != "closed":
            print("\n".join(scores.misses(rows)))
    print_differences(asked)
    if options.out:
        write_answers(answers, question_set.name, options.out)


def plain_documents_of(question_set: QuestionSet) -> list[PlainDocument]:
    """Return the plain text of the documents; it is made once."""
    if not question_set.plain.is_file():
        write_plain(question_set.documents, question_set.plain)
    return read_plain(question_set.plain)


@contextmanager
def open_index(
    question_set: QuestionSet, documents: Sequence[PlainDocument], options: argparse.Namespace
) -> Iterator[sync.BlockingQuipu]:
    """Open the index of a set's documents; make it where the kept one is of other code, settings or documents."""
    settings = dict(setting.split("=", 1) for setting in options.setting)
    marks = [
        indexing_code(),
        settings,
        options.complete,
        [(d.id, sha256(d.text.encode()).hexdigest()) for d in documents],
    ]
    digest = sha256(json.dumps(marks, sort_keys=True).encode()).hexdigest()[:12]
    folder = options.cache / f"answers-{digest}"
    with sync.open(folder, **settings) as kb:
        if not (folder / "complete").is_file():
            start = time.process_time()
            n_added = kb.add(question_set.documents, root=question_set.documents).n_added
            if options.complete:
                n_added += add_unread(kb, documents)
            (folder / "complete").touch()
            print(
                f"{n_added} of {len(documents)} documents added in {time.process_time() - start:.0f} s of CPU: {folder}"
            )
        yield kb


def indexing_code() -> str:
    """Return a digest of the code and the word lists that make an index."""
    package = Path(quipu.__file__).parent
    code = sha256()
    for path in sorted((*package.rglob("*.py"), *package.rglob("*.txt"))):
        if path.relative_to(package).parts[0] not in NOT_INDEXING:
            code.update(path.read_bytes())
    return code.hexdigest()


def add_unread(kb: sync.BlockingQuipu, documents: Sequence[PlainDocument]) -> int:
    """Add the plain text of the documents that the index does not hold; return their number."""
    indexed = {document.id for document in kb.documents() if document.status == "ready"}
    unread = [document for document in documents if document.id not in indexed and document.text.strip()]
    for document in unread:
        kb.add_text(document.text, id=document.id, title=Path(document.id).stem)
    return len(unread)


def ask(
    kb: sync.BlockingQuipu, questions: Sequence[Question], strategy: str, folder: Path
) -> Iterator[scores.AnswerRow]:
    """Ask every question; yield what a person would see."""
    root = f"{folder.resolve()}/"
    indexed = {document.id.removeprefix(root) for document in kb.documents() if document.status == "ready"}
    for question in questions:
        start = time.process_time()
        answer = kb.query(question.question, strategy=strategy)
        cpu_s = time.process_time() - start
        quotes = [(citation, kb.chunk(citation.chunk_id).chunk) for citation in answer.citations]
        hits = answer.trace.evidence.chunks[:N_PASSAGES] if answer.trace else ()
        yield scores.AnswerRow(
            id=question.id,
            text=answer.text,
            cited=tuple(citation.document_id.removeprefix(root) for citation in answer.citations),
            passages=tuple(kb.chunk(hit.id).chunk.text for hit in hits),
            refused=not answer.citations or not answer.is_supported,
            quoted_passages=tuple(chunk.text for _, chunk in quotes),
            surroundings=tuple(
                chunk.text[max(0, quote.start - chunk.start - SURROUNDING) : quote.end - chunk.start + SURROUNDING]
                for quote, chunk in quotes
            ),
            is_written=answer.generator != "extractive",
            gold_indexed=not question.is_answerable or not indexed.isdisjoint(question.gold_documents),
            cpu_s=round(cpu_s, 4),
        )


def print_differences(asked: dict[str, list[scores.Asked]]) -> None:
    """Print each strategy beside the baseline of two windows, where both were scored."""
    two_windows = BASELINES[1].name
    if two_windows in asked:
        for name, rows in asked.items():
            if name not in {baseline.name for baseline in BASELINES}:
                print(f"{name} − {two_windows}: {scores.difference(rows, asked[two_windows])} points of gold")


def write_answers(answers: dict[str, list[scores.AnswerRow]], set_name: str, folder: Path) -> None:
    """Write the answers, one a line, a file for each strategy or baseline."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in answers.items():
        stem = "".join(character if character.isalnum() else "_" for character in name)
        with (folder / f"answers-{set_name}-{stem}.jsonl").open("w", encoding="utf-8") as output:
            for row in rows:
                output.write(json.dumps({**asdict(row), "strategy": name}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
