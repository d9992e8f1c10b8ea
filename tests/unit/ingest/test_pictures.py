"""Pictures are described by a model over HTTP: once, cached, counted, within the budget, again after a failure."""

from pathlib import Path

import pytest
from PIL import Image

from quipu import sync
from quipu.model.chat import Role
from quipu.model.document import DocumentStatus
from quipu.model.event import Event, Progress
from quipu.model.usage import Price, Stage
from quipu.settings.tables import ModelPrice, RoleSettings
from quipu.sync import BlockingQuipu
from quipu.testing.scripted.script import CannedReply, Fault, FaultName, ReplyRules, RequestKind, Script
from quipu.testing.server import ServerHandle
from tests.unit.parse.images import pdf, png, word_file

YIELDS = "The chart shows that the Nordhaven Works made 1,204 crates of glass in 1947."
ROADS = "The map shows the road from Nordhaven to Kirkvale."
REPORT = word_file(["The annual report.", png(YIELDS), "Roads.", png(ROADS)])


def opened(folder: Path, server: ServerHandle, model: str = "custom/eyes", **settings: object) -> BlockingQuipu:
    role = RoleSettings(role=Role.VISION, llm=model, llm_base_url=server.base_url)
    return sync.open(folder / "kb", role=(role,), **settings)  # type: ignore[arg-type]


def added(folder: Path, kb: BlockingQuipu, content: bytes = REPORT, **options: object) -> list[Event]:
    (folder / "report.docx").write_bytes(content)
    events: list[Event] = []
    kb.add(folder / "report.docx", root=folder, on_event=events.append, **options)  # type: ignore[arg-type]
    return events


def n_calls(server: ServerHandle, kind: RequestKind = RequestKind.PICTURE) -> int:
    return server.settled().total(kind).n_completed


def test_what_a_picture_shows_is_found_cited_and_paid_for_once(tmp_path: Path, server: ServerHandle) -> None:
    with opened(tmp_path, server) as kb:
        events = added(tmp_path, kb)
        answer = kb.query("How many crates of glass did the Nordhaven Works make in 1947?")
        assert "1,204 crates" in answer.text
        assert answer.citations
        assert n_calls(server) == 2
        (row,) = [row for row in kb.usage() if row.stage is Stage.VISION and row.subject]
        assert (row.n_calls, row.subject) == (2, "report.docx")
        assert row.tokens.input > 0
        progress = [event for event in events if isinstance(event, Progress) and event.stage == "pictures"]
        assert [(event.n_done, event.n_total) for event in progress] == [(1, 2), (2, 2)]
        added(tmp_path, kb)
        assert n_calls(server) == 2
        added(tmp_path, kb, word_file(["Another text.", png(YIELDS), "Roads.", png(ROADS)]))
        assert n_calls(server) == 3  # the text beside the other picture is the same
        assert kb.verify() == []


def test_the_same_documents_give_the_same_index(tmp_path: Path, server: ServerHandle) -> None:
    dumps = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name, server) as kb:
            added(tmp_path / name, kb)
            dumps.append(list(kb.dump()))
    assert dumps[0] == dumps[1]


def test_without_a_table_for_the_role_no_picture_is_sent(tmp_path: Path, server: ServerHandle) -> None:
    with sync.open(tmp_path / "kb", llm="custom/test", llm_base_url=server.base_url) as kb:
        added(tmp_path, kb)
        assert n_calls(server) == 0
        assert n_calls(server, RequestKind.EXTRACT) > 0


def test_a_picture_that_fails_leaves_the_document_readable_and_is_asked_about_again(
    tmp_path: Path, server: ServerHandle
) -> None:
    server.configure(
        Script(faults=(Fault(name=FaultName.FILTERED, kinds=(RequestKind.PICTURE,), containing="Kirkvale"),))
    )
    with opened(tmp_path, server) as kb:
        added(tmp_path, kb)
        (document,) = kb.documents()
        assert document.status is DocumentStatus.PARTIAL
        assert "1 of 2 pictures have no complete description" in document.error
        assert "Nordhaven Works" in kb.text("report.docx")
        server.configure(Script())
        server.reset()
        added(tmp_path, kb)
        (document,) = kb.documents()
        assert (document.status, document.error) == (DocumentStatus.READY, "")
        assert "Kirkvale" in kb.text("report.docx")
        assert n_calls(server) == 1


def test_a_spent_budget_keeps_what_was_paid_for(tmp_path: Path, server: ServerHandle) -> None:
    with opened(tmp_path, server, budget="2 calls") as kb:
        added(tmp_path, kb)
        (document,) = kb.documents()
        assert document.status is DocumentStatus.QUEUED
        n_paid = n_calls(server)
    with opened(tmp_path, server) as kb:
        kb.resume()
        assert [document.status for document in kb.documents()] == [DocumentStatus.READY]
        assert n_calls(server) == 2
        assert n_paid == 1  # the first call asked whether the model answers


def test_another_model_reads_pictures_again(tmp_path: Path, server: ServerHandle) -> None:
    with opened(tmp_path, server) as kb:
        added(tmp_path, kb)
    with opened(tmp_path, server, model="custom/other") as kb:
        added(tmp_path, kb)
        assert n_calls(server) == 4


