"""The real clients of OpenAI and Ollama against a live port."""

import base64
import struct
from collections.abc import Iterator
from pathlib import Path

import httpx
import ollama
import openai
import pytest

from quipu import sync
from quipu.server.access import KEYS_FILE, KeyFile, Permission
from quipu.testing.scripted.script import CannedReply, Latency, ReplyRules, RequestKind, Script
from quipu.testing.server import serving
from tests.unit.server.conftest import LETTER
from tests.unit.server.test_serving import running

QUESTION = "Whom did Ada Lovelace write to?"
ASKED: list[dict[str, str]] = [{"role": "user", "content": QUESTION}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an index with one document."""
    folder = tmp_path_factory.mktemp("kb")
    with sync.open(folder) as kb:
        kb.add_text(LETTER, id="letters/1.md")
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Return the address of a server of that index, without a language model."""
    with running(folder) as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[openai.OpenAI]:
    """Return OpenAI's client of that server."""
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def ollama_client(address: str) -> Iterator[ollama.Client]:
    """Return Ollama's client of that server."""
    with ollama.Client(address) as client:
        yield client


def link(address: str) -> str:
    """Return the beginning of the address that opens the document."""
    return f"{address}/#/workspaces/default/documents/letters%2F1.md?start="


def test_openai_lists_models_and_returns_one(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "quipu"
    assert "quipu-mix" in names
    assert client.models.retrieve("quipu-mix").id == "quipu-mix"


def test_openai_answers_with_citations_that_stand_in_the_answer(client: openai.OpenAI, address: str) -> None:
    completion = client.chat.completions.create(
        model="quipu", messages=[{"role": "user", "content": QUESTION}], temperature=0.5, seed=1
    )
    message = completion.choices[0].message
    assert message.content is not None
    assert "Charles Babbage" in message.content
    assert message.annotations
    cited = message.annotations[0].url_citation
    assert cited.url.startswith(link(address))
    assert message.content[cited.start_index : cited.end_index] == "[1]"


def test_openai_streams_what_it_answers(client: openai.OpenAI, address: str) -> None:
    whole = client.chat.completions.create(model="quipu-mix", messages=[{"role": "user", "content": QUESTION}])
    chunks = list(
        client.chat.completions.create(
            model="quipu-mix",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    annotations = [extra["annotations"] for delta in deltas if "annotations" in (extra := delta.model_extra or {})]
    assert annotations[0][0]["url_citation"]["url"].startswith(link(address))
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].choices == []


async def test_openai_streams_to_its_async_client(address: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as client:
        stream = await client.chat.completions.create(
            model="quipu", messages=[{"role": "user", "content": QUESTION}], stream=True
        )
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "Charles Babbage" in "".join(texts)


def test_openai_errors_have_openais_form(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="There is no model 'gpt-4o'") as error:
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}])
    assert error.value.code == "not-found"
    with pytest.raises(openai.UnprocessableEntityError, match="no question"):
        client.chat.completions.create(model="quipu", messages=[])


def test_an_error_in_a_stream_reaches_openais_client(client: openai.OpenAI) -> None:
    chunks = client.chat.completions.create(
        model="quipu-community_global", messages=[{"role": "user", "content": QUESTION}], stream=True
    )
    with pytest.raises(openai.APIError, match="quipu refresh"):
        list(chunks)


def test_openai_embeddings_are_the_same_as_floats_and_as_base64(address: str, client: openai.OpenAI) -> None:
    vectors = [row.embedding for row in client.embeddings.create(model="quipu", input=["a letter", "an engine"]).data]
    body = {"model": "quipu", "input": "a letter", "encoding_format": "float"}
    plain = httpx.post(f"{address}/v1/embeddings", json=body).json()["data"][0]["embedding"]
    assert vectors[0] == pytest.approx(plain)
    body["encoding_format"] = "base64"
    text = httpx.post(f"{address}/v1/embeddings", json=body).json()["data"][0]["embedding"]
    assert struct.unpack(f"<{len(plain)}f", base64.b64decode(text)) == pytest.approx(plain)
    assert vectors[0] != vectors[1]
    same = client.embeddings.create(model="quipu", input="a letter", dimensions=len(plain))
    assert same.data[0].embedding == pytest.approx(plain)
    with pytest.raises(openai.UnprocessableEntityError, match=f"{len(plain)} dimensions, not 5"):
        client.embeddings.create(model="quipu", input="a letter", dimensions=5)


def test_openai_responses_are_answered_whole_and_streamed(client: openai.OpenAI, address: str) -> None:
    response = client.responses.create(model="quipu", input=QUESTION, instructions="Be brief.")
    assert "Charles Babbage" in response.output_text
    with client.responses.stream(model="quipu", input=[{"role": "user", "content": QUESTION}]) as stream:
        streamed = stream.get_final_response()
    assert streamed.output_text == response.output_text
    part = streamed.output[0].to_dict()["content"][0]  # type: ignore[index]
    assert part["annotations"][0]["url"].startswith(link(address))
    with pytest.raises(openai.UnprocessableEntityError, match="not stored"):
        client.responses.create(model="quipu", input=QUESTION, previous_response_id="resp_1")


def test_ollama_lists_and_shows_models(ollama_client: ollama.Client, address: str) -> None:
    names = [model.model for model in ollama_client.list().models]
    assert names[0] == "quipu:latest"
    assert "quipu-ppr:latest" in names
    assert ollama_client.show("quipu").capabilities == ["completion"]
    assert ollama_client.ps().models
    assert httpx.head(address).status_code == 200
    assert httpx.get(f"{address}/api/version").json()["version"]


def test_ollama_answers_with_links(ollama_client: ollama.Client, address: str) -> None:
    reply = ollama_client.chat("quipu:latest", ASKED)
    assert reply.message.content is not None
    answer, _, links = reply.message.content.partition("\n\n- [1] ")
    assert "Charles Babbage" in answer
    assert link(address) in links
    assert reply.done_reason == "stop"


def test_ollama_streams_what_it_answers(ollama_client: ollama.Client) -> None:
    parts = list(ollama_client.chat("quipu", ASKED, stream=True))
    whole = ollama_client.chat("quipu", ASKED).message.content
    assert "".join(part.message.content or "" for part in parts) == whole
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]


