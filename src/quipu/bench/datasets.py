"""Datasets: questions with their gold, from a data set's folder, from a file, or made from one's own documents."""

import csv
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import quipu
from quipu.derive.catalog import CATALOG
from quipu.errors import InvalidInput, NotFound
from quipu.ingest.local import LocalExtractor
from quipu.model.delta import ChunkFacts
from quipu.model.document import DocumentStatus
from quipu.model.event import EventSink
from quipu.model.graph import Chunk, EntityMention
from quipu.model.ids import digest
from quipu.ports.ingest import Extractor
from quipu.settings import Settings
from quipu.stores.relational.migrations import SCHEMA
from quipu.text.sentences import sentence_spans
from quipu.text.words import content_terms, content_terms_of, split_words
from quipu.wiring import make_analyzer, open_embedder, open_engine

MIN_TERMS, MAX_TERMS = 4, 40  # content words of a sentence that a question is made from
MAX_CHUNKS_OF_BRIDGE = 12  # a name in more chunks says too little about which one is meant
N_FIRST_WORDS, N_SECOND_WORDS = 3, 2  # words of each sentence in a question about two passages
MAX_DOCUMENTS = 1_000  # of those questions are made from


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPassage:
    """One passage of the corpus, indexed as one document under its id."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldQuestion:
    """A question with its answers and its gold: a group for each fact, any passage of which proves it.

    Without gold the corpus of a data set does not answer the question. For one's own documents, answers are enough:
    then `is_answerable` without gold.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    gold: tuple[frozenset[str], ...]
    is_answerable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A corpus and its questions, in the order of the files."""

    name: str
    passages: tuple[DatasetPassage, ...]
    questions: tuple[GoldQuestion, ...]


class _DatasetRecord(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str


class _PassageRecord(_DatasetRecord):
    title: str = ""
    text: str


class _QuestionRecord(_DatasetRecord):
    question: str
    answers: list[str] = []
    gold: list[str] = []
    gold_groups: list[list[str]] = []
    all_facts_mapped: bool = True


R = TypeVar("R", bound=_DatasetRecord)


def read_dataset(folder: Path) -> Dataset:
    """Return the data set in `folder`; questions whose gold is known to be incomplete are left out.

    Raises NotFound if a file is missing, and InvalidInput, which names the line, for an invalid record.
    """
    passages = (
        DatasetPassage(id=record.id, title=record.title, text=record.text)
        for record in _records(folder / "corpus.jsonl", _PassageRecord)
    )
    questions = (
        GoldQuestion(
            id=record.id,
            text=record.question,
            answers=tuple(record.answers),
            gold=_gold(record.gold_groups, record.gold),
            is_answerable=bool(_gold(record.gold_groups, record.gold)),
        )
        for record in _records(folder / "queries.jsonl", _QuestionRecord)
        if record.all_facts_mapped
    )
    return Dataset(name=folder.name, passages=tuple(passages), questions=tuple(questions))


def _gold(groups: Sequence[Sequence[str]], passages: Sequence[str]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(group) for group in groups or [[passage] for passage in passages] if group)


def _records(path: Path, kind: type[R]) -> Iterator[R]:
    if not path.is_file():
        raise NotFound(f"There is no {path}.", remedy="Give a folder with corpus.jsonl and queries.jsonl.")
    for number, line in _lines(path):
        yield _validated(kind, line, path, number)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers from 1, without a byte order mark."""
    with path.open(encoding="utf-8-sig") as lines:
        try:
            yield from enumerate(lines, 1)
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{path} is not UTF-8: {error}.", remedy="Save it as UTF-8.") from error


V = TypeVar("V", bound=BaseModel)


def _validated(kind: type[V], record: str | dict[str, object], path: Path, number: int) -> V:
    try:
        return kind.model_validate_json(record) if isinstance(record, str) else kind.model_validate(record)
    except ValidationError as error:
        problem = error.errors()[0]
        raise InvalidInput(f"{path}, line {number}, {problem['loc']}: {problem['msg']}.") from error


class _OwnRecord(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True, extra="forbid", str_strip_whitespace=True)

    id: str = ""
    question: str = Field(min_length=1)
    answers: list[str] = []
    gold: list[str] = []
    unanswerable: bool = False


