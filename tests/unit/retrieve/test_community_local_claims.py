"""Claiming: what a question shares words with comes first, then what many say, then the first by id."""

import pytest

from quipu.model.graph import Claim
from quipu.retrieve import community_local
from quipu.retrieve.community_local import MAX_CLAIMS, rank_claims, select_claims
from quipu.testing.facts import claim, document, entity, passage
from quipu.text.words import content_terms_of
from tests.unit.retrieve.fakes import Library


def a_claim(identifier: str, description: str, *, other: str = "", kind: str = "", dates: str = "") -> Claim:
    """Return a claim about Basil."""
    return Claim(
        id=identifier,
        chunk_id=identifier.partition(":")[0],
        subject="basil",
        object=other.casefold(),
        subject_name="Basil",
        object_name=other,
        type=kind,
        status="",
        dates=dates,
        description=description,
    )


def ordered(question: str, *claims: Claim) -> list[tuple[str, int]]:
    """Return the claims of use to a question, with how many words they share with it."""
    return [(each.claim.id, each.n_shared_words) for each in rank_claims(claims, frozenset(content_terms_of(question)))]


def test_what_shares_words_with_the_question_comes_first_in_any_form_of_these_words() -> None:
    found = ordered(
        "What did Basil print for Anna in 1301?",
        a_claim("a:0", "He fled."),
        a_claim("b:0", "He took silk.", other="Anna", dates="1301"),
        a_claim("c:0", "He was seen printing."),
    )
    assert found == [("b:0", 2), ("c:0", 1), ("a:0", 0)]


def test_the_name_of_whom_they_are_about_tells_none_from_another() -> None:
    assert ordered("Basil?", a_claim("b:0", "Basil fled."), a_claim("a:0", "He hid.")) == [("a:0", 0), ("b:0", 0)]


def test_of_equals_what_more_chunks_claim_comes_first_then_by_id() -> None:
    claims = [
        a_claim("a:0", "He fled."),
        a_claim("c:0", "He hid.", kind="hiding"),
        a_claim("d:1", "he  hid.", kind="Hiding"),
        a_claim("b:0", "He lied."),
    ]
    assert ordered("Who?", *claims) == ordered("Who?", *reversed(claims))
    assert [name for name, _ in ordered("Who?", *claims)] == ["c:0", "a:0", "b:0", "d:1"]


def test_what_was_claimed_before_comes_after_all_that_says_something_new() -> None:
    claims = [a_claim("a:0", "He stole silk."), a_claim("b:0", "He stole silk."), a_claim("c:0", "He wept.")]
    assert [name for name, _ in ordered("Who stole silk?", *claims)] == ["a:0", "c:0", "b:0"]


async def test_of_many_claims_those_of_use_are_taken_wherever_they_stand(library: Library) -> None:
    claims = [claim("Basil", f"Charge {n}.") for n in range(MAX_CLAIMS + 5)]
    stolen = claim("Basil", "He stole silk.")
    await library.publish(document("trial", passage("Basil.", entity("Basil"), *claims, stolen)))
    async with library.view() as view:
        found = await select_claims(["basil", "nobody"], "Who stole silk?", view, MAX_CLAIMS)
    first, *others = found.by_key["basil"]
    assert (first.claim.description, len(others)) == ("He stole silk.", MAX_CLAIMS - 1)
    assert not found.by_key["nobody"]
    assert found.truncated == {"basil"}


async def test_of_an_entity_no_more_are_read_than_a_bound(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(community_local, "MAX_CLAIMS_READ", 3)
    claims = [claim("Basil", f"Charge {n}.") for n in range(4)]
    await library.publish(document("trial", passage("Basil.", entity("Basil"), *claims)))
    async with library.view() as view:
        found = await select_claims(["basil"], "What is charge 3?", view, MAX_CLAIMS)
    assert [each.claim.description for each in found.by_key["basil"]] == ["Charge 0.", "Charge 1.", "Charge 2."]
