"""Seeds: where a strategy starts: the names in a question, its themes, and what is nearest to it in the index."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import min_max_scaled
from quipu.model.evidence import Hit, Scored, Seed
from quipu.model.ids import sentence_place
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import NodeKind
from quipu.ports.providers import Embedder
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.strategy import Tools
from quipu.text.names import entity_key, name_forms
from quipu.text.unicode import is_unspaced
from quipu.text.words import STOP_WORDS, Words, split_words

N_BY_WORDS, N_QUESTIONS, N_MATCHES = 100, 10, 20  # scored by full text, questions of records, matches in the trace
MAX_NAME_WORDS = 12  # in a script without spaces each character counts as a word
MIN_UNSPACED_LENGTH = 2
# Text that cannot occur between two words of one name. A comma and a dot can: "Johnnycake, West Virginia", "St. Louis".
_BREAK = re.compile(r"[?!;\n。？！；]|.{4,}", re.DOTALL)

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameOptions(Options):
    """The options of strategies that start from the names in a question.

    A name in 20 % of the chunks carries at most ln 5 = 1.6 nats of information, so rarer names decide better.
    """

    match_names: bool = option(
        True, "Start from the entities whose name or alias is in the question, before similar ones.", faithful=False
    )
    max_name_share: float = option(
        0.2, "Drop names in a larger share of the chunks, if a rarer one remains.", between=(0.0, 1.0), faithful=1.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LowLevelKeywords:
    """The low-level keywords of a question, as one text to embed, and a seed for each that is an entity's name."""

    text: str
    keywords: tuple[str, ...] = ()
    names: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedName:
    """Characters [start, end) of the question are a name of these entities; several if they share an alias."""

    surface: str
    start: int
    end: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keyword:
    """A keyword and the keys of the entities it names; no keys if it is not the name of an entity."""

    surface: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _NameCandidate:
    """Consecutive words of the question that may be a name."""

    key: str
    words: Words
    end: int

    @property
    def start(self) -> int:
        return self.words[0].start

    def overlaps(self, other: "_NameCandidate") -> bool:
        return self.start < other.end and other.start < self.end


async def find_low_level_keywords(query: Query, view: ReadView) -> LowLevelKeywords:
    """Return the user's low-level keywords, else the entity names in the question and a model's keywords, else itself.

    As in LightRAG the keywords are joined and embedded once. A name that occurs in more than `max_name_share` of the
    chunks, and in more than `chunk_top_k` of them, is dropped if a rarer name remains. A model's keywords are added to
    the names found in the question, so that no name is lost because the model omits it. Without `match_names` there are
    no seeds, and names of the question count only if there is no keyword of the user or of a model.
    """
    options = query.options_of(NameOptions)
    if not options.match_names:
        keywords = query.low_level_keywords or query.model_keywords.low_level
        keywords = keywords or tuple(dict.fromkeys(name.surface for name in await link_names(query.text, view)))
        return LowLevelKeywords(text=", ".join(keywords) or query.text, keywords=keywords)
    if query.low_level_keywords:
        return _low_level(await _look_up(query.low_level_keywords, view))
    linked = [_Keyword(surface=name.surface, keys=name.keys) for name in await link_names(query.text, view)]
    named = linked + await _added_by_model(query.model_keywords.low_level, linked, view)
    if not named:
        note = "the question contains no entity name: its whole text is used as the low-level keyword"
        return LowLevelKeywords(text=query.text, notes=(note,))
    common = await _too_common(named, query.chunk_top_k, options.max_name_share, view)
    dropped = ", ".join(dict.fromkeys(keyword.surface for keyword in named if keyword in common))
    rare = [keyword for keyword in named if keyword not in common]
    surfaces = list(dict.fromkeys(keyword.surface for keyword in rare))
    return _low_level(
        rare, surfaces, notes=(f"names dropped because they are too common: {dropped}",) if dropped else ()
    )


def join_high_level_keywords(query: Query) -> str:
    """Return the user's high-level keywords as one text, else a model's, else the question itself."""
    return ", ".join(query.high_level_keywords or query.model_keywords.high_level) or query.text


async def link_names(text: str, view: ReadView) -> tuple[LinkedName, ...]:
    """Return the entity names and aliases in `text`, in order, without overlaps. Longer names win, then the leftmost.

    Matching is exact, on the normal form. What remains may be a name in another script or with other accents, if it
    is written as a name. A name of one word must be capitalised in the text, unless its script has no case or the text
    has no capital letter; an acronym must be in capitals. So "Brand" is found in "the author of Brand" and not in "a
    brand of soap".
    """
    has_capitals = text != text.lower()
    candidates = [candidate for candidate in _name_candidates(text) if _may_be_name(candidate, has_capitals)]
    keys_by_name = await view.keys_by_name(sorted({candidate.key for candidate in candidates}))
    chosen = _longest([candidate for candidate in candidates if candidate.key in keys_by_name], [])
    unlinked = [candidate for candidate in candidates if _is_written_as_name(candidate, has_capitals)]
    unlinked = [candidate for candidate in unlinked if not any(candidate.overlaps(name) for name in chosen)]
    if unlinked:
        keys_by_name |= await view.keys_by_name(sorted({name.key for name in unlinked}), any_spelling=True)
        chosen = _longest([candidate for candidate in unlinked if candidate.key in keys_by_name], chosen)
    return tuple(
        LinkedName(surface=text[name.start : name.end], start=name.start, end=name.end, keys=keys_by_name[name.key])
        for name in sorted(chosen, key=lambda candidate: candidate.start)
    )