def read_questions(path: Path, document_ids: Sequence[str]) -> tuple[GoldQuestion, ...]:
    """Return the questions of a file about the documents of an index: JSON lines, or a table with tabs (`.tsv`).

    A question has `question` and at least one of `answers`, `gold` (ids of documents, or ends of ids) and
    `unanswerable`. Raises NotFound if there is no file, and InvalidInput, which names the line, for an invalid record.
    """
    if not path.is_file():
        raise NotFound(f"There is no file {path}.", remedy="Give a file of questions: JSON lines or .tsv.")
    records = _table_records(path) if path.suffix.casefold() == ".tsv" else _json_records(path)
    questions: dict[str, GoldQuestion] = {}
    for number, record in records:
        question = _own_question(record, f"{path}, line {number}", document_ids)
        question = replace(question, id=record.id or str(number))
        if question.id in questions:
            raise InvalidInput(f"{path}, line {number}: the id {question.id!r} is used twice.")
        questions[question.id] = question
    if not questions:
        raise InvalidInput(f"{path} holds no question.")
    return tuple(questions.values())


def _json_records(path: Path) -> Iterator[tuple[int, _OwnRecord]]:
    for number, line in _lines(path):
        if line.strip():
            yield number, _validated(_OwnRecord, line, path, number)


def _table_records(path: Path) -> Iterator[tuple[int, _OwnRecord]]:
    """Yield the rows of a table with a line of column names; `|` separates several answers or documents."""
    rows = csv.DictReader((line for _, line in _lines(path)), dialect="excel-tab", restkey="more cells than columns")
    for row in rows:
        fields: dict[str, object] = {name: value for name, value in row.items() if value}
        for name in ("answers", "gold"):
            fields[name] = [part.strip() for part in (row.get(name) or "").split("|") if part.strip()]
        yield rows.line_num, _validated(_OwnRecord, fields, path, rows.line_num)


def _own_question(record: _OwnRecord, place: str, document_ids: Sequence[str]) -> GoldQuestion:
    has_gold = bool(record.answers or record.gold)
    if has_gold == record.unanswerable:
        problem = "an unanswerable question has answers" if has_gold else "the question has no answers"
        raise InvalidInput(
            f"{place}: {problem} or gold.",
            remedy='Give "answers", "gold" or both; or "unanswerable": true.',
        )
    groups = [_matching(name, document_ids, place) for name in record.gold]
    return GoldQuestion(
        id=record.id,
        text=record.question,
        answers=tuple(record.answers),
        gold=tuple(groups),
        is_answerable=not record.unanswerable,
    )


