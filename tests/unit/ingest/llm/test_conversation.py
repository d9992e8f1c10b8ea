"""Tests of the conversation with a model about one chunk: options, limits, glossary, requests and replies."""

import json
from dataclasses import replace
from typing import Any

import pytest

from quipu.errors import Overloaded, QuipuError, Refused
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.ingest.llm.conversation import (
    MAX_TERMS,
    entity_limit,
    glossary_terms_in,
    output_token_limit,
)
from quipu.ingest.llm.grounding import GroundingText
from quipu.model.chat import ChatRequest, Completion, FinishReason
from quipu.model.extraction import (
    ChunkInput,
    ExtractedEntity,
    ExtractedRelation,
    Extraction,
    ExtractionExample,
    GlossaryTerm,
    Ontology,
    TypeRule,
)
from quipu.model.graph import ENTITY_TYPES
from quipu.ports.ingest import ExtractionResult
from quipu.ports.providers import TextSink, ignore_text
from quipu.prompts.extraction import render_continuation
from quipu.providers.local import ByteTokenizer
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.script import Fault, FaultName, Script
from tests.unit.ingest.llm.fakes import ACME, ANN, CHUNK, FOUNDED, LEEDS, TEXT, Said, SpokenLLM, outcomes, reply

WHOLE = reply(ANN, ACME, LEEDS, FOUNDED)
# Sixteen names: what a reply with one of them misses is worth asking for.
CITIES = "Oslo Bergen Lima Quito Paris Turin Milan Genoa Sofia Minsk Kyiv Riga Tartu Narva Turku Espoo"
LIST = f"The ferry calls at {', '.join(CITIES.split())} and at no other port."


async def read(llm: SpokenLLM, chunk: ChunkInput = CHUNK, **options: Any) -> ExtractionResult:
    made = LlmExtractor(llm, ByteTokenizer(), ExtractionOptions(**options), concurrency=1)
    (outcome,) = await outcomes(made, [chunk])
    return outcome


def names(outcome: ExtractionResult) -> list[str]:
    return [entity.name for entity in (outcome.extraction or Extraction()).entities]


def said(request: ChatRequest) -> list[str]:
    """The roles of a request's messages after the system's."""
    return [message.role for message in request.messages[1:]]


async def test_one_call_is_enough_where_nothing_is_missing() -> None:
    llm = SpokenLLM(WHOLE)
    assert names(await read(llm)) == ["Ann Lee", "Acme", "Leeds"]
    assert len(llm.requests) == 1


@pytest.mark.parametrize(("n_chars", "limit"), [(50, 4_096), (6_000, 4_096), (6_400, 8_192), (16_100, 16_384)])
async def test_the_limit_on_a_reply_follows_the_size_of_the_chunk(n_chars: int, limit: int) -> None:
    llm = SpokenLLM(WHOLE)
    await read(llm, ChunkInput(text=TEXT + "." * (n_chars - len(TEXT))), max_gleaning=0)
    assert llm.limits == [limit]


async def test_of_a_reply_cut_at_its_limit_the_whole_lines_are_kept_and_the_rest_asked_for() -> None:
    llm = SpokenLLM((f"{ANN}\n{ACME}\nentity<|>Lee", FinishReason.LENGTH), reply(LEEDS, FOUNDED))
    outcome = await read(llm)
    assert names(outcome) == ["Ann Lee", "Acme", "Leeds"]
    assert outcome.error == ""
    assert llm.limits == [4_096, 8_192]
    assistant, user = llm.requests[1].messages[2:]
    assert assistant.text == f"{ANN}\n{ACME}"
    assert user.text == render_continuation()


async def test_a_reply_that_ends_in_the_middle_of_a_record_is_continued_whatever_the_model_says() -> None:
    llm = SpokenLLM(f"{ANN}\n{ACME}\nentity<|>Lee", reply(LEEDS, FOUNDED))
    assert names(await read(llm)) == ["Ann Lee", "Acme", "Leeds"]


