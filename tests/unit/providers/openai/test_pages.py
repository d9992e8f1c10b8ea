"""The pages on providers: what they tell users to write works against a server."""

import re
import tomllib
from pathlib import Path

import pytest

from quipu.model.secret import Secret
from quipu.providers.openai.catalog import LITELLM, PROVIDERS, parse_model_name
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import EmbeddingParameters, open_embedder
from quipu.providers.openai.endpoint import ANY_KEY_VARIABLE, Endpoint
from quipu.providers.openai.rerank import HttpReranker
from quipu.settings import Settings
from quipu.testing.server import ServerHandle
from tests.unit.providers.openai.raw import HELLO, count

FOLDER = Path(__file__).parents[4] / "docs" / "providers"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+/[^`]+)` \|", re.MULTILINE)


def _blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def _models(setting: str) -> list[str]:
    """Return the models the pages name for a setting, in their blocks and the first columns of their tables."""
    found = set()
    for page in PAGES:
        for block in _blocks(page):
            parsed = tomllib.loads(block)
            tables = [parsed, *parsed.get("role", {}).values()]
            found |= {str(table[setting]) for table in tables if setting in table}
        text = page.read_text(encoding="utf-8")
        if f"| `{setting}` |" in text:
            found |= set(ROW.findall(text))
    return sorted(found)


def _endpoint(server: ServerHandle, name: str) -> tuple[Endpoint, str]:
    provider, model = parse_model_name(name)
    url = server.address if provider == "azure" else server.base_url
    return Endpoint(provider=PROVIDERS[provider], base_url=url, key=Secret("sk-any-key-will-do")), model


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_tells_to_write_is_taken_by_the_settings(page: Path, tmp_path: Path) -> None:
    blocks = _blocks(page)
    assert blocks
    for block in blocks:
        file = tmp_path / "quipu.toml"
        file.write_text(block, encoding="utf-8")
        Settings(config=file)


@pytest.mark.parametrize("name", [each for each in _models("llm") if not each.startswith(LITELLM)])
async def test_the_model_of_a_page_replies(server: ServerHandle, name: str) -> None:
    endpoint, model = _endpoint(server, name)
    chat = OpenAIChat(endpoint, model, count_tokens=count)
    assert (await chat.complete(HELLO)).text
    await chat.aclose()


@pytest.mark.parametrize("name", _models("embedder_model"))
async def test_the_embedder_of_a_page_gives_vectors(server: ServerHandle, name: str) -> None:
    endpoint, model = _endpoint(server, name)
    embedder = await open_embedder(endpoint, model, count_tokens=count, parameters=EmbeddingParameters(dimension=64))
    assert (await embedder.embed(["knots"])).shape == (1, 64)
    await embedder.aclose()


@pytest.mark.parametrize("name", _models("reranker"))
async def test_the_reranker_of_a_page_gives_scores(server: ServerHandle, name: str) -> None:
    endpoint, model = _endpoint(server, name)
    reranker = HttpReranker(endpoint, model, count_tokens=count)
    assert len(await reranker.score("What are knots?", ["Knots are records.", "Rain."])) == 2
    await reranker.aclose()


def test_every_provider_and_its_key_are_in_the_list() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    wanted = [each for known in PROVIDERS.values() for each in (known.name, known.key_variable) if each]
    assert [each for each in (*wanted, ANY_KEY_VARIABLE, LITELLM) if f"`{each}`" not in listed] == []


def test_every_variable_a_page_sets_is_the_one_of_its_model() -> None:
    for page in PAGES:
        exported = set(re.findall(r"^export (\w+)=", page.read_text(encoding="utf-8"), re.MULTILINE))
        named = [
            str(tomllib.loads(block).get(each, ""))
            for block in _blocks(page)
            for each in ("llm", "embedder_model", "reranker")
        ]
        providers = {name.partition("/")[0] for name in named if name} & set(PROVIDERS)
        assert exported <= {PROVIDERS[each].key_variable for each in providers}
