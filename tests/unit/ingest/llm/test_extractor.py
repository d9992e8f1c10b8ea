"""The extractor: many chunks, few calls at a time, every fault of one chunk kept to it."""

import asyncio
import gc
from contextlib import aclosing
from dataclasses import replace

import pytest

from quipu.errors import Busy, OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.ingest.extraction import extraction_from_json, extraction_to_json
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.model.chat import ChatRequest, Completion, FinishReason, PromptText, ReplyLifetime, Role, TokenCount
from quipu.model.extraction import ChunkInput, ExtractedEntity, ExtractionExample, Ontology, TypeRule
from quipu.ports.ingest import Extractor
from quipu.ports.providers import TextSink, ignore_text
from quipu.providers.local import ByteTokenizer
from tests.unit.ingest.llm.fakes import ACME, ANN, CHUNK, FOUNDED, SpokenLLM, outcomes, reply

WHOLE = reply(ANN, ACME, FOUNDED)


def extractor(llm: SpokenLLM, options: ExtractionOptions | None = None, *, concurrency: int = 2) -> LlmExtractor:
    return LlmExtractor(llm, ByteTokenizer(), options, concurrency=concurrency)


def numbered(n: int) -> list[ChunkInput]:
    return [replace(CHUNK, text=f"{CHUNK.text} That was document {number}.") for number in range(n)]


async def test_it_is_an_extractor_that_says_what_it_is() -> None:
    made: Extractor = extractor(SpokenLLM(WHOLE))
    assert made.identity.startswith("llm/fake/model/")
    assert made.description == "language model fake/model"
    assert made.n_ahead == 4


async def test_a_chunk_is_asked_about_in_the_name_of_its_documents() -> None:
    llm = SpokenLLM(WHOLE)
    (outcome,) = await outcomes(extractor(llm), [CHUNK])
    assert outcome.error == ""
    assert outcome.extraction is not None
    assert [entity.name for entity in outcome.extraction.entities] == ["Ann Lee", "Acme"]
    (request,) = llm.requests
    assert (request.role, request.lifetime, request.documents) == (Role.EXTRACT, ReplyLifetime.DOCUMENTS, ("d1",))
    assert request.temperature == 0
    assert [message.role for message in request.messages] == ["system", "user"]


async def test_an_extraction_can_be_kept() -> None:
    (outcome,) = await outcomes(extractor(SpokenLLM(WHOLE)), [CHUNK])
    assert outcome.extraction is not None
    assert extraction_from_json(extraction_to_json(outcome.extraction)) == outcome.extraction


@pytest.mark.parametrize(
    "options",
    [
        ExtractionOptions(format="json"),
        ExtractionOptions(ontology=Ontology(domain="Letters.")),
        ExtractionOptions(
            ontology=Ontology(
                examples=(ExtractionExample(text="Ann.", entities=(ExtractedEntity(name="Ann", type="Person"),)),)
            )
        ),
        ExtractionOptions(language="German"),
        ExtractionOptions(max_gleaning=2),
        ExtractionOptions(always_glean=True),
        ExtractionOptions(with_claims=True),
        ExtractionOptions(entity_types=("Gene",)),
        ExtractionOptions(max_output_tokens=16_384),
        ExtractionOptions(ontology=Ontology(is_strict=True)),
        ExtractionOptions(ontology=Ontology(types=(TypeRule(name="Gene"),))),
        ExtractionOptions(prompts=(PromptText(prompt="extraction", text="{format}"),)),
        ExtractionOptions(prompts=(PromptText(prompt="gleaning", text="{end} {nothing}"),)),
    ],
)
def test_every_option_is_part_of_the_identity(options: ExtractionOptions) -> None:
    default = extractor(SpokenLLM(WHOLE))
    assert extractor(SpokenLLM(WHOLE), options).identity != default.identity
    assert extractor(SpokenLLM(WHOLE), concurrency=9).identity == default.identity


def test_the_text_of_another_prompt_is_no_part_of_the_identity() -> None:
    options = ExtractionOptions(prompts=(PromptText(prompt="answer", text="Be brief."),))
    assert extractor(SpokenLLM(WHOLE), options).identity == extractor(SpokenLLM(WHOLE)).identity


def test_the_tokens_of_a_prompt_are_known_before_it_is_sent() -> None:
    made = extractor(SpokenLLM(WHOLE))
    short, long = made.n_tokens_sent(CHUNK), made.n_tokens_sent(replace(CHUNK, text=CHUNK.text * 100))
    assert 500 < short < 700
    assert long - short == pytest.approx(99 * len(CHUNK.text) / 4, rel=0.01)


async def test_no_more_inputs_are_begun_than_said() -> None:
    llm = SpokenLLM(WHOLE)
    found = await outcomes(extractor(llm, concurrency=3), numbered(50))
    assert [outcome.index for outcome in found] == list(range(50))
    assert llm.peak == 6