async def test_the_limit_is_raised_up_to_the_largest_and_no_further() -> None:
    llm = SpokenLLM(("<think>and so on and on", FinishReason.LENGTH))
    outcome = await read(llm)
    assert llm.limits == [4_096, 8_192, 16_384, 32_768]
    assert all(said(request) == ["user"] for request in llm.requests)
    assert outcome.extraction is None
    assert "32,768 tokens" in outcome.error and "thinking" in outcome.error


async def test_the_largest_limit_can_be_set() -> None:
    llm = SpokenLLM(("<think>and so on and on", FinishReason.LENGTH))
    await read(llm, max_output_tokens=6_000)
    assert llm.limits == [4_096, 6_000]


async def test_a_model_that_repeats_itself_is_stopped_and_what_it_said_is_kept() -> None:
    llm = SpokenLLM((f"{ANN}\n{ACME}\n" + f"{FOUNDED}\n" * 500, FinishReason.LENGTH))
    outcome = await read(llm)
    assert names(outcome) == ["Ann Lee", "Acme"]
    assert "did not end within" in outcome.error
    assert len(llm.requests) == 3


async def test_a_reply_in_ever_new_pieces_ends_some_time() -> None:
    count = iter(range(1_000))
    llm = SpokenLLM(speaker=lambda _: (f"alias<|>Acme<|>Leeds {next(count)}\nx", FinishReason.LENGTH))
    outcome = await read(llm)
    assert outcome.error
    assert len(llm.requests) == 8


async def test_a_reply_of_far_more_records_than_were_asked_for_is_not_continued() -> None:
    many = "\n".join(f"alias<|>Acme<|>Leeds {number}" for number in range(1_000))
    llm = SpokenLLM((f"{ANN}\n{ACME}\n{many}\n", FinishReason.LENGTH))
    outcome = await read(llm)
    assert names(outcome) == ["Ann Lee", "Acme"]
    assert "did not end within" in outcome.error
    assert len(llm.requests) == 1


async def test_a_reply_that_broke_off_is_asked_for_again_word_for_word() -> None:
    llm = SpokenLLM((f"{ANN}\n{LEEDS}\nent", FinishReason.INTERRUPTED), reply(ANN, ACME, FOUNDED))
    outcome = await read(llm)
    assert outcome.error == ""
    assert llm.requests[0] == llm.requests[1]
    assert names(outcome) == ["Ann Lee", "Acme"], "only the whole reply counts, as after a crash"


async def test_of_a_reply_that_broke_off_twice_the_whole_lines_are_kept_and_the_rest_asked_for() -> None:
    broken = (f"{ANN}\n{ACME}\nent", FinishReason.INTERRUPTED)
    llm = SpokenLLM(broken, (f"{ANN}\n", FinishReason.INTERRUPTED), reply(LEEDS, FOUNDED))
    outcome = await read(llm)
    assert outcome.error == ""
    assert names(outcome) == ["Ann Lee", "Acme", "Leeds"]
    assert llm.requests[2].messages[2].text == f"{ANN}\n{ACME}"


async def test_a_reply_that_breaks_off_again_and_again_is_given_up_with_what_it_said() -> None:
    llm = SpokenLLM((f"{ANN}\nent", FinishReason.INTERRUPTED))
    outcome = await read(llm)
    assert len(llm.requests) <= 3
    assert names(outcome) == ["Ann Lee"]
    assert "broke off" in outcome.error and "llm_timeout_s" in outcome.error


async def test_a_fault_after_a_broken_reply_keeps_its_whole_lines() -> None:
    llm = SpokenLLM((f"{ANN}\nent", FinishReason.INTERRUPTED), Overloaded("Busy."))
    outcome = await read(llm)
    assert (names(outcome), outcome.error) == (["Ann Lee"], "Busy.")


async def test_a_filtered_reply_is_an_error_with_what_was_let_through() -> None:
    outcome = await read(SpokenLLM((f"{ANN}\nentity<|>Ac", FinishReason.FILTERED)))
    assert names(outcome) == ["Ann Lee"]
    assert "withheld" in outcome.error


async def test_nothing_from_a_text_that_has_names_is_an_error_after_another_request() -> None:
    llm = SpokenLLM("<|done|>")
    outcome = await read(llm)
    assert outcome.extraction is None
    assert "named nothing in a text that contains names" in outcome.error and "quipu doctor" in outcome.error
    assert len(llm.requests) == 2
    assert llm.requests[0].hash("m") != llm.requests[1].hash("m")


