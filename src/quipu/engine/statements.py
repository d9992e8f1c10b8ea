"""Statements: what documents say of two entities, by date, and where they use the same words but for a detail.

No model compares them. Two sentences of different documents that are equal but for a name, a number or a negation
differ in that; whether they contradict each other is for the reader to say. Numbers written as words count as words.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from quipu.model.delta import ChunkFacts
from quipu.model.document import Document
from quipu.model.graph import AliasMention, Chunk, ClaimMention, DatedStatement, EntityMention, RelationMention
from quipu.ports.store import ReadView
from quipu.text.sentences import sentence_spans

_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[\u3040-\u30ff\u4e00-\u9fff]|[^\W\d_]+|[\ue000-\ue002]")
_CONTRACTIONS = (("cannot", "can not"), ("can't", "can not"), ("won't", "will not"), ("n't", " not"))
_NEGATIONS = frozenset(
    [
        *("not", "no", "never", "kein", "keine", "nicht", "nie", "ne", "pas"),
        *("не", "ни", "нет", "никогда"),
        *"不没未无",
    ]
)
_ENTITY, _OTHER, _NUMBER = "\ue000", "\ue001", "\ue002"  # stand for names and numbers; private characters
_MIN_WORDS = 2  # beside names and numbers: fewer say nothing that could differ
_Pair = tuple[tuple[str, ...], tuple[str, ...]]  # the spellings of two names; the second may be none


@dataclass(frozen=True, slots=True)
class _ComparedSentence:
    """A statement, its words without what may differ, and what may: (what, value) pairs."""

    statement: DatedStatement
    words: tuple[str, ...]
    details: tuple[tuple[str, object], ...]


async def facts_of_chunks(view: ReadView, chunk_ids: Sequence[str]) -> list[ChunkFacts]:
    """Return chunks with all facts that they state, in the given order."""
    entities = await view.mentions(EntityMention, chunk_ids)
    relations = await view.mentions(RelationMention, chunk_ids)
    aliases = await view.mentions(AliasMention, chunk_ids)
    claims = await view.mentions(ClaimMention, chunk_ids)
    return [
        ChunkFacts(
            chunk=chunk,
            entities=tuple(entities.get(chunk.id, ())),
            relations=tuple(relations.get(chunk.id, ())),
            aliases=tuple(aliases.get(chunk.id, ())),
            claims=tuple(claims.get(chunk.id, ())),
        )
        for chunk in await view.chunks(chunk_ids)
    ]


async def statements_about(
    view: ReadView, facts: Sequence[ChunkFacts], first: str, second: str
) -> tuple[DatedStatement, ...]:
    """Return what chunks say of two entities (keys), the newest first; nothing unless two documents differ in it."""
    sentences = await _sentences(view, facts, first, second)
    statements = {
        (sentence.statement.document_id, sentence.statement.text): sentence.statement for sentence in sentences
    }
    if len({document for document, _ in statements}) < 2 or len({text for _, text in statements}) < 2:
        return ()
    marked = {_place(statement): statement for group in _differing(sentences) for statement in group}
    return _newest_first(marked.get(_place(statement), statement) for statement in statements.values())


async def differing_statements(
    view: ReadView, facts: Sequence[ChunkFacts], key: str
) -> tuple[tuple[DatedStatement, ...], ...]:
    """Return what chunks say of an entity (key) in the same words but for a name, a number or a negation.

    The statements of a group have the same words; the newest comes first. Where one document says several of them, it
    lists values, and the group is left out.
    """
    groups = _differing(await _sentences(view, facts, key))
    by_places = {tuple(map(_place, group)): group for group in groups}  # one sentence may relate it to several others
    groups = sorted(by_places.values(), key=lambda group: group[0].text)
    return tuple(sorted(groups, key=lambda group: group[0].holds_from, reverse=True))


async def _sentences(
    view: ReadView, facts: Sequence[ChunkFacts], key: str, second: str = ""
) -> list[_ComparedSentence]:
    ids = sorted({stated.chunk.document_id for stated in facts})
    documents = {document.id: document for document in await view.documents(ids)}
    ends = {
        end
        for stated in facts
        for pair in (*((r.source, r.target) for r in stated.relations), *((c.subject, c.object) for c in stated.claims))
        for end in pair
        if key in pair
    }
    spellings = {entity.key: (entity.name, *entity.aliases) for entity in await view.entities(sorted(ends))}
    return await asyncio.to_thread(lambda: list(_read_sentences(facts, documents, spellings, key, second)))


def _read_sentences(
    facts: Iterable[ChunkFacts],
    documents: Mapping[str, Document],
    spellings: Mapping[str, tuple[str, ...]],
    key: str,
    second: str,
) -> Iterator[_ComparedSentence]:
    """Yield what chunks say of an entity and each one that they relate it to, or only of it and `second`."""
    for stated in facts:
        names = dict(spellings) | {
            mention.key: (*spellings[mention.key], mention.surface)
            for mention in stated.entities
            if mention.key in spellings
        }
        text = stated.chunk.text
        sentences = [text[start:end] for start, end in sentence_spans(text) if text[start] != "#"]  # without headings
        sentences = [sentence for sentence in sentences if key in names and _pattern(names[key]).search(sentence)]
        speaker = _Speaker(stated.chunk, documents[stated.chunk.document_id])
        for relation in stated.relations:
            other = relation.target if relation.source == key else relation.source
            if key not in (relation.source, relation.target) or second not in ("", other) or other not in names:
                continue
            pair = (names[key], names[other])
            of_both = [sentence for sentence in sentences if _pattern(names[other]).search(sentence)]
            if not of_both and (second or relation.description not in text):
                of_both = [relation.description]  # a model's words, or a sentence with another spelling of a name
            yield from (speaker.sentence(sentence, pair, other) for sentence in of_both if sentence)
        for claim in stated.claims:
            other = claim.object if claim.subject == key else claim.subject
            if key in (claim.subject, claim.object) and second in ("", other) and key in names:
                pair = (names[key], names.get(other, ()))
                yield speaker.sentence(claim.description, pair, other, f"{claim.type}:{claim.status}")


@dataclass(frozen=True, slots=True)
class _Speaker:
    """A chunk and its document."""

    chunk: Chunk
    document: Document

    def sentence(self, text: str, pair: _Pair, other: str, claim: str = "") -> _ComparedSentence:
        """Return what the chunk says of two names; `other` is the key of the second, `claim` a type and status."""
        chunk, document = self.chunk, self.document
        offset = chunk.text.find(text)
        start, end = (
            (chunk.start, chunk.end) if offset < 0 else (chunk.start + offset, chunk.start + offset + len(text))
        )
        statement = DatedStatement(
            entity=pair[0][0],
            other=pair[1][0] if pair[1] else other,
            text=text,
            document_id=document.id,
            title=document.title,
            chunk_id=chunk.id,
            start=start,
            end=end,
            holds_from=document.holds_from,
            holds_until=document.holds_until,
        )
        words, numbers, is_negated = _without_details(text, pair)
        kind, _, status = claim.rpartition(":")
        details = (("name", other), ("negation", is_negated), ("number", numbers), ("status", status))
        return _ComparedSentence(statement, (kind, *words), details)


@lru_cache(maxsize=1_000)
def _pattern(spellings: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of the spellings of a name: whole words, except in scripts whose letters have no case."""
    longest_first = sorted(filter(None, spellings), key=len, reverse=True)
    names = (
        rf"(?<!\w){re.escape(name)}(?!\w)" if name.lower() != name.upper() else re.escape(name)
        for name in longest_first
    )
    return re.compile("|".join(names), re.IGNORECASE)


