"""The user's own instructions: every request of every method carries them, and nothing is paid for twice."""

import json
from pathlib import Path

from quipu.model.chat import Role
from quipu.model.document import SourceDocument
from quipu.model.query import Query, Turn
from quipu.parse import FILE_TYPES
from quipu.prompts.catalog import PROMPTS
from quipu.retrieve import STRATEGIES
from quipu.settings import Settings
from quipu.settings.tables import RoleSettings
from quipu.testing.server.process import ServerHandle
from tests.acceptance.test_model_calls import ASKED, TOWNS, letter
from tests.laws.derived_world import keep_all
from tests.laws.model_world import model_engine, model_settings, script
from tests.unit.parse.images import pdf, png, word_file

PICTURES = {
    "map.docx": word_file(["The map.", png("A road.")]),
    "page.pdf": pdf([[(700, "The road to Acre is long.")]]),
}
HISTORY = (Turn(role="user", text="Tell me of Marco Polo."), Turn(role="assistant", text="He was a merchant."))


def own_words(name: str) -> str:
    """Return a sentence that only the user's text of a prompt contains."""
    return f"Own words for {name}."


def settings_with_own_prompts(folder: Path, server: ServerHandle) -> Settings:
    """Return settings in which every prompt has a text of its own; all requests are recorded."""
    texts = {name: f"{instructions.text}\n{own_words(name)}" for name, instructions in PROMPTS.items()}
    config = folder / "own.toml"
    config.write_text("[prompts]\n" + "".join(f"{name} = {json.dumps(text)}\n" for name, text in texts.items()))
    vision = RoleSettings(role=Role.VISION, llm="custom/eyes", llm_base_url=server.base_url)
    return model_settings(
        folder / "kb",
        server.base_url,
        config=config,
        record=folder / "requests",
        role=(vision,),
        vision_pages="all",
    )


def requests_in(folder: Path) -> list[list[str]]:
    """Return the texts of every recorded request, without those that only check the model."""
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    requests = [[text for _, text in json.loads(line)["messages"]] for line in lines]
    return [texts for texts in requests if len(texts) > 1]


async def use_everything(settings: Settings) -> None:
    """Add documents and pictures, make every derivation, ask by every strategy, and tune."""
    async with model_engine(settings) as kb:
        await kb.add(*map(letter, TOWNS))
        await keep_all(kb)
        for name in STRATEGIES:
            await kb.query(Query(text=ASKED.format(name), strategy=name, min_similarity=-1.0, history=HISTORY))
        question = ASKED.format("the reports")
        await kb.query(question, strategy="community_global", dynamic_selection=True, community_level=0)
        await kb.tune(*map(letter, TOWNS))
        for name, content in PICTURES.items():
            await kb.add(SourceDocument(id=name, content=content, media_type=FILE_TYPES.by_suffix[Path(name).suffix]))


async def test_every_request_carries_the_users_own_instructions(tmp_path: Path, server: ServerHandle) -> None:
    server.configure(script())
    await use_everything(settings_with_own_prompts(tmp_path, server))
    requests = requests_in(tmp_path / "requests")
    assert [texts[0] for texts in requests if "Own words for" not in texts[0]] == []
    every_text = "\n".join(text for texts in requests for text in texts)
    unused = [name for name in PROMPTS if own_words(name) not in every_text]
    assert unused == ["aggregate_relation"]  # needs many relations: tests/unit/derive/test_aggregate_writer.py


async def test_a_changed_text_is_paid_for_once_and_so_is_the_former(tmp_path: Path, server: ServerHandle) -> None:
    server.configure(script())
    own = settings_with_own_prompts(tmp_path, server)
    default = model_settings(tmp_path / "kb", server.base_url, record=tmp_path / "requests")
    n_requests = []
    for settings in (default, own, default, own):
        async with model_engine(settings) as kb:
            await kb.add(letter("Acre"), reread=True)
        n_requests.append(len(requests_in(tmp_path / "requests")))
    assert n_requests[0] < n_requests[1] == n_requests[2] == n_requests[3]
