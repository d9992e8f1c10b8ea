"""Recording: what models are asked and reply is written down where that is set, and asked again of the folder."""

from pathlib import Path

import pytest

from quipu.errors import InvalidInput, NotFound
from quipu.settings import Settings
from quipu.testing.scripted.script import Script
from quipu.testing.server import serving
from quipu.wiring import open_engine
from quipu.wiring.inventory import probe_models, take_inventory
from quipu.wiring.models import check_settings

KEY = "sk-SENTINEL-0123456789"
TEXT = "Alice Kober taught classics at Brooklyn College and studied Linear B."
QUESTION = "Where did Alice Kober teach?"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder without settings, with a key that must not be written down."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUIPU_LLM_KEY", KEY)


async def _read_and_asked(settings: Settings) -> tuple[str, list[str], int]:
    """Return the answer to a question about a text, its entities, and how many calls were counted."""
    async with await open_engine(settings) as kb:
        await kb.add_text(TEXT, id="kober")
        answer = await kb.query(QUESTION)
        (chunk,) = (await kb.document("kober")).chunks
        names = sorted(each.key for each in (await kb.chunk(chunk.id)).entities)
        return answer.text, names, sum(row.n_calls for row in await kb.usage())


def _live(index: Path, base_url: str) -> Settings:
    return Settings(index=index, llm="custom/m", llm_base_url=base_url, record=Path("tape"))


def _written() -> list[str]:
    return [line for file in sorted(Path("tape").iterdir()) for line in file.read_text().splitlines()]


async def test_what_was_recorded_is_replayed_without_the_server_and_holds_no_key(tmp_path: Path) -> None:
    with serving(Script()) as server:
        live = await _read_and_asked(_live(tmp_path / "live", server.base_url))
        n_asked = server.stats().total().n_completed
    written = _written()
    assert len(written) == n_asked > 2
    assert not [line for line in written if KEY in line or server.base_url in line]
    assert await _read_and_asked(Settings(index=tmp_path / "again", llm="replay/tape", budget="0.01")) == live
    both = Settings(index=tmp_path / "both", llm="replay/tape", record=Path("tape"))
    assert await _read_and_asked(both) == live
    assert _written() == written


async def test_a_replay_that_is_asked_for_something_else_fails_saying_where_it_differs(tmp_path: Path) -> None:
    with serving(Script()) as server:
        await _read_and_asked(_live(tmp_path / "live", server.base_url))
    async with await open_engine(Settings(index=tmp_path / "again", llm="replay/tape")) as kb:
        with pytest.raises(NotFound, match="most similar recorded request at character"):
            await kb.add_text(TEXT.replace("Alice", "Agnes"), id="kober")


def test_a_folder_without_a_recording_is_refused_when_it_is_named() -> None:
    with pytest.raises(NotFound, match="There is no recording in"):
        check_settings(Settings(llm="replay/nothing"))


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_asked() -> None:
    Path("file").touch()
    with pytest.raises(InvalidInput, match=r"record = .*file.*cannot be created"):
        check_settings(Settings(llm="ollama/m", record=Path("file")))


async def test_a_recording_is_shown_as_what_it_is_and_is_asked_nothing(tmp_path: Path) -> None:
    with serving(Script()) as server:
        await _read_and_asked(_live(tmp_path / "live", server.base_url))
    settings = Settings(llm="replay/tape")
    (named,) = take_inventory(settings).models()
    assert (named.name, named.host, named.key, named.needs_key) == ("replay/tape", "recording", "", False)
    ((_, finding),) = await probe_models(settings)
    assert (finding.problem, finding.took_s) == ("", None)
