"""From evidence to an answer, and the trace of the way."""

from collections.abc import Iterator

from quipu.answer import NOTHING_FOUND, compose
from quipu.model.answer import Answer
from quipu.model.evidence import Timing
from quipu.model.query import Budget, Filter, Query
from quipu.providers.local import ByteTokenizer
from quipu.retrieve import strategy_named
from tests.unit.retrieve.fakes import Library, page

PAGE = page(
    "Marco Polo",
    "Marco Polo was born in Venice in 1254, as the son of a merchant who was then away in Constantinople on business.\n"
    "He dictated his travels to Rustichello of Pisa in a prison of Genoa, where both were held for more than a year.",
    names={"Marco Polo": "Person", "Venice": "Location", "Rustichello of Pisa": "Person", "Genoa": "Location"},
)
EMPTY_PAGE = page("Bricks", "Bricks are made of clay and burnt in a kiln for three days.", names={"Bricks": "Artifact"})


async def _ask(library: Library, query: Query) -> Answer:
    async with library.view(query.filter) as view:
        evidence = await strategy_named(query.strategy).retrieve(query, view, library.tools)
        return await compose(
            query, evidence, view, ByteTokenizer(), timings=(Timing(stage="retrieve", ms=5.0),), clock=_clock()
        )


def _clock() -> "_Clock":
    return _Clock(iter((1.0, 1.25, 1.75)))


class _Clock:
    def __init__(self, times: Iterator[float]) -> None:
        self._times = times

    def __call__(self) -> float:
        return next(self._times)


async def test_every_quote_resolves_to_the_words_of_its_document(library: Library) -> None:
    await library.publish(PAGE, EMPTY_PAGE)
    answer = await _ask(library, Query(text="To whom did Marco Polo dictate his travels in Genoa?"))
    document = PAGE.chunks[0].chunk.text
    assert answer.is_supported
    assert answer.generator == "extractive"
    assert "Rustichello of Pisa" in answer.citations[0].quote
    for citation in answer.citations:
        assert f"{citation.quote} [{citation.number}]" in answer.text
    first = answer.citations[0]
    assert document[first.start : first.end] == first.quote
    assert (first.document_id, first.source) == ("Marco Polo", "Marco Polo.md")
    assert f"[{first.number}] Marco Polo" in answer.context


async def test_the_trace_tells_the_way(library: Library) -> None:
    await library.publish(PAGE, EMPTY_PAGE)
    answer = await _ask(library, Query(text="Where was Marco Polo born?", budget=Budget(relations=0)))
    trace = answer.trace
    assert trace.strategy == "mix"
    assert [(timing.stage, timing.ms) for timing in trace.timings] == [
        ("retrieve", 5.0),
        ("pack", 250.0),
        ("answer", 500.0),
    ]
    assert trace.evidence.seeds[0].text == "Marco Polo"
    assert trace.stale == ()
    assert "the best quote holds" in trace.notes[0]
    assert answer.prompt.endswith("Where was Marco Polo born?")


async def test_an_unsupported_question_says_what_was_searched_and_cites_nothing(library: Library) -> None:
    await library.publish(PAGE, EMPTY_PAGE)
    answer = await _ask(library, Query(text="Which planets did Kepler observe from Prague?", min_similarity=0.0))
    assert answer.text.startswith(NOTHING_FOUND)
    assert "2 passages from 2 documents" in answer.text
    assert (answer.is_supported, answer.citations) == (False, ())
    assert answer.context


async def test_bypass_and_empty_indexes_bring_nothing_back(library: Library) -> None:
    for strategy in ("bypass", "mix"):
        answer = await _ask(library, Query(text="Who was Marco Polo?", strategy=strategy))
        assert answer.text == f"{NOTHING_FOUND} The strategy '{strategy}' brought back no passage."
        assert not answer.is_supported


async def test_text_a_filter_excludes_is_never_quoted(library: Library) -> None:
    await library.publish(PAGE, EMPTY_PAGE)
    query = Query(text="Where was Marco Polo born?", filter=Filter(exclude=("Marco Polo",)), min_similarity=0.0)
    answer = await _ask(library, query)
    assert not answer.is_supported
    assert "Venice" not in answer.text + answer.context


async def test_vectors_not_computed_yet_are_reported(library: Library) -> None:
    await library.publish(PAGE, is_embedded=False)
    answer = await _ask(library, Query(text="Where was Marco Polo born?"))
    assert "vectors are not computed yet" in answer.trace.stale[0]
    assert answer.is_supported
