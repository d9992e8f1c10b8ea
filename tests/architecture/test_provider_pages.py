"""The pages of docs/providers do what they say: the lines a user copies are run against a scripted server."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from quipu.errors import Unavailable
from quipu.providers.openai.catalog import LITELLM, PROVIDERS, parse_model_name
from quipu.settings import Settings
from quipu.testing.scripted.script import RequestKind, Script, Service
from quipu.testing.server import serving
from quipu.testing.server.process import ServerHandle
from quipu.wiring import open_engine, services
from quipu.wiring.services import REPLAY, chat_models
from tests.architecture.source import PROJECT

FOLDER = PROJECT / "docs" / "providers"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "README")
KEY = "sesame-of-the-page"
DIMENSION = 1_536  # of the model the page on embeddings names
TEXT = "Alice Kober taught classics at Brooklyn College. Alice Kober studied Linear B."


@dataclass(frozen=True)
class Page:
    """What a page tells a user to write: settings, all of them in order, and variables that hold a key."""

    name: str
    settings: tuple[str, ...]
    keys: tuple[str, ...]


def _page(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL)
    settings = tuple(body for language, body in blocks if language == "toml")
    keys = tuple(name for _, body in blocks for name in re.findall(r"^export (\w+)=", body, re.MULTILINE))
    return Page(name=path.stem, settings=settings, keys=keys)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[bool, ServerHandle]]:
    """Run a server that wants a key, and one that wants none."""
    locked, opened = (Script(service=Service(api_key=key, dimension=DIMENSION)) for key in (KEY, ""))
    with serving(locked) as with_key, serving(opened) as without:
        yield {True: with_key, False: without}


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, without a key in the environment."""
    monkeypatch.chdir(tmp_path)
    for provider in PROVIDERS.values():
        monkeypatch.delenv(provider.key_variable or "QUIPU_LLM_KEY", raising=False)


@pytest.mark.parametrize("path", [page for page in PAGES if page.stem != LITELLM], ids=lambda path: path.stem)
async def test_the_lines_of_a_page_are_all_it_takes(
    path: Path, servers: dict[bool, ServerHandle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = _page(path)
    server = servers[bool(page.keys)]
    server.reset()
    (tmp_path / "quipu.toml").write_text(page.settings[0])
    for name in page.keys:
        monkeypatch.setenv(name, KEY)
    address = server.address if page.name == "azure" else server.base_url
    at_home = {name: replace(each, base_url=address, domains=()) for name, each in PROVIDERS.items()}
    monkeypatch.setattr(services, "PROVIDERS", at_home)  # as their keys are sent to no other address
    for setting in ("LLM", "EMBEDDER", "RERANKER"):
        monkeypatch.setenv(f"QUIPU_{setting}_BASE_URL", address)
    async with await open_engine(Settings()) as kb:
        await kb.add_text(TEXT, id="kober")
        answer = await kb.query("Where did Alice Kober teach?", strategy="mix")  # which asks for keywords
    assert answer.context
    asked = {kind for kind, each in server.stats().by_kind.items() if each.n_completed}
    expected = {"embeddings": {RequestKind.EMBED}, "rerankers": {RequestKind.RERANK}}
    assert asked >= expected.get(page.name, {RequestKind.EXTRACT, RequestKind.KEYWORDS, RequestKind.ANSWER})


@pytest.mark.parametrize("path", [*PAGES, FOLDER / "README.md"], ids=lambda path: path.stem)
def test_every_block_of_settings_is_understood(path: Path, tmp_path: Path) -> None:
    for number, body in zip(count(), _page(path).settings, strict=False):
        file = tmp_path / f"{number}.toml"
        file.write_text(body)
        settings = Settings(config=file)
        if not (settings.llm or "").startswith(LITELLM):
            chat_models(settings)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_models_of_its_tables_are_written_as_they_must_be(path: Path) -> None:
    rows = re.findall(r"^\| `([^`]+/[^`]+)` \| .* \| (.*) \|$", path.read_text(encoding="utf-8"), re.MULTILINE)
    for name, told in rows:
        key = PROVIDERS[parse_model_name(name)[0]].key_variable
        assert told == (f"`{key}`" if key else "none")


def test_the_list_has_every_provider_with_its_key() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \| .*? \| (.*?) \|", text, re.MULTILINE)
    keys_by_name = {name: keys for names, keys in rows for name in re.findall(r"`([^`]+)`", names)}
    assert set(keys_by_name) == {*PROVIDERS, LITELLM, REPLAY.rstrip("/")}
    for name, provider in PROVIDERS.items():
        assert (f"`{provider.key_variable}`" if provider.key_variable else "none") in keys_by_name[name]


def test_the_page_of_litellm_names_the_extra(tmp_path: Path) -> None:
    page = _page(FOLDER / f"{LITELLM}.md")
    (tmp_path / "quipu.toml").write_text(page.settings[0])
    assert "pip install 'quipu-rag[litellm]'" in (FOLDER / f"{LITELLM}.md").read_text(encoding="utf-8")
    try:
        models = chat_models(Settings())
    except Unavailable as error:
        assert "quipu-rag[litellm]" in error.remedy
    else:
        assert models