async def test_names_of_another_world_count_as_nothing() -> None:
    llm = SpokenLLM(reply("entity<|>Ada Nwosu<|>Person<|>From the example."), WHOLE)
    assert names(await read(llm)) == ["Ann Lee", "Acme", "Leeds"]
    assert len(llm.requests) == 2


@pytest.mark.parametrize("text", ["there is nothing to name here, really.", "12 34 56\n78 90 12", "Yes. No. Perhaps."])
async def test_nothing_from_a_text_without_names_is_a_success(text: str) -> None:
    outcome = await read(SpokenLLM("<|done|>"), ChunkInput(text=text))
    assert outcome == ExtractionResult(index=0, extraction=Extraction())


async def test_nothing_is_a_success_where_only_some_types_are_wanted() -> None:
    strict = Ontology(is_strict=True, types=(TypeRule(name="Gene"),))
    llm = SpokenLLM("<|done|>")
    outcome = await read(llm, ontology=strict, max_gleaning=0)
    assert outcome == ExtractionResult(index=0, extraction=Extraction())
    assert len(llm.requests) == 1


async def test_what_a_reply_leaves_out_is_asked_for_with_the_names_that_seem_to_be_missing() -> None:
    llm = SpokenLLM(reply("entity<|>Oslo<|>City<|>A port."), reply("entity<|>Lima<|>City<|>A port."))
    outcome = await read(llm, ChunkInput(text=LIST))
    assert names(outcome) == ["Oslo", "Lima"]
    assert [said(request) for request in llm.requests] == [["user"], ["user", "assistant", "user"]]
    assistant, user = llm.requests[1].messages[2:]
    assert assistant.text == reply("entity<|>Oslo<|>City<|>A port.")
    assert "Lima" in user.text.splitlines()
    assert "Oslo" not in user.text.splitlines()


async def test_asking_again_ends_when_nothing_new_comes() -> None:
    first = reply("entity<|>Oslo<|>City<|>A port.")
    llm = SpokenLLM(first, reply("entity<|>Lima<|>City<|>A port."), "<|done|>")
    await read(llm, ChunkInput(text=LIST), max_gleaning=9)
    assert len(llm.requests) == 3


@pytest.mark.parametrize(("options", "n_calls"), [({"max_gleaning": 0}, 1), ({"always_glean": True}, 2), ({}, 1)])
async def test_how_often_to_ask_again_can_be_set(options: dict[str, Any], n_calls: int) -> None:
    llm = SpokenLLM(WHOLE)
    await read(llm, **options)
    assert len(llm.requests) == n_calls


async def test_what_was_said_first_is_not_changed_by_what_is_said_later() -> None:
    llm = SpokenLLM(WHOLE, reply("entity<|>Acme<|>Event<|>Something else.", "alias<|>Acme<|>Leeds"))
    outcome = await read(llm, always_glean=True)
    assert outcome.extraction is not None
    acme = next(entity for entity in outcome.extraction.entities if entity.name == "Acme")
    assert (acme.type, acme.description) == ("Organization", "Acme is in Leeds.")
    assert len(outcome.extraction.aliases) == 1


@pytest.mark.parametrize("fault", [Overloaded("Busy."), Refused("No.")])
async def test_a_fault_while_asking_again_keeps_the_first_reply(fault: QuipuError) -> None:
    outcome = await read(SpokenLLM(WHOLE, fault), always_glean=True)
    assert (names(outcome), outcome.error) == (["Ann Lee", "Acme", "Leeds"], str(fault))


async def test_json_is_asked_for_with_a_schema_and_continued_as_json() -> None:
    cut = '{"entities": [{"name": "Ann Lee", "type": "Person", "description": "She founded Acme."}, {"name": "Ac'
    rest = (
        '{"entities": [{"name": "Acme", "type": "Company", "description": "A firm."}], "relations": [], "aliases": []}'
    )
    llm = SpokenLLM((cut, FinishReason.LENGTH), rest)
    assert names(await read(llm, format="json")) == ["Ann Lee", "Acme"]
    assert all(request.schema for request in llm.requests)
    assert llm.requests[1].messages[-1].text == render_continuation("json")
    assert '"Ann Lee"' in llm.requests[1].messages[2].text