def _without_details(text: str, pair: _Pair) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the words of a sentence with names and numbers replaced, the numbers, and whether it is negated."""
    for spellings, sign in zip(pair, (_ENTITY, _OTHER), strict=True):
        text = _pattern(spellings).sub(sign, text) if spellings else text
    text = text.casefold().replace("\u2019", "'")
    for contraction, spelled_out in _CONTRACTIONS:
        text = text.replace(contraction, spelled_out)
    tokens: list[str] = _TOKEN.findall(text)
    numbers = tuple(token for token in tokens if token[0].isdigit())
    words = tuple(_NUMBER if token[0].isdigit() else token for token in tokens if token not in _NEGATIONS)
    return words, numbers, any(token in _NEGATIONS for token in tokens)


def _differing(sentences: Sequence[_ComparedSentence]) -> list[tuple[DatedStatement, ...]]:
    """Return the statements with equal words of documents that differ, each with what differs."""
    by_words: dict[tuple[str, ...], list[_ComparedSentence]] = defaultdict(list)
    for sentence in sentences:
        by_words[sentence.words].append(sentence)
    groups: list[tuple[DatedStatement, ...]] = []
    for words, equal in by_words.items():
        details = {(sentence.statement.document_id, sentence.details) for sentence in equal}
        n_documents = len({document for document, _ in details})
        has_words = sum(word not in ("", _ENTITY, _OTHER, _NUMBER) for word in words) >= _MIN_WORDS
        if not has_words or len(details) > n_documents or len({values for _, values in details}) < 2:
            continue
        columns = zip(*(values for _, values in details), strict=True)
        differs_in = tuple(sorted(next(iter(column))[0] for column in map(set, columns) if len(column) > 1))
        by_place = {_place(sentence.statement): sentence.statement for sentence in equal}
        groups.append(_newest_first(replace(statement, differs_in=differs_in) for statement in by_place.values()))
    return groups


def _newest_first(statements: Iterable[DatedStatement]) -> tuple[DatedStatement, ...]:
    by_place = sorted(statements, key=lambda statement: (statement.document_id, statement.start))
    return tuple(sorted(by_place, key=lambda statement: statement.holds_from, reverse=True))


def _place(statement: DatedStatement) -> tuple[str, int, int, str]:
    return statement.document_id, statement.start, statement.end, statement.text
