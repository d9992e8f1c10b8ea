"""What the APIs of OpenAI and Ollama share: prefixes of questions, the history, and addresses of citations."""

import json
from dataclasses import replace

import httpx
import pytest
from starlette.requests import Request

from quipu.errors import InvalidInput
from quipu.model.query import Turn
from quipu.retrieve import STRATEGIES
from quipu.server.dialects import ChatQuestion, ClientMessage, ClientMessagePart, ServedModel, document_url, question_of

MODEL = ServedModel(workspace="default", strategy="mix")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("/local who?", ChatQuestion(text="who?", strategy="local")),
        ("/Local who?", ChatQuestion(text="who?", strategy="local")),
        ("/hybrid\nwho?", ChatQuestion(text="who?", strategy="hybrid")),
        ("/bypass who?", ChatQuestion(text="who?", strategy="bypass")),
        ("/community_local who?", ChatQuestion(text="who?", strategy="community_local")),
        ("/context who?", ChatQuestion(text="who?", only_context=True)),
        ("/localcontext who?", ChatQuestion(text="who?", strategy="local", only_context=True)),
        ("/ppr[as a table] who?", ChatQuestion(text="who?", strategy="ppr", instruction="as a table")),
        ("/[as a table] who?", ChatQuestion(text="who?", instruction="as a table")),
    ],
)
def test_a_prefix_is_a_whole_word_in_any_case(text: str, question: ChatQuestion) -> None:
    assert ChatQuestion(text=text).with_prefix() == question


@pytest.mark.parametrize(
    "text", ["/contextual planning", "/foo[x] who?", "/local/bin is what?", "who is /local ?", "/ who?", "/mixed"]
)
def test_what_is_no_prefix_stays_as_it_is(text: str) -> None:
    assert ChatQuestion(text=text).with_prefix() == ChatQuestion(text=text)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_has_a_prefix(strategy: str) -> None:
    named = ChatQuestion(text=f"/{strategy} who?").with_prefix()
    assert named.only_context if strategy == "context" else named.strategy == strategy  # `/context`: the evidence alone
    assert ChatQuestion(text=f"/{strategy}context who?").with_prefix() == replace(
        named, strategy=strategy, only_context=True
    )


def test_the_last_message_of_the_user_is_the_question_and_those_before_it_the_history() -> None:
    messages = [
        ClientMessage(role="system", content="Be brief."),
        ClientMessage(role="user", content="Who was Ada?"),
        ClientMessage(role="assistant", content="A mathematician."),
        ClientMessage(role="tool", content="ignored"),
        ClientMessage(
            role="user",
            content=[ClientMessagePart(text="When did"), ClientMessagePart(type="input_text", text="she live?")],
        ),
    ]
    assert question_of(messages, MODEL) == ChatQuestion(
        text="When did\nshe live?",
        strategy="mix",
        system_prompt="Be brief.",
        history=(Turn(role="user", text="Who was Ada?"), Turn(role="assistant", text="A mathematician.")),
    )


def test_a_prompt_for_a_title_goes_past_retrieval() -> None:
    text = "### Task:\nGenerate a title.\n<chat_history>\nUSER: Who was Ada?\n</chat_history>"
    assert question_of([ClientMessage(content=text)], MODEL) == ChatQuestion(text=text, strategy="bypass")


def test_a_picture_is_refused() -> None:
    with pytest.raises(InvalidInput, match="image_url"):
        question_of([ClientMessage(content=[ClientMessagePart(type="image_url")])], MODEL)


@pytest.mark.parametrize(
    "messages", [[], [ClientMessage(content="  ")], [ClientMessage(role="system", content="Be brief.")]]
)
def test_a_conversation_without_a_question_is_refused(messages: list[ClientMessage]) -> None:
    with pytest.raises(InvalidInput, match="no question"):
        question_of(messages, MODEL)


def test_the_address_of_a_citation_opens_the_document_at_the_cited_characters() -> None:
    headers = [(b"host", b"kb.example.org:8787")]
    scope = {"type": "http", "scheme": "http", "path": "/v1/models", "headers": headers, "query_string": b""}
    whole = "http://kb.example.org:8787/#/workspaces/letters/documents/a%20b%2F1%23.md"
    assert document_url(Request(scope), "letters", "a b/1#.md", 3, 9) == f"{whole}?start=3&end=9"
    assert document_url(Request(scope), "letters", "a b/1#.md") == whole


async def test_a_stream_of_ollama_is_kept_open_by_empty_lines(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.server.ollama_api.HEARTBEAT_S", 0.001)  # a search in a thread takes longer
    body = {"model": "quipu", "messages": [{"role": "user", "content": "Whom did Ada write to?"}]}
    lines = [json.loads(line) for line in (await client.post("/api/chat", json=body)).text.splitlines()]
    assert (lines[0]["message"]["content"], lines[0]["done"]) == ("", False)
    assert "Charles Babbage" in "".join(line["message"]["content"] for line in lines)
    assert lines[-1]["done"]


async def test_ollamas_own_examples_work_which_name_no_type(client: httpx.AsyncClient) -> None:
    body = '{"model": "quipu", "messages": [{"role": "user", "content": "Whom did Ada write to?"}], "stream": false}'
    form = {"content-type": "application/x-www-form-urlencoded"}
    reply = await client.post("/api/chat", content=body, headers=form)
    assert reply.json()["done"]
    elsewhere = {**form, "origin": "https://attacker.example"}
    assert (await client.post("/api/chat", content=body, headers=elsewhere)).status_code == 403