async def test_terms_of_the_glossary_are_told_where_the_text_has_them() -> None:
    glossary = (GlossaryTerm(name="Acme Corporation", aliases=("Acme",)), GlossaryTerm(name="Ming"))
    llm = SpokenLLM(WHOLE)
    outcome = await read(llm, ontology=Ontology(glossary=glossary))
    assert "- Acme Corporation, also Acme\n" in llm.requests[0].messages[1].text
    assert "Ming" not in llm.requests[0].messages[1].text
    assert names(outcome) == ["Ann Lee", "Acme Corporation", "Leeds"]


async def test_requests_do_not_depend_on_anything_but_what_was_said() -> None:
    def speak(request: ChatRequest) -> Said:
        n_said = len(request.messages)
        return (f"{ANN}\n{ACME}\nent", FinishReason.LENGTH) if n_said == 2 else reply(LEEDS)

    first, second = SpokenLLM(speaker=speak), SpokenLLM(speaker=speak)
    await read(first, always_glean=True)
    await read(second, always_glean=True)
    assert [request.hash("m") for request in first.requests] == [request.hash("m") for request in second.requests]


HEALED = [
    FaultName.LENGTH,
    FaultName.EMPTY,
    FaultName.RESET_MIDWAY,
    FaultName.CUT_BODY,
    FaultName.ERROR_MIDWAY,
    FaultName.UNFINISHED,
    FaultName.NO_USAGE,
    FaultName.THINKING,
    FaultName.THINKING_UNOPENED,
    FaultName.THINKING_UNCLOSED,
    FaultName.FENCES,
    FaultName.CHATTER,
    FaultName.LANGUAGE,
    FaultName.DELIMITERS,
    FaultName.MISSING,
    FaultName.JSON,
    FaultName.UNCLOSED,
    FaultName.SWAPPED,
]


@pytest.mark.parametrize("fault", HEALED)
async def test_every_fault_of_a_reply_is_overcome(fault: FaultName) -> None:
    """The first request is struck; what is named at the end is what is named without the fault."""
    chunk = ChunkInput(
        text="Alice Kober was born in New York. She taught at Brooklyn College, where she met Michael Ventris. "
        "The World Health Organization (WHO) invited Michael Ventris to Geneva. Geneva lies on Lake Geneva."
    )
    found = []
    for faults in ((), (Fault(name=fault, calls=(1,)),)):
        made = LlmExtractor(ScriptedLLM(Script(faults=faults)), ByteTokenizer(), concurrency=1)
        (outcome,) = await outcomes(made, [chunk])
        assert outcome.error == ""
        found.append(set(names(outcome)))
    assert found[0] == found[1]
    assert len(found[0]) >= 5


class Remembering(SpokenLLM):
    """Gives the same reply to the same request, as a model does whose replies are kept."""

    def __init__(self, *replies: Said) -> None:
        super().__init__(*replies)
        self.kept: dict[str, Completion] = {}

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        key = request.hash(self.identity)
        if key in self.kept:
            return replace(self.kept[key], is_reused=True)
        self.kept[key] = await super().complete(request, on_text)
        return self.kept[key]


async def test_replies_of_no_use_are_asked_for_anew_once_each_time_the_chunk_is_tried() -> None:
    llm = Remembering("I cannot help with that.", "Sorry.", "No.", "No.", WHOLE)
    for n_asked in (2, 4):
        outcome = await read(llm)
        assert outcome.extraction is None and "named nothing" in outcome.error
        assert len(llm.requests) == n_asked
    assert names(await read(llm)) == ["Ann Lee", "Acme", "Leeds"]
    assert len(llm.requests) == 5
    assert names(await read(llm)) == ["Ann Lee", "Acme", "Leeds"]
    assert len(llm.requests) == 5


class _KeptLLM(SpokenLLM):
    """Gives replies to the first attempt from what was kept before."""

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        completion = await super().complete(request, on_text)
        return replace(completion, is_reused=request.attempt == 0)