def test_a_scanned_page_is_read_by_the_model(tmp_path: Path, server: ServerHandle) -> None:
    (tmp_path / "scan.pdf").write_bytes(pdf([[(100, Image.new("L", (400, 200), 0))]]))
    with opened(tmp_path, server, vision_pages="all") as kb:
        kb.add(tmp_path / "scan.pdf", root=tmp_path)
        assert "the picture" in kb.text("scan.pdf")
        assert kb.documents()[0].metadata["pages_by_model"] == "1"
        assert n_calls(server, RequestKind.PAGE) == 1


def test_removing_the_document_removes_what_was_said_of_its_pictures(tmp_path: Path, server: ServerHandle) -> None:
    with opened(tmp_path, server) as kb:
        added(tmp_path, kb)
        kb.remove(["report.docx"])
        kb.purge()
    assert b"Kirkvale" not in (tmp_path / "kb" / "index.sqlite").read_bytes()


def test_a_dry_run_counts_the_pictures_that_no_model_has_described(tmp_path: Path, server: ServerHandle) -> None:
    prices = (ModelPrice(model="custom/eyes", price=Price(input=1, output=2)),)
    with opened(tmp_path, server, price=prices) as kb:
        (tmp_path / "report.docx").write_bytes(REPORT)
        new = kb.estimate(tmp_path / "report.docx", root=tmp_path)
        assert (new.n_documents, new.n_pictures, new.picture_model) == (1, 2, "custom/eyes")
        assert new.picture_tokens is not None
        assert new.picture_cost is not None
        assert new.picture_tokens.low < new.picture_tokens.likely < new.picture_tokens.high
        assert new.picture_tokens.likely <= new.picture_cost.likely <= 2 * new.picture_tokens.likely
        assert n_calls(server) == 0
        added(tmp_path, kb)
        (row,) = [row for row in kb.usage() if row.stage is Stage.VISION and row.subject]
        assert row.tokens.input + row.tokens.output < new.picture_tokens.high
        assert kb.estimate(tmp_path / "report.docx", root=tmp_path).n_pictures == 0
        (tmp_path / "report.docx").write_bytes(word_file(["Another text.", png(YIELDS), "Roads.", png(ROADS)]))
        changed = kb.estimate(tmp_path / "report.docx", root=tmp_path)
        assert changed.n_pictures == 1
        assert n_calls(server) == 2


def test_files_that_are_pictures_are_documents_where_a_model_reads_them(tmp_path: Path, server: ServerHandle) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    (folder / "yields.jpg").write_bytes(png(YIELDS))  # with the suffix of another kind
    (folder / "icon.png").write_bytes(png("An icon.", size=(20, 20)))
    (folder / "notes.md").write_text("The works are at Nordhaven.")
    with sync.open(tmp_path / "without") as kb:
        kb.add(folder, root=folder)
        assert [document.id for document in kb.documents()] == ["notes.md"]
        (failure,) = kb.add(folder / "yields.jpg").failed
        assert "llm in [role.vision]" in failure.error
    with opened(tmp_path, server) as kb:
        kb.add(folder, root=folder)
        by_id = {document.id: document for document in kb.documents()}
        assert YIELDS in kb.text("yields.jpg")
        assert "50 pixels" in by_id["icon.png"].error
        assert "1,204 crates" in kb.query("How many crates of glass did the Nordhaven Works make in 1947?").text
        assert n_calls(server, RequestKind.PAGE) == 1


def test_a_file_that_a_model_could_not_read_names_why_and_is_asked_about_again(
    tmp_path: Path, server: ServerHandle
) -> None:
    server.configure(Script(faults=(Fault(name=FaultName.FILTERED, kinds=(RequestKind.PAGE,)),)))
    (tmp_path / "map.png").write_bytes(png(ROADS))
    with opened(tmp_path, server) as kb:
        kb.add(tmp_path / "map.png", root=tmp_path)
        (document,) = kb.documents()
        assert document.status is DocumentStatus.FAILED
        assert "1 of 1 pictures have no complete description" in document.error
        server.configure(Script())
        kb.add(tmp_path / "map.png", root=tmp_path)
        assert ROADS in kb.text("map.png")


@pytest.mark.parametrize(
    ("reply", "error"),
    [("", "The reply was empty."), ("<think>What is it?</think>", "The reply was empty."), ("NONE", "")],
)
def test_a_reply_that_says_nothing_is_an_error_but_for_decoration(
    tmp_path: Path, server: ServerHandle, reply: str, error: str
) -> None:
    canned = CannedReply(text=reply, kinds=(RequestKind.PICTURE,))
    server.configure(Script(answering=ReplyRules(replies=(canned,))))
    with opened(tmp_path, server) as kb:
        added(tmp_path, kb)
        (document,) = kb.documents()
        assert error in document.error if error else document.error == ""
        assert document.status is (DocumentStatus.PARTIAL if error else DocumentStatus.READY)


def test_a_page_that_was_cut_off_keeps_its_text_and_says_so(tmp_path: Path, server: ServerHandle) -> None:
    server.configure(Script(faults=(Fault(name=FaultName.LENGTH, kinds=(RequestKind.PAGE,)),)))
    (tmp_path / "map.png").write_bytes(png(ROADS))
    with opened(tmp_path, server) as kb:
        kb.add(tmp_path / "map.png", root=tmp_path)
        (document,) = kb.documents()
        assert document.status is DocumentStatus.PARTIAL
        assert "longer than 6,000 tokens" in document.error
        assert kb.text("map.png") == ROADS[: len(ROADS) // 2].strip()
