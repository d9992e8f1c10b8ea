"""Which terms of a glossary a chunk speaks of."""

from quipu.ingest.llm.grounds import Grounds
from quipu.ingest.llm.terms import MAX_TERMS, terms_in
from quipu.model.extraction import ChunkInput, GlossaryTerm

GROUNDS = Grounds(ChunkInput(text="The FBI met acme-corp. 郑和来了。", title="Ming"))


def test_terms_are_known_by_name_or_alias_in_any_case_and_in_their_order() -> None:
    terms = (
        GlossaryTerm(name="Ming"),
        GlossaryTerm(name="Federal Bureau", aliases=("FBI",)),
        GlossaryTerm(name="Acme Corp"),
        GlossaryTerm(name="郑和"),
        GlossaryTerm(name="Acme Corporation"),
        GlossaryTerm(name="FB"),
    )
    assert [term.name for term in terms_in(GROUNDS, terms)] == ["Ming", "Federal Bureau", "Acme Corp", "郑和"]


def test_there_are_never_too_many() -> None:
    assert (
        len(terms_in(GROUNDS, [GlossaryTerm(name="Ming", definition=str(number)) for number in range(99)])) == MAX_TERMS
    )