async def test_where_kept_replies_lead_nowhere_the_model_is_asked_anew() -> None:
    llm = _KeptLLM(speaker=lambda request: WHOLE if request.attempt else "<|done|>")
    outcome = await read(llm)
    assert names(outcome) == ["Ann Lee", "Acme", "Leeds"]
    assert [request.attempt for request in llm.requests] == [0, 0, 1]


async def test_where_a_new_reply_leads_nowhere_either_the_chunk_has_failed() -> None:
    llm = _KeptLLM("<|done|>")
    outcome = await read(llm)
    assert "named nothing" in outcome.error
    assert [request.attempt for request in llm.requests] == [0, 0, 1, 1]


GENE = TypeRule(name="Gene")


def _types(options: ExtractionOptions) -> list[str]:
    return [rule.name for rule in options.types]


def test_the_default_types_are_those_of_the_graph() -> None:
    assert _types(ExtractionOptions()) == list(ENTITY_TYPES)


def test_other_is_among_the_types_unless_they_are_strict() -> None:
    assert _types(ExtractionOptions(entity_types=("Gene",))) == ["Gene", "Other"]
    assert _types(ExtractionOptions(ontology=Ontology(types=(GENE,)))) == ["Gene", "Other"]
    assert _types(ExtractionOptions(ontology=Ontology(types=(GENE,), is_strict=True))) == ["Gene"]


def test_the_prompt_is_told_what_was_chosen() -> None:
    guidance = ExtractionOptions(language="German", with_claims=True, format="json").guidance
    assert (guidance.language, guidance.with_claims, guidance.format) == ("German", True, "json")


def test_examples_are_told_in_the_format_in_use() -> None:
    example = ExtractionExample(
        text="Ann Lee founded Acme.",
        entities=(ExtractedEntity(name="Ann Lee", type="Person"),),
        relations=(ExtractedRelation(source="Ann Lee", target="Acme", keywords=("founder",), weight=0.9),),
    )
    ontology = Ontology(domain="Letters.", examples=(example,))
    lines, as_json = (ExtractionOptions(ontology=ontology, format=each).guidance for each in ("lines", "json"))
    assert (lines.domain, lines.examples[0].text) == ("Letters.", "Ann Lee founded Acme.")
    assert lines.examples[0].reply == (
        "entity<|>Ann Lee<|>Person<|>\nrelation<|>Ann Lee<|>Acme<|>founder<|><|>9\n<|done|>"
    )
    assert json.loads(as_json.examples[0].reply)["relations"][0]["strength"] == 9


@pytest.mark.parametrize(
    ("size", "tokens"), [(0, 4_096), (1_500, 4_096), (1_501, 8_192), (4_000, 8_192), (4_001, 16_384), (90_000, 16_384)]
)
def test_tokens_of_a_reply_go_by_steps(size: int, tokens: int) -> None:
    assert output_token_limit(size, 32_768) == tokens
    assert output_token_limit(size, 1_000) == 1_000


@pytest.mark.parametrize(("size", "limit"), [(0, 10), (200, 15), (1_200, 40), (4_000, 110)])
def test_entities_are_more_in_a_longer_chunk(size: int, limit: int) -> None:
    assert entity_limit(size) == limit


GROUNDS = GroundingText(ChunkInput(text="The FBI met acme-corp. 郑和来了。", title="Ming"))


def test_terms_are_known_by_name_or_alias_in_any_case_and_in_their_order() -> None:
    terms = (
        GlossaryTerm(name="Ming"),
        GlossaryTerm(name="Federal Bureau", aliases=("FBI",)),
        GlossaryTerm(name="Acme Corp"),
        GlossaryTerm(name="郑和"),
        GlossaryTerm(name="Acme Corporation"),
        GlossaryTerm(name="FB"),
    )
    assert [term.name for term in glossary_terms_in(GROUNDS, terms)] == ["Ming", "Federal Bureau", "Acme Corp", "郑和"]


def test_there_are_never_too_many() -> None:
    assert (
        len(glossary_terms_in(GROUNDS, [GlossaryTerm(name="Ming", definition=str(number)) for number in range(99)]))
        == MAX_TERMS
    )
