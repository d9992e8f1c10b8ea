"""context: passages linked by names, hyperlinks and rare terms."""

from quipu.model.query import Filter, Options, Query
from quipu.retrieve.context import ContextOptions, retrieve
from tests.unit.retrieve.fakes import Library, page, titles

FILLER = tuple(page(f"filler {n}", f"Bread and soup number{n} were served.") for n in range(12))


async def _ranked(library: Library, text: str, allowed: Filter | None = None, *options: Options) -> list[str]:
    async with library.view(allowed) as view:
        evidence = await retrieve(Query(text=text, options=options), view, library.tools)
        return await titles(view, evidence.chunks)


async def _reason(library: Library, text: str, title: str) -> str:
    async with library.view() as view:
        evidence = await retrieve(Query(text=text), view, library.tools)
        names = await titles(view, evidence.chunks)
    return evidence.chunks[names.index(title)].reason


async def test_the_passage_that_defines_a_term_follows_the_one_that_uses_it(library: Library) -> None:
    use = page("Guide", "Every request obeys the backoff policy.")
    definition = page("Words", "## Backoff policy\nPauses double until one minute has passed.")
    await library.publish(use, definition, *FILLER)
    assert (await _ranked(library, "What does every request obey?"))[:2] == ["Guide", "Words"]
    assert "'backoff policy', which names it" in await _reason(library, "What does every request obey?", "Words")


async def test_a_hyperlink_leads_to_the_section_of_the_other_document(library: Library) -> None:
    here = page("a.md", "Requests fail now and then: [more](b.md#slow-nights).")
    there, other = page("b.md", "## Slow nights\nTwo engineers wait."), page("c.md", "## Slow nights\nOwls wait.")
    await library.publish(here, there, other, *FILLER)
    ranked = await _ranked(library, "When do requests fail?")
    assert ranked[0] == "a.md"
    assert "b.md" in ranked[1:3]
    reason = await _reason(library, "When do requests fail?", "b.md")
    assert "mentions 'slow-nights', which names it" in reason


async def test_a_hyperlink_without_a_section_leads_to_the_first_passage(library: Library) -> None:
    await library.publish(page("a.md", "Requests fail: [more](b.md)."), page("b.md", "Owls wait."), *FILLER)
    assert (await _ranked(library, "When do requests fail?"))[:2] == ["a.md", "b.md"]
    assert "links to it" in await _reason(library, "When do requests fail?", "b.md")


async def test_who_links_to_a_seed_is_linked_too(library: Library) -> None:
    await library.publish(page("a.md", "Owls wait: [more](b.md)."), page("b.md", "Requests fail."), *FILLER)
    assert (await _ranked(library, "When do requests fail?"))[:2] == ["b.md", "a.md"]
    assert "links to the document" in await _reason(library, "When do requests fail?", "a.md")


async def test_a_shared_rare_term_links_and_a_frequent_one_does_not(library: Library) -> None:
    first, second = page("One", "The zeppelin carried soup."), page("Two", "A zeppelin burned.")
    await library.publish(first, second, *FILLER)
    question = "What was carried?"
    assert (await _ranked(library, question))[:2] == ["One", "Two"]
    assert "shares the rare term 'zeppelin'" in await _reason(library, question, "Two")
    assert "rare term 'soup'" not in await _reason(library, question, "Two")
    none = await _ranked(library, question, None, ContextOptions(context_link_weight=0.0))
    assert "Two" not in none


async def test_a_number_means_a_table_of_the_same_document_only(library: Library) -> None:
    await library.publish(page("a", "Limits are in table 2."), page("b", "Table 2: owls"), *FILLER)
    async with library.view() as view:
        evidence = await retrieve(Query(text="Where are limits?"), view, library.tools)
        ranked = await titles(view, evidence.chunks)
    assert ranked[0] == "a"
    assert not any("table 2" in hit.reason for hit in evidence.chunks)


async def test_a_filter_hides_linked_passages(library: Library) -> None:
    await library.publish(page("a.md", "Requests fail: [more](b.md)."), page("b.md", "Owls wait."), *FILLER)
    assert await _ranked(library, "When do requests fail?", Filter(documents=("a.md",))) == ["a.md"]


async def test_an_empty_index_gives_no_passage(library: Library) -> None:
    assert await _ranked(library, "When do requests fail?") == []