def _longest(names: Iterable[_NameCandidate], chosen: Sequence[_NameCandidate]) -> list[_NameCandidate]:
    """Add to the chosen names the longest of `names` that overlap none, the leftmost of equally long ones."""
    longest = list(chosen)
    for name in sorted(names, key=lambda candidate: (-len(candidate.words), candidate.start, candidate.end)):
        if not any(name.overlaps(other) for other in longest):
            longest.append(name)
    return longest


def _low_level(
    keywords: Sequence[_Keyword], surfaces: Sequence[str] = (), *, notes: tuple[str, ...] = ()
) -> LowLevelKeywords:
    seeds = tuple(
        Seed(text=keyword.surface, kind="name", matches=tuple(Scored(id=key, score=1.0) for key in keyword.keys))
        for keyword in keywords
        if keyword.keys
    )
    surfaces = surfaces or [keyword.surface for keyword in keywords]
    return LowLevelKeywords(text=", ".join(surfaces), keywords=tuple(surfaces), names=seeds, notes=notes)


async def _added_by_model(keywords: Sequence[str], linked: Sequence[_Keyword], view: ReadView) -> list[_Keyword]:
    """Return a model's keywords that are not among the names already found in the question."""
    linked_keys = {entity_key(name.surface) for name in linked} | {key for name in linked for key in name.keys}
    return await _look_up([keyword for keyword in keywords if entity_key(keyword) not in linked_keys], view)


async def _look_up(surfaces: Sequence[str], view: ReadView) -> list[_Keyword]:
    names = [entity_key(surface) for surface in surfaces]
    keys_by_name = await view.keys_by_name(sorted({name for name in names if name}), any_spelling=True)
    return [
        _Keyword(surface=surface, keys=tuple(keys_by_name.get(name, ())))
        for surface, name in zip(surfaces, names, strict=True)
    ]


async def _too_common(
    keywords: Sequence[_Keyword], n_passages: int, max_share: float, view: ReadView
) -> frozenset[_Keyword]:
    """Return the names that are too common to narrow the search; none if no rarer name would remain."""
    names = [keyword for keyword in keywords if keyword.keys]
    entities = await view.entities(sorted({key for name in names for key in name.keys}))
    frequent = [entity for entity in entities if entity.n_chunks > n_passages]
    limit = max_share * (await view.counts("chunks")).chunks if frequent else 0
    common_keys = {entity.key for entity in frequent if entity.n_chunks > limit}
    common = frozenset(name for name in names if common_keys.issuperset(name.keys))
    return common if len(common) < len(set(names)) else frozenset()


def _name_candidates(text: str) -> list[_NameCandidate]:
    words = split_words(text)
    candidates = []
    for first in range(len(words)):
        for last in range(first, min(first + MAX_NAME_WORDS, len(words))):
            if last > first and _BREAK.search(text[words[last - 1].end : words[last].start]):
                break
            start = words[first].start
            candidates += [
                _NameCandidate(entity_key(text[start:end]), words[first : last + 1], end)
                for end in _name_ends(text, start, words[last].end)
            ]
    return [candidate for candidate in candidates if candidate.key]


def _name_ends(text: str, start: int, end: int) -> tuple[int, ...]:
    """Return where a name that starts at `start` may end: after its last word, and after the last dot of "U.S."."""
    is_dotted = "." in text[start:end] and text[end : end + 1] == "."
    return (end, end + 1) if is_dotted else (end,)


def _may_be_name(candidate: _NameCandidate, has_capitals: bool) -> bool:
    key, words = candidate.key, candidate.words
    if " " in key and key.isascii() and key.replace(" ", "").isalnum():
        return True  # several words: the rule below, without splitting the key again
    forms = name_forms(key)
    if key in STOP_WORDS and len(words) == len(forms):
        return False  # "who" is not a name, "The Who" may be one
    if is_unspaced(key):
        return len(forms) >= MIN_UNSPACED_LENGTH
    if len(forms) > 1:
        return True
    if key != key.casefold():
        return words[-1].is_acronym or len(words) > 1  # "US", or "U.S." in two words
    return not words[-1].is_acronym and (words[-1].is_capital or not has_capitals)