@pytest.mark.parametrize(
    "fault", [Refused("It is filtered."), TooLong("It is too long."), Overloaded("It is too busy.", remedy="Wait.")]
)
async def test_a_fault_of_one_chunk_leaves_the_others_alone(fault: QuipuError) -> None:
    llm = SpokenLLM(speaker=lambda request: fault if "document 3." in request.messages[1].text else WHOLE)
    found = await outcomes(extractor(llm), numbered(8))
    assert [outcome.index for outcome in found if outcome.error] == [3]
    assert found[3].error == str(fault)
    assert found[3].extraction is None


@pytest.mark.parametrize("stop", [Unavailable("Gone.", remedy="Start it."), OverBudget("Spent.", remedy="Raise it.")])
async def test_what_is_under_way_is_ended_before_a_stop_is_raised(stop: QuipuError) -> None:
    llm = SpokenLLM(speaker=lambda request: stop if "document 3." in request.messages[1].text else WHOLE)
    found = []
    with pytest.raises(type(stop), match=stop.message):
        async for outcome in extractor(llm).extract(numbered(20)):
            found.append(outcome.index)
    begun = {next(n for n in range(20) if f"document {n}." in request.messages[1].text) for request in llm.requests}
    assert sorted(found) == sorted(begun - {3})
    assert len(begun) < 10


async def test_a_stop_in_the_middle_of_a_chunk_gives_it_no_outcome() -> None:
    llm = SpokenLLM((reply(ANN), FinishReason.LENGTH), OverBudget("Spent."))
    with pytest.raises(OverBudget):
        await outcomes(extractor(llm), [CHUNK])


async def test_calls_that_fail_together_leave_no_failure_that_nobody_heard_of() -> None:
    unheard: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(str(context["message"])))
    with pytest.raises(Busy, match="Locked"):
        await outcomes(extractor(SpokenLLM(Busy("Locked."))), numbered(4))
    gc.collect()
    assert unheard == []


class _WaitingLLM(SpokenLLM):
    """Never answers, and counts who was told to stop waiting."""

    def __init__(self) -> None:
        super().__init__("")
        self.n_cancelled = 0

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        self.requests.append(request)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        return Completion(text="", finish=FinishReason.STOP, tokens=TokenCount())


async def test_a_cancelled_run_leaves_nothing_running() -> None:
    llm = _WaitingLLM()
    task = asyncio.create_task(outcomes(extractor(llm), numbered(9)))
    for _ in range(9):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert llm.n_cancelled == len(llm.requests) == 4


async def test_a_run_left_early_leaves_nothing_running() -> None:
    llm = SpokenLLM(WHOLE)
    async with aclosing(extractor(llm).extract(numbered(20))) as found:
        assert (await anext(found)).extraction is not None
    n_asked = len(llm.requests)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(llm.requests) == n_asked
    assert llm.n_under_way == 0


async def test_the_check_asks_once_for_something_small() -> None:
    llm = SpokenLLM(reply("entity<|>Ada Lovelace<|>Person<|>She wrote the notes."))
    await extractor(llm).check()
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Unavailable("There is no such model.", remedy="Name another."), "no such model. Name another."),
        (TooLong("4,096 tokens asked for, 2,048 are allowed."), "context window of fake/model is too small"),
        (Overloaded("No answer."), "fake/model does not answer: No answer. Try again later."),
        (Refused("Unknown parameter.", remedy="Leave it out."), "no usable reply: Unknown parameter. Leave it out."),
    ],
)
async def test_the_check_tells_what_stands_in_the_way_and_what_to_do(fault: QuipuError, says: str) -> None:
    with pytest.raises(Unavailable, match=says):
        await extractor(SpokenLLM(fault)).check()


async def test_a_model_that_talks_instead_of_extracting_fails_the_check() -> None:
    with pytest.raises(Unavailable, match="named nothing"):
        await extractor(SpokenLLM("I would be glad to help!")).check()


async def test_invented_names_are_counted() -> None:
    made = extractor(SpokenLLM(reply(ANN, "entity<|>Zorro<|>Person<|>Zorro is not in the text.")))
    (outcome,) = await outcomes(made, [CHUNK])
    assert outcome.n_dropped == 1


async def test_it_can_be_guided_otherwise_and_ask_the_same_model() -> None:
    llm = SpokenLLM(WHOLE)
    made = extractor(llm, ExtractionOptions(language="German"), concurrency=3)
    guided = made.with_ontology(Ontology(domain="Letters of a founder."))
    await outcomes(guided, [CHUNK])
    assert "Letters of a founder." in llm.requests[0].messages[0].text
    assert "are in German" in llm.requests[0].messages[0].text
    assert guided.identity != made.identity
    assert guided.n_ahead == made.n_ahead == 6
