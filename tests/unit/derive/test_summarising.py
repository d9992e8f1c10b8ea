"""Tests of one summary: what is asked, in which batches, and what is made of the replies."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from quipu.derive.summarising import MAX_CHARS, SummaryOptions, write_summary
from quipu.errors import Overloaded, QuipuError, Refused
from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, Role
from quipu.model.fold import descriptions_hash
from quipu.model.ids import digest
from quipu.model.summary import Description, Summary, SummaryTarget, SummaryTargetKind, SummaryTask
from quipu.prompts.summary import TITLE, VERSION
from quipu.providers.local import ByteTokenizer
from tests.unit.derive.writer import Writer, completion, notes_of, subjects_of

OPTIONS = SummaryOptions(batch_tokens=200, max_words=20, max_output_tokens=100)


def _task(texts: Sequence[str]) -> SummaryTask:
    said = tuple(Description(text=text, document=f"d{digest(text)[:1]}") for text in texts)
    owner = SummaryTarget(SummaryTargetKind.RELATION, "polo -- venice")
    return SummaryTask(
        target=owner, names=("polo", "venice"), descriptions=said, inputs_hash=descriptions_hash(t for t in texts)
    )


def _notes(n: int) -> list[str]:
    return sorted((f"Note {i} says {digest(str(i))}." for i in range(n)), key=digest)


async def _write(task: SummaryTask, writer: Writer, options: SummaryOptions = OPTIONS) -> Summary:
    async def ask(request: ChatRequest) -> Completion:
        return replace(await writer.complete(request), model=writer.identity)

    return await write_summary(task, ask, ByteTokenizer(), options)


async def test_a_few_descriptions_are_summed_up_in_one_call() -> None:
    writer, task = Writer(), _task(["He left.", "He returned.", "He left.", "He\nwrote."])
    summary = await _write(task, writer)
    (request,) = writer.asked
    assert (subjects_of(request), notes_of(request)) == ("polo | venice", ["He left.", "He returned.", "He wrote."])
    assert (request.role, request.lifetime, request.max_output_tokens) == (
        Role.SUMMARISE,
        ReplyLifetime.ALL_DOCUMENTS,
        100,
    )
    assert request.messages[0].text.startswith(TITLE)
    assert request.documents == tuple(sorted({each.document for each in task.descriptions}))
    assert (summary.target, summary.inputs_hash) == (task.target, task.inputs_hash)
    assert summary.text.startswith("3 notes")
    assert summary.model == f"tests/writer summary/{VERSION}"


async def test_many_are_summed_up_in_batches_and_these_in_turn() -> None:
    writer, notes = Writer(), _notes(200)
    summary = await _write(_task(notes), writer)
    leaves = [request for request in writer.asked if notes_of(request)[0] in notes]
    above = [request for request in writer.asked if request not in leaves]
    leaves.sort(key=lambda request: notes.index(notes_of(request)[0]))
    assert [note for request in leaves for note in notes_of(request)] == notes
    assert len(leaves) > 15
    assert len(above) > len(leaves) / 5
    assert all(len(notes_of(request)) <= 200 // 40 for request in above)
    known = {request.hash(writer.identity) for request in writer.asked}
    assert all(request.documents and not request.source_replies for request in leaves)
    assert all(
        request.source_replies and not request.documents and known.issuperset(request.source_replies)
        for request in above
    )
    root = writer.asked[-1]
    assert summary.text.startswith(f"{len(notes_of(root))} notes")


async def test_the_requests_depend_on_the_descriptions_alone_and_one_more_changes_few() -> None:
    first, again, other = Writer(), Writer(), Writer()
    notes = _notes(200)
    await _write(_task(notes), first)
    await _write(_task(notes), again)
    assert {r.hash("m") for r in first.asked} == {r.hash("m") for r in again.asked}
    await _write(_task(sorted([*notes, "One more."], key=digest)), other)
    new = {r.hash("m") for r in other.asked} - {r.hash("m") for r in first.asked}
    assert 2 <= len(new) <= 8


async def test_thoughts_and_space_around_a_summary_are_left_out() -> None:
    writer = Writer(reply=lambda _: completion("<think>He may\nhave left.</think>\n\n Polo left.\n"))
    assert (await _write(_task(["x"]), writer)).text == "Polo left."


async def test_a_reply_cut_short_is_asked_for_once_more_with_more_room() -> None:
    def reply(request: ChatRequest) -> Completion:
        is_short = request.max_output_tokens == 100
        return completion("Polo le", FinishReason.LENGTH) if is_short else completion("Polo left.")

    writer = Writer(reply=reply)
    assert (await _write(_task(["x"]), writer)).text == "Polo left."
    assert [request.max_output_tokens for request in writer.asked] == [100, 400]


async def test_a_reply_cut_short_twice_keeps_its_whole_sentences() -> None:
    writer = Writer(reply=lambda _: completion("Polo left Venice. He came to Dadu. There he", FinishReason.LENGTH))
    assert (await _write(_task(["x"]), writer)).text == "Polo left Venice. He came to Dadu."
    assert len(writer.asked) == 2


async def test_a_model_that_goes_on_and_on_is_cut_at_a_sentence() -> None:
    writer = Writer(reply=lambda _: completion("Polo left Venice again. " * 500))
    text = (await _write(_task(["x"]), writer)).text
    assert MAX_CHARS - 30 < len(text) <= MAX_CHARS
    assert text.endswith("again.")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (completion(" \n"), Refused),
        (completion("<think>Hm.</think>"), Refused),
        (completion("Polo was", FinishReason.FILTERED), Refused),
        (completion("Polo le", FinishReason.INTERRUPTED), Overloaded),
    ],
)
async def test_a_reply_that_is_no_summary_is_an_error(reply: Completion, error: type[QuipuError]) -> None:
    with pytest.raises(error):
        await _write(_task(["x"]), Writer(reply=lambda _: reply))


async def test_where_one_batch_fails_the_others_are_still_asked() -> None:
    notes = _notes(200)
    writer = Writer(reply=lambda r: Refused("No.") if notes[0] in notes_of(r) else None)
    with pytest.raises(Refused):
        await _write(_task(notes), writer)
    asked = [note for request in writer.asked for note in notes_of(request) if note in notes]
    assert sorted(asked) == sorted(notes)


async def test_a_kept_reply_without_words_is_asked_for_anew() -> None:
    kept = replace(completion("<think>All of it a thought."), is_reused=True)
    writer = Writer(reply=lambda request: kept if request.attempt < 2 else None)
    assert (await _write(_task(["He left.", "He stayed."]), writer)).text.startswith("2 notes")
    assert [request.attempt for request in writer.asked] == [0, 1, 2]