async def test_ollama_streams_to_its_async_client(address: str) -> None:
    async with ollama.AsyncClient(address) as client:
        stream = await client.generate("quipu-mix:latest", QUESTION, stream=True)
        texts = [part.response async for part in stream]
    assert "Charles Babbage" in "".join(texts)


def test_ollama_returns_the_evidence_where_only_that_is_asked_for(ollama_client: ollama.Client) -> None:
    reply = ollama_client.generate("quipu", f"/Context {QUESTION}").response or ""
    assert "Ada Lovelace wrote to Charles Babbage" in reply


def test_ollama_errors_have_ollamas_form(ollama_client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="There is no model 'llama3'") as error:
        ollama_client.chat("llama3", ASKED)
    assert error.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="quipu refresh"):
        list(ollama_client.chat("quipu", [{"role": "user", "content": "/community_global who?"}], stream=True))


def test_what_the_apis_do_not_have_is_told_in_their_form(ollama_client: ollama.Client, client: openai.OpenAI) -> None:
    with pytest.raises(ollama.ResponseError, match=r"^There is no POST /api/pull"):
        ollama_client.pull("quipu")
    with pytest.raises(openai.NotFoundError, match=r"There is no POST /v1/moderations") as error:
        client.moderations.create(input="x")
    assert isinstance(error.value.body, dict)
    assert "message" in error.value.body


def test_ollama_embeds(ollama_client: ollama.Client) -> None:
    embeddings = ollama_client.embed("quipu", ["a letter", "an engine"]).embeddings
    assert len(embeddings) == 2
    assert embeddings[0] != embeddings[1]


def test_a_missing_key_is_refused_in_the_form_of_each_api(tmp_path: Path) -> None:
    key = KeyFile(tmp_path / KEYS_FILE).create("reader", Permission.READ).text
    with running(tmp_path) as (address, _):
        with ollama.Client(address) as client, pytest.raises(ollama.ResponseError, match="This needs a key"):
            client.list()
        with (
            openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0) as stranger,
            pytest.raises(openai.AuthenticationError, match="The key is wrong"),
        ):
            stranger.models.list()
        with openai.OpenAI(base_url=f"{address}/v1", api_key=key) as reader:
            assert reader.models.list().data


REPLY = CannedReply(text="She wrote to Charles Babbage [1]. " * 50, kinds=(RequestKind.ANSWER,))
SLOW = Script(
    latency=Latency(mean_s=60, first_share=0),
    answering=ReplyRules(replies=(REPLY,)),
)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/api/chat"])
def test_a_client_that_goes_away_ends_the_call_of_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    body = {"model": "quipu", "messages": ASKED, "input": QUESTION, "stream": True}
    with serving(SLOW) as model:
        monkeypatch.setenv("QUIPU_LLM", "custom/test")
        monkeypatch.setenv("QUIPU_LLM_BASE_URL", model.base_url)
        with running(folder) as (address, _):
            with httpx.stream("POST", f"{address}{path}", json=body, timeout=60) as response:
                assert any("wrote" in line for line in response.iter_lines())
            (request,) = model.settled().requests
    assert request.kind is RequestKind.ANSWER
    assert not request.is_completed
    assert request.ended_s - request.started_s < 60


TITLE = "### Task:\nGenerate a title.\n<chat_history>\nUSER: Whom did Ada Lovelace write to?\n</chat_history>"
TITLES = Script(
    answering=ReplyRules(
        replies=(
            CannedReply(text="This prompt holds the letter.", containing="Analytical Engine"),
            CannedReply(text="Letters of Ada", containing="<chat_history>"),
        )
    )
)


def test_a_clients_prompt_for_a_title_reaches_the_model_without_evidence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [{"role": "user", "content": TITLE}]
    with serving(TITLES) as model:
        monkeypatch.setenv("QUIPU_LLM", "custom/test")
        monkeypatch.setenv("QUIPU_LLM_BASE_URL", model.base_url)
        with running(folder) as (address, _), ollama.Client(address) as client:
            assert client.chat("quipu:latest", messages).message.content == "Letters of Ada"
            streamed = client.chat("quipu:latest", messages, stream=True)
            assert "".join(part.message.content or "" for part in streamed) == "Letters of Ada"
            asked = [{"role": "user", "content": QUESTION}]
            assert client.chat("quipu:latest", asked).message.content.startswith("This prompt holds the letter.")


def test_more_texts_than_openai_takes_are_refused_for_their_vectors(address: str) -> None:
    body = {"model": "quipu", "input": ["a"] * 2_049}
    for path in ("/v1/embeddings", "/api/embed"):
        reply = httpx.post(f"{address}{path}", json=body)
        assert reply.status_code == 422
        assert "2048" in reply.text
