"""Quote sources: everything that quotes are taken from, read from one view: passages, what surrounds them, documents.

Beside the passages of the evidence, the best passages by full text are read, for each part of the question: a strategy
that follows vectors or the graph may leave out the passage that says it in the same words. An overview reads documents.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import commonprefix

from quipu.answer.passage_text import NearestQuestion, PassageText, Place, read_passage
from quipu.answer.question_kind import AnalysedQuestion, QuestionKind, QuestionPart, TermDefinition, analyse_question
from quipu.answer.sentence_scores import WordFinder
from quipu.answer.table_answer import asks_for_computation
from quipu.model.document import Document
from quipu.model.evidence import Evidence, Scored
from quipu.model.graph import Chunk, EntityMention
from quipu.model.ids import sentence_place
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.text.references import SectionNumber, number_of_heading, section_number
from quipu.text.sentences import record_questions
from quipu.text.words import content_terms_of

MAX_PASSAGES = 8  # of the evidence; more change nothing, fewer lose answers
MAX_TEXT_PASSAGES = 3  # by full text, beside those of the evidence
MAX_PART_PASSAGES = 5  # by full text, for each of several parts of a question
MAX_DEFINITION_PASSAGES = 40  # by full text: of those, the ones that define the term
MAX_DOCUMENTS = 5_000  # whose titles are compared with the topic of an overview
MAX_TABLE_DOCUMENTS = 4  # read whole, to compute over a table that is cut
MAX_TABLE_CHUNKS = 64  # of such a document
MAX_OVERVIEW_CHUNKS = 64  # of one document
MAX_SECTION_CHUNKS = 512  # of a document in whose text the heading of a section is looked for
N_FIRST_CHUNKS = 3  # of the document that stands for a group
MAX_GROUPS = 8  # of documents, in an overview of all
MAX_NAMES = 8
MIN_RECORD_MARGIN = 0.1  # of the nearest question: its passage is read, whatever its rank
FAR_COSINE = 0.2  # of a question with the nearest other one, where that was not found
MIN_TITLE_SHARE = 0.5  # of the words of a topic in the title of the document it names
_FRONT_PAGES = frozenset(("index", "readme", "overview", "intro", "introduction", "about", "home"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentGroup:
    """Documents of one folder and the first chunks of the one that stands for them."""

    name: str
    n_documents: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteSources:
    """The question and what is read to answer it by quotes.

    `ranked` are, for each part of the question, chunks with their share of the best one's score. `chunk_by_place`
    holds their neighbours, and every chunk of `whole_documents`. `document` are the chunks of the document an overview
    is about, or of its section under the heading `section`, `names` the entities it mentions most; `groups` are those
    of all documents, where it is about all of them.
    `text_score` is the full-text score of the best passage over ln(2 + n) of the n chunks of the index: its rare words,
    whatever the index's size. `subject` is the one name of an entity in the question, "" where it has none or several.
    `nearest_question` is the question of a record that is nearest to it.
    """

    question: AnalysedQuestion
    ranked: tuple[tuple[tuple[Chunk, float], ...], ...] = ()
    chunk_by_place: Mapping[Place, Chunk] = field(default_factory=dict)
    whole_documents: frozenset[str] = frozenset()
    document: tuple[Chunk, ...] = ()
    section: str = ""
    names: tuple[str, ...] = ()
    groups: tuple[DocumentGroup, ...] = ()
    n_documents: int = 0
    text_score: float = 0.0
    subject: str = ""
    nearest_question: NearestQuestion | None = None

    def chunks(self) -> Iterator[Chunk]:
        """Yield every chunk that may be quoted, some more than once."""
        yield from (chunk for hits in self.ranked for chunk, _ in hits)
        yield from self.document
        yield from (chunk for group in self.groups for chunk in group.chunks)

    def passages(self) -> list[list[PassageText]]:
        """Return the passages for each part of the question, with their surroundings, in blocks."""
        text_by_chunk: dict[str, PassageText] = {}
        for chunk, score in (hit for hits in self.ranked for hit in hits):
            if chunk.id not in text_by_chunk:
                text_by_chunk[chunk.id] = read_passage(chunk, score, self.chunk_by_place, self.nearest_question)
        return [[text_by_chunk[chunk.id] for chunk, _ in hits] for hits in self.ranked]


async def read_quote_sources(text: str, ranking: Sequence[Chunk], evidence: Evidence, view: ReadView) -> QuoteSources:
    """Read what quotes for the question `text` need; `ranking` are the passages of the evidence, best first."""
    score_by_chunk = {hit.id: hit.score for hit in evidence.chunks}
    question = analyse_question(text)
    best_by_text = {chunk.text_hash: chunk for chunk in reversed(ranking)}  # copies are read once
    passages = [chunk for chunk in ranking if best_by_text[chunk.text_hash] is chunk][:MAX_PASSAGES]
    if not evidence.searches_index or question.kind is QuestionKind.SMALL_TALK:
        return QuoteSources(question=question)
    if question.kind is QuestionKind.OVERVIEW:
        scored = [(chunk, score_by_chunk.get(chunk.id, 0.0)) for chunk in passages]
        return await _read_overview(question, scored, view)
    nearest = _nearest_question(evidence)
    if (
        nearest is not None
        and nearest.margin >= MIN_RECORD_MARGIN
        and nearest.chunk not in {chunk.id for chunk in passages}
    ):
        passages = [*passages, *await view.chunks([nearest.chunk])]
    best_score = max([score_by_chunk.get(chunk.id, 0.0) for chunk in passages], default=0.0)
    hits = [(chunk, score_by_chunk.get(chunk.id, 0.0) / best_score if best_score > 0 else 0.0) for chunk in passages]
    is_definition = question.kind is QuestionKind.DEFINITION
    k = MAX_PART_PASSAGES if len(question.parts) > 1 else MAX_TEXT_PASSAGES
    n_searched = MAX_DEFINITION_PASSAGES if is_definition else k
    matches = [await view.search_text(NodeKind.CHUNK, part.words, n_searched) for part in question.parts]
    chunk_ids = [match.id for part_matches in matches for match in part_matches]
    chunk_by_id = {chunk.id: chunk for chunk in await view.chunks(chunk_ids)} if chunk_ids else {}
    if is_definition:
        matches = [_with_definitions(question.parts[0], matches[0], chunk_by_id)]
    ranked = [_joined(hits, part_matches, chunk_by_id) for part_matches in matches]
    best_text_score = max((match.score for part_matches in matches for match in part_matches), default=0.0)
    n_chunks = (await view.counts("chunks")).chunks
    ids = list(dict.fromkeys(chunk.id for part_hits in ranked for chunk, _ in part_hits))
    near = await view.chunks(ids, with_neighbours=True) if ids else []
    cut = await _documents_with_cut_tables(question, near, view)
    near += [chunk for document_id in cut for chunk in await view.chunks(document_id=document_id)]
    return QuoteSources(
        question=question,
        ranked=tuple(map(tuple, ranked)),
        text_score=best_text_score / math.log(2 + n_chunks),
        subject=_subject(evidence),
        nearest_question=None if is_definition and _asks_otherwise(nearest, question.parts[0].term, near) else nearest,
        chunk_by_place={(chunk.document_id, chunk.ordinal): chunk for chunk in near},
        whole_documents=frozenset(cut),
    )


def _nearest_question(evidence: Evidence) -> NearestQuestion | None:
    """Return the question of a record that a search found nearest to the one asked.

    The others are not only questions: a question that shares just the name of a product is farther than passages.
    """
    matches_by_kind = {seed.kind: seed.matches for seed in evidence.seeds}
    matches = matches_by_kind.get("question", ())
    if not matches:
        return None
    chunk, ordinal = sentence_place(matches[0].id)
    passages = (match for match in matches_by_kind.get("vector", ()) if match.id != chunk)
    others = [match.score for match in (*matches[1:], *passages)]
    return NearestQuestion(chunk=chunk, ordinal=ordinal, margin=matches[0].score - max(others, default=FAR_COSINE))


def _asks_otherwise(nearest: NearestQuestion | None, term: str, chunks: Sequence[Chunk]) -> bool:
    """Return whether the question of a record is not what a term is: "Why camels?", or what another one is."""
    questions = [
        chunk.text[start:end]
        for chunk in chunks
        if nearest and chunk.id == nearest.chunk
        for start, end in record_questions(chunk.text, chunk.header)[nearest.ordinal :][:1]
    ]
    terms, analysed = {*content_terms_of(term)}, [analyse_question(text) for text in questions]
    return any(
        terms.isdisjoint(content_terms_of(question.parts[0].term))
        if question.kind is QuestionKind.DEFINITION
        else terms <= {*content_terms_of(question.parts[0].words)}
        for question in analysed
    )


def _subject(evidence: Evidence) -> str:
    """Return the only name that a search found in the question; "" where there is none, or more than one."""
    names = {seed.text for seed in evidence.seeds if seed.kind == "name"}
    return names.pop() if len(names) == 1 else ""


async def _documents_with_cut_tables(question: AnalysedQuestion, near: Sequence[Chunk], view: ReadView) -> list[str]:
    """Return the documents of which a chunk begins within a table that may be computed over, without the longest."""
    ids = list(dict.fromkeys(chunk.document_id for chunk in near if chunk.header))[:MAX_TABLE_DOCUMENTS]
    documents = await view.documents(ids) if ids and asks_for_computation(question) else []
    return [document.id for document in documents if document.n_chunks <= MAX_TABLE_CHUNKS]


def _with_definitions(part: QuestionPart, matches: Sequence[Scored], chunk_by_id: Mapping[str, Chunk]) -> list[Scored]:
    """Return the best passages by full text, and of the others those that define the term."""
    definition = TermDefinition(part)
    chunks = [(match, chunk_by_id[match.id]) for match in matches[MAX_TEXT_PASSAGES:] if match.id in chunk_by_id]
    defining = [
        match
        for match, chunk in chunks
        if definition.is_in(chunk.text, " ".join((chunk.title, chunk.document_id, *chunk.headings)))
    ]
    return [*matches[:MAX_TEXT_PASSAGES], *defining[:MAX_TEXT_PASSAGES]]


def _joined(
    hits: Sequence[tuple[Chunk, float]], matches: Sequence[Scored], chunk_by_id: Mapping[str, Chunk]
) -> list[tuple[Chunk, float]]:
    """Return the passages of the evidence, then the best by full text for one part, each with its share of the best."""
    ids = {chunk.id for chunk, _ in hits}
    new = [match for match in matches if match.id in chunk_by_id and match.id not in ids]
    return [*hits, *((chunk_by_id[match.id], match.score / matches[0].score) for match in new)]


async def _read_overview(
    question: AnalysedQuestion, passages: Sequence[tuple[Chunk, float]], view: ReadView
) -> QuoteSources:
    """Read the document that the topic names or that the best passages belong to; without a topic, all documents.

    Of the document only a section is read if the topic names one.
    """
    finder = WordFinder(question.parts[0])
    documents = [document for document in await view.documents() if document.n_chunks]
    if finder.terms or question.section:
        document_ids = _documents_of_topic(finder, documents[:MAX_DOCUMENTS], passages)
        section, chunks = "", list[Chunk]()
        for document_id in document_ids if question.section else document_ids[:1]:
            section, chunks = _section_of_topic(question, finder, await view.chunks(document_id=document_id))
            if chunks:
                break
        sampled = chunks[:: max(1, len(chunks) // MAX_OVERVIEW_CHUNKS)][:MAX_OVERVIEW_CHUNKS]
        names = await _central_names([chunk.id for chunk in sampled], view)
        return QuoteSources(
            question=question, document=tuple(sampled), section=section, names=names, n_documents=len(documents)
        )
    groups = [await _read_group(name, members, view) for name, members in _grouped(documents)]
    return QuoteSources(question=question, groups=tuple(groups), n_documents=len(documents))


def _documents_of_topic(
    finder: WordFinder, documents: Sequence[Document], passages: Sequence[tuple[Chunk, float]]
) -> list[str]:
    """Return the id of the document whose title fits a topic best, else the ids of those of the passages, best first.

    A title fits as far as it holds the words of the topic, weighted by their IDF in the titles, since the name of a
    product may stand in all of them; or as far as the topic holds the words of the title.
    """
    score_by_id: defaultdict[str, float] = defaultdict(float)
    for chunk, score in passages:
        score_by_id[chunk.document_id] += score
    words = {document.id: finder.terms_in(f"{document.title} {document.id}") for document in documents}
    df = Counter(term for terms in words.values() for term in terms)
    weight_by_term = {term: math.log1p(len(words) / (1 + df[term])) for term in finder.terms}
    total = math.fsum(weight_by_term.values()) or 1.0
    fits: list[tuple[float, float, str]] = []
    for document in documents:
        share = math.fsum(weight_by_term[term] for term in words[document.id]) / total
        title = {term for term in content_terms_of(document.title) if not term.isdigit()}
        covered = len(title.intersection(words[document.id])) / len(title) if len(title) > 1 else 0.0
        fits.append((round(max(share, covered), 6), score_by_id[document.id], document.id))
    fit, _, document_id = max(fits, default=(0.0, 0.0, ""))
    if fit >= MIN_TITLE_SHARE:
        return [document_id]
    return sorted(score_by_id, key=lambda key: (score_by_id[key], key), reverse=True)


def _section_of_topic(
    question: AnalysedQuestion, finder: WordFinder, chunks: Sequence[Chunk]
) -> tuple[str, list[Chunk]]:
    """Return the heading of the section that a topic names, and its chunks; "" and all chunks if it names none.

    It has the number that is asked for, or the words that the title lacks; a heading with all words of the topic is
    about the whole document. If none has the number, no chunks are returned. Headings within chunks come last, and of a
    long document they are not read.
    """
    title = f"{chunks[0].title} {chunks[0].document_id}"
    missing = frozenset(finder.terms) - finder.terms_in(title)
    if not question.section and missing in (frozenset(finder.terms), frozenset()):
        return "", list(chunks)
    paths = [chunk.headings or (chunk.title,) for chunk in chunks]
    if heading := _named_heading(question.section, finder, missing, paths):
        below = [place for place, path in enumerate(paths) if heading in path]
        begins_before = below[0] > 0 and heading in _headings_within(chunks[below[0] - 1])
        return heading, [chunks[place] for place in (*([below[0] - 1] if begins_before else ()), *below)]
    lines = [_headings_within(chunk) for chunk in (chunks if len(chunks) <= MAX_SECTION_CHUNKS else ())]
    if heading := _named_heading(question.section, finder, missing, lines):
        return heading, [chunk for chunk, names in zip(chunks, lines, strict=True) if heading in names]
    return "", list(chunks) if not question.section or section_number(title) == question.section else []


def _named_heading(
    section: SectionNumber | None, finder: WordFinder, missing: frozenset[str], paths: Sequence[Sequence[str]]
) -> str:
    """Return the heading with the number of a section, or else with the `missing` words of the topic; "" if none has.

    Of several with the number, one that is called as in the question is it, then one that begins with just the number.
    """
    headings = dict.fromkeys(heading for path in paths for heading in path)
    if section:
        numbers = {heading: number for heading in headings if (number := number_of_heading(heading))}
        named = [heading for heading, number in numbers.items() if number.number == section.number]
        return min(named, key=lambda name: (numbers[name].kind != section.kind, numbers[name].kind != ""), default="")
    topic = frozenset(finder.terms)
    return min((heading for heading in headings if missing <= finder.terms_in(heading) < topic), key=len, default="")


def _headings_within(chunk: Chunk) -> list[str]:
    return [name for _, name in read_passage(chunk, 1.0, {}).headings()]


async def _central_names(chunk_ids: Sequence[str], view: ReadView) -> tuple[str, ...]:
    """Return the names of the entities that most of these chunks mention."""
    mentions = await view.mentions(EntityMention, chunk_ids)
    surfaces: dict[str, Counter[str]] = {}
    for chunk_id in chunk_ids:
        for key, surface in {mention.key: mention.surface for mention in mentions.get(chunk_id, ())}.items():
            surfaces.setdefault(key, Counter())[surface] += 1
    keys = sorted(surfaces, key=lambda key: (-surfaces[key].total(), key))[:MAX_NAMES]
    return tuple(surfaces[key].most_common(1)[0][0] for key in keys)


def _grouped(documents: Sequence[Document]) -> list[tuple[str, list[Document]]]:
    """Return the largest groups of documents: by the first folder that not all share, each document alone outside."""
    parts = [document.id.split("/") for document in documents]
    n_shared = len(commonprefix([folders for *folders, _ in parts]))
    members: dict[str, list[Document]] = {}
    for document, names in zip(documents, parts, strict=True):
        members.setdefault(names[n_shared], []).append(document)
    largest = sorted(members.items(), key=lambda group: (-sum(document.n_chunks for document in group[1]), group[0]))
    return largest[:MAX_GROUPS]


async def _read_group(name: str, members: Sequence[Document], view: ReadView) -> DocumentGroup:
    def prominence(document: Document) -> tuple[bool, int, int, str]:
        stem = document.id.rsplit("/", 1)[-1].partition(".")[0].casefold()
        return stem not in _FRONT_PAGES, document.id.count("/"), -document.n_chunks, document.id

    chunks = await view.chunks(document_id=min(members, key=prominence).id, n_first=N_FIRST_CHUNKS)
    return DocumentGroup(name=name, n_documents=len(members), chunks=tuple(chunks))