def _is_written_as_name(candidate: _NameCandidate, has_capitals: bool) -> bool:
    """Return whether capitals at both ends show a name, so that "the date of birth" never stands for another name."""
    first, last = candidate.words[0], candidate.words[-1]
    return not has_capitals or (first.is_capital and last.is_capital and first.form not in STOP_WORDS)


async def embed(texts: Iterable[str], embedder: Embedder) -> dict[str, Vector]:
    """Return the query vector of each text, from one call of the embedder. Equal texts are embedded once."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, await embedder.embed_queries(distinct), strict=True))


async def find_nearest(
    space: VectorSpace, vector: Vector, *, query: Query, k: int, view: ReadView, tools: Tools
) -> tuple[Scored, ...]:
    """Return the k ids of `space` nearest to `vector`, best first, none below the query's `min_similarity`."""
    (nearest,) = await tools.vectors.nearest(view, space, vector[np.newaxis, :], k=k, min_score=query.min_similarity)
    return nearest


async def find_nearest_passages(
    query: Query, vector: Vector, view: ReadView, tools: Tools
) -> tuple[tuple[Hit, ...], Seed]:
    """Return the `chunk_top_k` chunks nearest to the question, whose vector is `vector`, and the search as a seed."""
    k = query.chunk_top_k
    nearest = await find_nearest(VectorSpace.CHUNK, vector, query=query, k=k, view=view, tools=tools)
    return hits_by_cosine(nearest), Seed(text=query.text, kind="vector", matches=nearest)


def hits_by_cosine(nearest: Iterable[Scored]) -> tuple[Hit, ...]:
    """Return ids scored by their cosine to the question as hits with that reason."""
    return tuple(
        Hit(id=scored.id, score=scored.score, reason=f"cosine {scored.score:.3f} to the question") for scored in nearest
    )


async def score_all_passages(
    vector: Vector, topology: Topology, view: ReadView, tools: Tools, questions: Iterable[Scored] = ()
) -> Floats:
    """Return the similarity of every chunk to a question, [n_chunks], scaled: 0 for the farthest, 1 for the nearest.

    A chunk with one of these `questions`, which its text answers, is at least as similar as this. A chunk that has no
    vector, or that the filter excludes, scores 0.
    """
    rows, cosines = await tools.vectors.all_similarities(view, VectorSpace.CHUNK, vector)
    numbers, row_by_chunk = await view.chunk_vector_rows()
    positions = np.searchsorted(rows, row_by_chunk)
    is_visible = (
        rows.take(positions, mode="clip") == row_by_chunk if len(rows) else np.zeros(len(positions), dtype=bool)
    )
    if (allowed := await view.allowed_numbers(NodeKind.CHUNK)) is not None:
        is_visible &= np.isin(numbers, allowed)  # a row may be shared with chunks of other documents
    visible, similarities = numbers[is_visible], cosines[positions[is_visible]]
    cosine_by_chunk = {sentence_place(question.id)[0]: question.score for question in reversed(tuple(questions))}
    number_by_chunk = await view.numbers(NodeKind.CHUNK, sorted(cosine_by_chunk)) if cosine_by_chunk else {}
    for chunk, number in number_by_chunk.items():
        similarities[visible == number] = np.maximum(similarities[visible == number], cosine_by_chunk[chunk])
    scores = np.zeros(topology.n_chunks)
    scores[visible] = min_max_scaled(similarities)
    return scores


async def score_by_words_and_vectors(
    query: Query, topology: Topology, view: ReadView, tools: Tools
) -> tuple[tuple[Floats, Floats], tuple[Seed, ...]]:
    """Return the shares by words and by vectors of each chunk, both [n_chunks], and the searches as seeds."""
    vector = (await embed([query.text], tools.embedder))[query.text]
    questions = await find_nearest(VectorSpace.QUESTION, vector, query=query, k=N_QUESTIONS, view=view, tools=tools)
    by_vector = await score_all_passages(vector, topology, view, tools, questions)
    matches = await view.search_text(NodeKind.CHUNK, query.text, max(N_BY_WORDS, query.chunk_top_k))
    numbers = await view.numbers(NodeKind.CHUNK, [match.id for match in matches])
    by_words = np.zeros(len(by_vector))
    for match in matches:
        by_words[numbers[match.id]] = match.score / max(matches[0].score, 1e-12)  # 0 for words that are everywhere
    by_kind = {"full text": tuple(matches[:N_MATCHES])}
    if questions:  # with the nearest passages, so that it shows whether a question is nearer than all of them
        nearest = await find_nearest(VectorSpace.CHUNK, vector, query=query, k=N_MATCHES, view=view, tools=tools)
        by_kind |= {"question": questions, "vector": nearest}
    return (by_words, by_vector), tuple(Seed(text=query.text, kind=kind, matches=by_kind[kind]) for kind in by_kind)
