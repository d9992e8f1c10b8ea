"""The text index: full text, links of names to chunks, and the questions that chunks answer, kept in step with all.

A link counts how often a name (an entity's key or a stated alias) occurs in a chunk. It depends on these two alone. So
the order in which documents are added never matters, and a document never changes the links of another one. Questions
are those of records ("Q: …", "A: …"). Each has a vector, so that a question is compared with questions.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, func, select

from quipu.model.document import searched_title
from quipu.model.graph import chunk_text
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational import segments
from quipu.stores.relational.documents import ChunkChanges, ChunkWords
from quipu.stores.relational.full_text import chunks_with_phrases, key_of
from quipu.stores.relational.postings import PostingsBuilder
from quipu.stores.relational.segments import SegmentWriter
from quipu.stores.relational.snapshot import BloomFilter
from quipu.stores.relational.sql import (
    ByValues,
    ForValues,
    blocks,
    execute_rows,
    insert_rows,
    next_rid,
    write_meta,
)
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash
from quipu.text.names import (
    MAX_KEY_LENGTH,
    NameStarts,
    anchor,
    capital_term,
    capital_terms,
    count_occurrences,
    count_occurrences_at,
    find_name_starts,
    following_words,
    group_by_anchor,
    is_linkable,
    name_forms,
    name_words,
    phrase_terms,
    spelling_key,
)
from quipu.text.references import reference_keys
from quipu.text.sentences import record_questions
from quipu.text.words import Analyzer, Words, split_words

_CHUNKS_AT_ONCE = 32  # their words, a few hundred bytes each, are in memory together

_c, _d, _e, _n = s.chunk.c, s.document.c, s.entity.c, s.name.c
_QUESTIONS = ByValues(select(s.question), s.question.c.chunk)
_DROP_QUESTIONS = ByValues(s.question.delete(), s.question.c.chunk)
_ALL_CHUNKS = select(_c.rid).order_by(_c.rid)
_CHUNK_WORDS = select(_c.rid, _d.id, _d.title, _c.header, _c.text, _c.ordinal == 0)
_CHUNKS = ByValues(_CHUNK_WORDS.join(s.document, _d.rid == _c.document), _c.rid)
_CHUNK_TEXTS = ByValues(select(_c.rid, _c.text), _c.rid)
_NAMES_BY_KEY = ByValues(select(s.name), _n.key)
_NAMES_BY_WORDS = ByValues(select(_n.key, _n.rid), _n.words)
_LAST_UP_TO = ForValues(lambda words: select(func.max(_n.words)).where(_n.words <= words).scalar_subquery())
_SET_COUNT = s.name.update().where(_n.rid == bindparam("row")).values(n=bindparam("count"))
_SET_WORDS = s.name.update().where(_n.rid == bindparam("row")).values(words=bindparam("of"))
_DELETE_SPELLINGS = s.spelling.delete().where(
    s.spelling.c.spelling == bindparam("key"), s.spelling.c.name == bindparam("row")
)
_DELETE_NAMES = ByValues(s.name.delete(), _n.rid)
_DELETE_LINKS_OF_NAMES = ByValues(s.link.delete(), s.link.c.name)
_DELETE_LINKS_OF_CHUNKS = ByValues(s.link.delete(), s.link.c.chunk)
_MAX_NAME_WORDS = 2 * MAX_KEY_LENGTH  # characters: a key without spaces has a word for each of its characters
_AFTER_SPACE = chr(ord(" ") + 1)  # in no word of a name, and before all characters that are


def update(
    connection: Connection,
    analyzer: Analyzer,
    bloom: BloomFilter,
    changes: ChunkChanges,
    name_uses: Mapping[str, int],
) -> None:
    """Update full text and links after a change of chunks and names.

    `name_uses` is the change in the number of entities and alias mentions that use each name.
    """
    _unindex(connection, analyzer, [*changes.removed, *(before for before, _ in changes.reworded)])
    _drop_links(connection, [chunk.rid for chunk in changes.removed])
    _index(connection, analyzer, [after for _, after in changes.reworded])
    _link_new_names(connection, _update_names(connection, bloom, name_uses))
    _index(connection, analyzer, changes.added, bloom)


def rebuild(connection: Connection, analyzer: Analyzer, bloom: BloomFilter) -> None:
    """Build full text, names and links again from the chunks, entities and aliases."""
    bloom.clear()
    segments.clear(connection)
    connection.execute(s.link.delete())
    connection.execute(s.name.delete())
    connection.execute(s.spelling.delete())
    name_uses = Counter(connection.execute(select(_e.key)).scalars())
    name_uses.update(connection.execute(select(s.alias_mention.c.alias)).scalars())
    _update_names(connection, bloom, name_uses)
    for rids in blocks(connection.execute(select(_c.rid).order_by(_c.rid)).scalars().all()):
        update(connection, analyzer, bloom, ChunkChanges(added=chunk_words(connection, rids)), {})
    write_meta(connection, "tokenizer", analyzer.identity)


def add_words(connection: Connection) -> None:
    """Add their words to the names of an index that has none."""
    names = connection.execute(select(_n.key, _n.rid)).all()
    execute_rows(connection, _SET_WORDS, [{"row": rid, "of": name_words(key)} for key, rid in names])


def add_spellings(connection: Connection) -> None:
    """Add the spelling keys of all names to an index that has none."""
    names: dict[str, int] = dict(map(tuple, connection.execute(select(_n.key, _n.rid))))
    insert_rows(connection, s.spelling, spelling_rows(names))


def spelling_rows(rid_by_name: Mapping[str, int]) -> list[dict[str, str | int]]:
    """Return the spelling keys of names, which are given with their row ids, as rows of the table."""
    spellings = sorted((spelling_key(name), rid) for name, rid in rid_by_name.items())
    return [{"spelling": spelling, "name": rid} for spelling, rid in spellings if spelling]


def chunk_words(connection: Connection, rids: Sequence[int]) -> list[ChunkWords]:
    """Return the searchable words of chunks, by row number."""
    return [ChunkWords(*row) for row in _CHUNKS.rows(connection, rids)]


def index_terms(chunk: ChunkWords, words: Words, analyzer: Analyzer) -> list[str]:
    """Return the full-text terms of a chunk: of its title, the name of its file, its header and its text."""
    above = chunk_text(searched_title(chunk.document_id, chunk.title), chunk.header, "")
    terms = analyzer.terms(words, chunk.text)
    return [*analyzer.terms(split_words(above), above), *terms] if above else terms


def _keys(chunk: ChunkWords, words: Words) -> list[str]:
    """Return the names of the keys of a chunk: its capitalised terms, what names it, and what it links to."""
    references = reference_keys(chunk.text, chunk.document_id, chunk.title, is_first=chunk.is_first)
    return [*capital_terms(words), *references]


def _index(
    connection: Connection, analyzer: Analyzer, chunks: Sequence[ChunkWords], bloom: BloomFilter | None = None
) -> None:
    """Add chunks to full text; with a Bloom filter, link them to the known names in them, too."""
    writer = SegmentWriter(connection)
    for some in blocks(chunks, _CHUNKS_AT_ONCE):
        words_by_rid = {chunk.rid: split_words(chunk.text) for chunk in some}
        for chunk in some:
            words = words_by_rid[chunk.rid]
            writer.add(chunk.rid, index_terms(chunk, words, analyzer), _keys(chunk, words))
        if bloom is not None:
            _link_new_chunks(connection, bloom, words_by_rid)
    writer.finish()


def _unindex(connection: Connection, analyzer: Analyzer, chunks: Sequence[ChunkWords]) -> None:
    """Remove chunks from full text. Their words say in which rows they are."""
    for some in blocks(chunks, segments.MAX_NEW):
        terms_by_rid: dict[int, set[str]] = {}
        for chunk in some:
            words = split_words(chunk.text)
            terms_by_rid[chunk.rid] = {*index_terms(chunk, words, analyzer), *map(key_of, _keys(chunk, words))}
        segments.remove(connection, terms_by_rid)


def _update_names(connection: Connection, bloom: BloomFilter, name_uses: Mapping[str, int]) -> dict[str, int]:
    """Add to the number of uses of each name; delete unused names with their links. Return the rows of new names."""
    changes = {key: n for key, n in name_uses.items() if n and is_linkable(key)}
    existing = _NAMES_BY_KEY.rows(connection, sorted(changes))
    counts = {row.rid: row.n + changes[row.key] for row in existing}
    execute_rows(connection, _SET_COUNT, [{"row": rid, "count": n} for rid, n in counts.items()])
    unused = [rid for rid, n in counts.items() if not n]
    _DELETE_LINKS_OF_NAMES.run(connection, unused)
    _DELETE_NAMES.run(connection, unused)
    unused_spellings = spelling_rows({row.key: row.rid for row in existing if not counts[row.rid]})
    execute_rows(
        connection, _DELETE_SPELLINGS, [{"key": row["spelling"], "row": row["name"]} for row in unused_spellings]
    )
    new = sorted(changes.keys() - {row.key for row in existing})
    first = next_rid(connection, s.name) if new else 0
    rid_by_key = {key: first + i for i, key in enumerate(new)}
    words = [name_words(key) for key in new]
    rows = [
        {"rid": rid_by_key[key], "key": key, "words": key_words, "n": changes[key]}
        for key, key_words in zip(new, words, strict=True)
    ]
    insert_rows(connection, s.name, rows)
    insert_rows(connection, s.spelling, spelling_rows(rid_by_key))
    bloom.add([anchor(key_words.split(" ", 2)) for key_words in words])
    return rid_by_key


def _link_new_chunks(connection: Connection, bloom: BloomFilter, words_by_chunk: Mapping[int, Words]) -> None:
    """Find every known name in the words of new chunks."""
    places_by_chunk = {rid: bloom.passing(connection, find_name_starts(words)) for rid, words in words_by_chunk.items()}
    places = [(words, places_by_chunk[rid]) for rid, words in words_by_chunk.items()]
    rid_by_key = dict(map(tuple, _NAMES_BY_WORDS.rows(connection, sorted(_possible_names(connection, places)))))
    names = group_by_anchor(rid_by_key)
    counts = {rid: count_occurrences_at(words, places_by_chunk[rid], names) for rid, words in words_by_chunk.items()}
    _insert_links(connection, counts, rid_by_key)


def _possible_names(connection: Connection, places: Sequence[tuple[Words, NameStarts]]) -> set[str]:
    """Return the words of all known names that may be at these places in texts.

    A name of one word is its anchor. Where one of more than two words begins with the anchor, those that stand in the
    text are looked for by `_names_within`.
    """
    anchors = set[str]().union(*(starts.anchors for _, starts in places)) - {""}
    pairs = {name_anchor for name_anchor in anchors if " " in name_anchor}
    last_by_pair = {
        limit.removesuffix(_AFTER_SPACE): last
        for limit, last in _LAST_UP_TO.pairs(connection, [pair + _AFTER_SPACE for pair in sorted(pairs)])
    }
    names = anchors - pairs | {pair for pair, last in last_by_pair.items() if last == pair}
    longer = {pair for pair, last in last_by_pair.items() if last and last.startswith(f"{pair} ")}
    texts = {
        following_words(words, position, _MAX_NAME_WORDS)
        for words, starts in places
        for position, name_anchor in zip(*starts, strict=True)
        if name_anchor in longer
    }
    return names | _names_within(connection, texts)


def _names_within(connection: Connection, texts: set[str]) -> set[str]:
    """Return the words of the names of two or more words with which these texts begin.

    All names with which a text begins are before it in code point order, and the last name before the text begins with
    them, too. So each round looks one name up, and goes on with the words that it shares with the text. The cost does
    not grow with the number of names that begin with the same words.
    """
    names = set[str]()
    while texts:
        shorter = set[str]()
        for text, last in _LAST_UP_TO.pairs(connection, sorted(texts)):
            shared = _shared_words(text, last or "")
            if shared and shared == last:
                names.add(shared)
                shared = shared.rpartition(" ")[0]
            if " " in shared:
                shorter.add(shared)
        texts = shorter
    return names


def _shared_words(first: str, second: str) -> str:
    """Return the words with which both begin."""
    pairs = zip(first.split(" "), second.split(" "), strict=False)
    return " ".join(word for word, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _link_new_names(connection: Connection, names: Mapping[str, int]) -> None:
    """Find new names in the chunks that are in full text already: its phrases lead to texts, which decide."""
    keys_by_chunk: dict[int, list[str]] = {}
    phrases = {key: terms for key in names if (terms := _terms_of_name(key))}
    for key, chunks in chunks_with_phrases(connection, phrases).items():
        for chunk in chunks:
            keys_by_chunk.setdefault(chunk, []).append(key)
    counts: dict[int, dict[str, int]] = {}
    for row in _CHUNK_TEXTS.rows(connection, sorted(keys_by_chunk)):
        counts[row.rid] = count_occurrences(split_words(row.text), group_by_anchor(keys_by_chunk[row.rid]))
    _insert_links(connection, counts, names)


def _terms_of_name(key: str) -> list[str]:
    """Return consecutive terms of full text that every chunk has in which this name occurs."""
    return phrase_terms(key) if len(name_forms(key)) > 1 else [key_of(capital_term(key))]


def _drop_links(connection: Connection, chunks: Sequence[int]) -> None:
    """Delete the links of chunks."""
    _DELETE_LINKS_OF_CHUNKS.run(connection, chunks)


def _insert_links(connection: Connection, counts: Mapping[int, Mapping[str, int]], rids: Mapping[str, int]) -> None:
    rows = [{"name": rids[key], "chunk": chunk, "n": n} for chunk, names in counts.items() for key, n in names.items()]
    insert_rows(connection, s.link, rows)


def full_text_differences(connection: Connection, analyzer: Analyzer) -> Iterator[str]:
    """Compare each segment with one that is built again from its chunks; the chunks must be in one segment each."""
    id_by_rid: dict[int, str] = dict(map(tuple, connection.execute(select(_c.rid, _c.id))))
    n_by_rid = Counter[int]()
    for part in segments.read_all(connection):
        n_by_rid.update(part.chunks[part.is_there].tolist())
    yield from (f"chunk {id_by_rid[rid]}: it is not in full text" for rid in sorted(id_by_rid.keys() - n_by_rid.keys()))
    yield from (f"full text: chunk row {rid} does not exist" for rid in sorted(n_by_rid.keys() - id_by_rid.keys()))
    yield from (f"full text: chunk row {rid} is indexed {n:,} times" for rid, n in sorted(n_by_rid.items()) if n > 1)
    yield from segments.sum_differences(connection)
    for part in segments.read_all(connection):
        builder = _built_again(connection, analyzer, part.chunks.tolist())
        if builder.lengths != np.where(part.is_there, part.lengths, 0).tolist():
            yield f"full text: segment {part.rid} has other numbers of terms than its chunks"
        yield from segments.differences(connection, part.rid, builder)


def _built_again(connection: Connection, analyzer: Analyzer, rids: Sequence[int]) -> PostingsBuilder:
    """Return the postings of these chunks in these slots; a chunk that does not exist has no terms."""
    builder = PostingsBuilder()
    for some in blocks(rids):
        chunk_by_rid = {chunk.rid: chunk for chunk in chunk_words(connection, [rid for rid in some if rid])}
        for rid in some:
            if chunk := chunk_by_rid.get(rid):
                words = split_words(chunk.text)
                builder.add(rid, index_terms(chunk, words, analyzer), _keys(chunk, words))
            else:
                builder.add(rid, (), ())
    return builder


def write_questions(connection: Connection, changes: ChunkChanges) -> VectorChanges:
    """Write the questions of new chunks and drop those of removed ones; return the changed vectors."""
    vectors = VectorChanges()
    before = _questions_in([*changes.removed, *(old for old, _ in changes.reworded)])
    _DROP_QUESTIONS.run(connection, sorted({chunk for chunk, *_ in before}))
    for *_, text in before:
        vectors.moved(VectorSpace.QUESTION, vector_hash(VectorSpace.QUESTION, text), "")
    after = _questions_in([*changes.added, *(new for _, new in changes.reworded)])
    return vectors | _insert_questions(connection, after)


def rebuild_questions(connection: Connection) -> VectorChanges:
    """Write the questions of all chunks again; return their vectors."""
    connection.execute(s.question.delete())
    vectors = VectorChanges()
    for rids in blocks(connection.execute(_ALL_CHUNKS).scalars().all()):
        vectors |= _insert_questions(connection, _questions_in(chunk_words(connection, rids)))
    return vectors


def question_differences(connection: Connection) -> Iterator[str]:
    """Compare the questions of all chunks with those that their texts hold."""
    for rids in blocks(connection.execute(_ALL_CHUNKS).scalars().all()):
        rows = _questions_in(chunk_words(connection, rids))
        expected = {(chunk, ordinal, *span) for chunk, ordinal, span, _ in rows}
        stored = {(row.chunk, row.ordinal, row.start_char, row.end_char) for row in _QUESTIONS.rows(connection, rids)}
        for chunk, ordinal, *_ in sorted(expected ^ stored):
            yield f"question {ordinal} of chunk row {chunk}: its place differs from the text"
    lost = select(s.question.c.chunk).where(s.question.c.chunk.not_in(select(_c.rid))).distinct()
    yield from (f"questions of chunk row {rid}: the chunk does not exist" for rid in connection.scalars(lost))


_Question = tuple[int, int, tuple[int, int], str]  # row of the chunk, ordinal, span within its text, text


def _questions_in(chunks: Sequence[ChunkWords]) -> list[_Question]:
    return [
        (chunk.rid, ordinal, span, chunk.text[slice(*span)])
        for chunk in chunks
        for ordinal, span in enumerate(record_questions(chunk.text, chunk.header))
    ]


def _insert_questions(connection: Connection, rows: Sequence[_Question]) -> VectorChanges:
    vectors = VectorChanges()
    first_rid = next_rid(connection, s.question) if rows else 0
    values: list[dict[str, Any]] = []
    for chunk, ordinal, (start, end), text in rows:
        text_hash = vector_hash(VectorSpace.QUESTION, text)
        vectors.moved(VectorSpace.QUESTION, "", text_hash)
        place = {"chunk": chunk, "ordinal": ordinal, "start_char": start, "end_char": end}
        values.append({"rid": first_rid + len(values), **place, "vector_hash": text_hash})
    insert_rows(connection, s.question, values)
    return vectors