def _matching(name: str, document_ids: Sequence[str], place: str) -> frozenset[str]:
    """Return the documents of this id, or else those whose id ends with it as whole parts of a path."""
    ids = frozenset({name} & set(document_ids)) or frozenset(id_ for id_ in document_ids if id_.endswith(f"/{name}"))
    if not ids:
        raise InvalidInput(
            f"{place}: the index holds no document {name!r}.", remedy="`quipu docs` lists the ids; add the document."
        )
    return ids


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """A sentence of a chunk, and the names that stand in it."""

    chunk: Chunk
    sentence: str
    names: tuple[EntityMention, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Chunks of documents in random order, and in how many of them each word is."""

    chunk_ids: tuple[str, ...]
    n_chunks_by_word: Mapping[str, int]


async def own_questions(kb: quipu.Quipu, n: int, seed: int) -> tuple[GoldQuestion, ...]:
    """Return up to `n` questions, half about one passage and half about two, with ids of chunks as gold.

    A question about one passage has names and some words of a sentence; its answer is another name there. A question
    about two passages describes a name by a few words of the first and asks for a fact in the second, which has that
    name, too: neither passage is enough. Of the second it has the commonest words, since people ask for what they do
    not know. The same index, number and seed give the same questions.
    """
    chooser = random.Random(seed)
    sample = await _sample(kb, chooser)
    one: list[GoldQuestion] = []
    two: list[GoldQuestion] = []
    n_two = n // 2
    for chunk_id in sample.chunk_ids:
        if len(two) >= n_two and len(one) + len(two) >= n:
            break
        fact = _fact(await kb.chunk(chunk_id), chooser)
        if fact is None:
            continue
        question = await _about_two(kb, fact, sample, chooser) if len(two) < n_two and len(two) <= len(one) else None
        if question:
            two.append(question)
        elif len(one) < n:
            one.append(_about_one(fact, chooser))
    return (*one[: max(n - len(two), 0)], *two)


async def _sample(kb: quipu.Quipu, chooser: random.Random) -> _Sample:
    documents = [document for document in await kb.documents() if document.status == DocumentStatus.READY]
    chooser.shuffle(documents)
    chunk_ids: list[str] = []
    n_chunks_by_word: Counter[str] = Counter()
    for document in documents[:MAX_DOCUMENTS]:
        for chunk in (await kb.document(document.id)).chunks:
            chunk_ids.append(chunk.id)
            n_chunks_by_word.update(set(_words(chunk.text, ())))
    chooser.shuffle(chunk_ids)
    return _Sample(chunk_ids=tuple(chunk_ids), n_chunks_by_word=n_chunks_by_word)


def _fact(facts: ChunkFacts, chooser: random.Random, name: str = "") -> _Fact | None:
    """Return a sentence of a chunk with at least two names, one of which is the entity `name` if that is given."""
    chunk, candidates = facts.chunk, []
    for start, end in sentence_spans(chunk.text):
        mentions = tuple(m for m in facts.entities if start <= m.start < m.end <= end)
        sentence = " ".join(chunk.text[start:end].split())
        is_named = not name or any(mention.key == name for mention in mentions)
        if len(mentions) > 1 and is_named and MIN_TERMS <= len(content_terms_of(sentence)) <= MAX_TERMS:
            candidates.append(_Fact(chunk=chunk, sentence=sentence, names=mentions))
    return chooser.choice(candidates) if candidates else None


def _about_one(fact: _Fact, chooser: random.Random) -> GoldQuestion:
    answer = chooser.choice(fact.names)
    names = [mention.surface for mention in fact.names if mention.key != answer.key]
    words = _words(fact.sentence, [mention.surface for mention in fact.names])
    some = [word for word in words if chooser.random() < 0.5]
    return _question("one", fact, " ".join((*names, *some)), answer.surface, [fact.chunk.id])


async def _about_two(kb: quipu.Quipu, fact: _Fact, sample: _Sample, chooser: random.Random) -> GoldQuestion | None:
    """Return a question about a name in `fact` and in a passage of another document, None if there is none."""
    for bridge in chooser.sample(fact.names, len(fact.names)):
        chunks = [chunk for chunk, _ in (await kb.entity(bridge.key)).chunks]
        others = [chunk for chunk in chunks if chunk.document_id != fact.chunk.document_id]
        if not others or len(chunks) > MAX_CHUNKS_OF_BRIDGE:
            continue
        second = _fact(await kb.chunk(chooser.choice(others).id), chooser, bridge.key)
        answers = [mention for mention in second.names if mention.key != bridge.key] if second else []
        if second and answers:
            answer = chooser.choice(answers)
            names = [mention.surface for mention in fact.names if mention.key not in (bridge.key, answer.key)]
            hidden = [mention.surface for mention in (*second.names, *fact.names)]
            words = _words(fact.sentence, hidden)
            first_words = chooser.sample(words, min(N_FIRST_WORDS, len(words)))
            common = sorted(_words(second.sentence, hidden), key=lambda word: -sample.n_chunks_by_word[word])
            text = " ".join((*names[:1], *first_words, *common[:N_SECOND_WORDS]))
            return _question("two", fact, text, answer.surface, [fact.chunk.id, second.chunk.id])
    return None


def _words(sentence: str, names: Iterable[str]) -> list[str]:
    """Return the content words of a sentence in order, without the words of these names.

    In scripts without spaces these are pairs of characters.
    """
    words = split_words(sentence)
    forms = content_terms(words) if words.has_unspaced else [form for form in words.forms if content_terms_of(form)]
    hidden = {form for name in names for form in (*split_words(name).forms, *content_terms_of(name))}
    return [form for form in dict.fromkeys(forms) if form not in hidden]


def _question(kind: str, fact: _Fact, text: str, answer: str, gold: Sequence[str]) -> GoldQuestion:
    groups = tuple(frozenset({chunk_id}) for chunk_id in gold)
    return GoldQuestion(id=f"{kind}-{fact.chunk.id}", text=text, answers=(answer,), gold=groups)


async def index_dataset(dataset: Dataset, cache: Path, settings: Settings, on_event: EventSink) -> Path:
    """Return the folder of an index with the passages, read by rules, and every derivation; it is kept in `cache`."""
    folder = await index_folder(dataset, cache, settings.embedder, LocalExtractor())
    settings = settings.model_copy(update={"index": folder}).without_models()
    async with await open_engine(settings) as kb:
        await kb.add(*sources_of(dataset), on_event=on_event)
        await kb.refresh([strategy.name for strategy in CATALOG], on_event=on_event)
    return folder


async def index_folder(dataset: Dataset, cache: Path, embedder: str, extractor: Extractor) -> Path:
    """Return the folder for the index of these passages; the name depends on the passages and the configuration."""
    settings = Settings(embedder=embedder)
    recipe = (
        (await open_embedder(settings)).identity,
        extractor.identity,
        make_analyzer(settings).identity,
        str(SCHEMA),
        str(settings.default_chunking),
    )
    passages = (part for passage in dataset.passages for part in (passage.id, passage.title, passage.text))
    return cache / f"{dataset.name}-{embedder}-{digest(*recipe, *passages)[:12]}"


def sources_of(dataset: Dataset) -> list[quipu.SourceDocument]:
    return [
        quipu.SourceDocument(id=passage.id, content=passage.text.encode(), title=passage.title)
        for passage in dataset.passages
    ]
