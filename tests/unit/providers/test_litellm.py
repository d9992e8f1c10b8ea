"""LiteLLM's adapter over a module of the same form."""

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from quipu.errors import InvalidInput, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, FinishReason, Message, Role, TokenCount
from quipu.model.secret import Secret
from quipu.providers.litellm import LiteLlm, LiteLlmParameters, import_litellm

HELLO = ChatRequest(messages=(Message("user", "Hello there."),), role=Role.ANSWER, max_output_tokens=1_000)
KEY = "sk-SENTINEL-d41d8cd98f00b204"


class APIError(Exception):
    """As in the library: the parent of its errors, with the answer that caused them."""

    def __init__(self, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = SimpleNamespace(headers=headers or {})


class APIConnectionError(APIError):
    """As in the library."""


class AuthenticationError(APIError):
    """As in the library."""


class BadRequestError(APIError):
    """As in the library."""


class ContextWindowExceededError(BadRequestError):
    """As in the library."""


class ContentPolicyViolationError(BadRequestError):
    """As in the library."""


class NotFoundError(APIError):
    """As in the library."""


class RateLimitError(APIError):
    """As in the library."""


class Timeout(APIError):
    """As in the library."""


_ERRORS = (
    APIError,
    APIConnectionError,
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    ContentPolicyViolationError,
    NotFoundError,
    RateLimitError,
    Timeout,
)

Step = SimpleNamespace | Exception | None


def piece(text: str | None, finish: str | None = None) -> SimpleNamespace:
    """Return a piece of a streamed reply in the library's form."""
    return SimpleNamespace(choices=[SimpleNamespace(delta=SimpleNamespace(content=text), finish_reason=finish)])


def usage(given: int, output: int, cached: int | None = None) -> SimpleNamespace:
    """Return the piece that says what was counted."""
    details = SimpleNamespace(cached_tokens=cached)
    counted = SimpleNamespace(prompt_tokens=given, completion_tokens=output, prompt_tokens_details=details)
    return SimpleNamespace(choices=[], usage=counted)


class Library:
    """A module like litellm: gives these pieces, raises these errors; None never comes."""

    def __init__(self, *steps: Step, refuses: Exception | None = None) -> None:
        self.exceptions = SimpleNamespace(**{kind.__name__: kind for kind in _ERRORS})
        self.asked: list[dict[str, object]] = []
        self._steps: Sequence[Step] = steps
        self._refuses = refuses

    async def acompletion(self, **arguments: object) -> AsyncIterator[SimpleNamespace]:
        """Begin a reply."""
        self.asked.append(arguments)
        if self._refuses:
            raise self._refuses
        return self._reply()

    async def _reply(self) -> AsyncIterator[SimpleNamespace]:
        for step in self._steps:
            if step is None:
                await asyncio.Event().wait()
            elif isinstance(step, Exception):
                raise step
            else:
                yield step


def _model(library: Library, parameters: LiteLlmParameters | None = None) -> LiteLlm:
    return LiteLlm(
        "bedrock/claude",
        count_tokens=lambda text: len(text.split()),
        parameters=parameters or LiteLlmParameters(),
        load=lambda: library,
    )


async def test_a_reply_is_joined_from_its_pieces() -> None:
    pieces: list[str] = []
    library = Library(piece("Kno"), piece("ts"), piece(None, "stop"), usage(20, 5, 8))
    completion = await _model(library).complete(HELLO, pieces.append)
    assert pieces == ["Kno", "ts"]
    assert (completion.text, completion.finish, completion.is_estimate) == ("Knots", FinishReason.STOP, False)
    assert completion.tokens == TokenCount(input=20, cached=8, output=5)


@pytest.mark.parametrize("counted", [[], [usage(0, 0)], [usage(20, 0)], [usage(10**30, 5)], [usage(20, 10**30)]])
async def test_what_the_library_does_not_count_is_counted_for_it(counted: list[SimpleNamespace]) -> None:
    completion = await _model(Library(piece("One two three", "length"), *counted)).complete(HELLO)
    assert (completion.finish, completion.is_estimate) == (FinishReason.LENGTH, True)
    assert completion.tokens == TokenCount(input=2, output=3)


async def test_what_is_asked_names_model_limits_key_and_schema() -> None:
    library = Library(piece("x", "stop"))
    parameters = LiteLlmParameters(
        key=Secret(KEY), base_url="http://gate.example", max_output_tokens=100, extra='{"top_p": 0.9, "timeout": null}'
    )
    await _model(library, parameters).complete(replace(HELLO, schema='{"type": "object"}'))
    (asked,) = library.asked
    assert (asked["model"], asked["max_tokens"], asked["temperature"]) == ("bedrock/claude", 100, 0.0)
    assert asked["messages"] == [{"role": "user", "content": "Hello there."}]
    assert (asked["api_key"], asked["api_base"]) == (KEY, "http://gate.example")
    assert (asked["num_retries"], asked["drop_params"], asked["top_p"]) == (0, True, 0.9)
    assert "timeout" not in asked
    assert "json_schema" in json.dumps(asked["response_format"])


async def test_a_temperature_that_is_set_counts_over_the_requests() -> None:
    library = Library(piece("x", "stop"))
    await _model(library, LiteLlmParameters(temperature=0.7)).complete(HELLO)
    assert library.asked[0]["temperature"] == 0.7


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ContextWindowExceededError("too long"), TooLong),
        (ContentPolicyViolationError("not this"), Refused),
        (BadRequestError("no such parameter"), Refused),
        (AuthenticationError("no key"), Unavailable),
        (NotFoundError("no such model"), Unavailable),
        (RateLimitError("slow down"), Overloaded),
        (RateLimitError("insufficient_quota"), Unavailable),
        (APIConnectionError("refused"), Overloaded),
        (Timeout("late"), Overloaded),
        (APIError("odd"), Overloaded),
        (type("NewError", (NotFoundError,), {})("child of a known one"), Unavailable),
        (ConnectionResetError("reset"), Overloaded),
    ],
)
async def test_every_error_of_the_library_is_one_of_ours(error: Exception, kind: type[QuipuError]) -> None:
    for library in (Library(refuses=error), Library(error)):
        with pytest.raises(QuipuError) as caught:
            await _model(library).complete(HELLO)
        assert type(caught.value) is kind
        assert caught.value.message == f"litellm/bedrock/claude: {error}"
        assert caught.value.remedy


async def test_how_long_to_wait_is_taken_from_the_answer() -> None:
    library = Library(refuses=RateLimitError("slow down", {"retry-after": "7"}))
    with pytest.raises(Overloaded) as caught:
        await _model(library).complete(HELLO)
    assert (caught.value.retry_after_s, caught.value.may_cost) == (7.0, False)


async def test_a_reply_that_breaks_off_keeps_its_text() -> None:
    completion = await _model(Library(piece("Kno"), APIConnectionError("gone"))).complete(HELLO)
    assert (completion.text, completion.finish, completion.is_estimate) == ("Kno", FinishReason.INTERRUPTED, True)


async def test_a_reply_that_never_comes_is_left_after_a_while() -> None:
    hurried = LiteLlmParameters(timeout_s=0.5)
    with pytest.raises(Overloaded) as caught:
        await _model(Library(None), hurried).complete(HELLO)
    assert caught.value.may_cost
    assert (await _model(Library(piece("Kno"), None), hurried).complete(HELLO)).finish is FinishReason.INTERRUPTED


async def test_a_reply_without_any_piece_is_none_and_one_withheld_is_refused() -> None:
    with pytest.raises(Overloaded, match="before any text"):
        await _model(Library()).complete(HELLO)
    with pytest.raises(Refused, match="withheld") as caught:
        await _model(Library(piece(None, "content_filter"))).complete(HELLO)
    assert caught.value.may_cost


async def test_no_error_shows_a_key() -> None:
    other = "AKIAABCDEFGHIJKLMNOP"
    error = AuthenticationError(f"Incorrect key {KEY}, Authorization: Bearer abc.def.ghi, {other}")
    with pytest.raises(Unavailable) as caught:
        await _model(Library(refuses=error), LiteLlmParameters(key=Secret(KEY))).complete(HELLO)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.__context__)
    assert not any(secret in shown for secret in ("SENTINEL", "abc.def", other))
    assert "SENTINEL" not in repr(LiteLlmParameters(key=Secret(KEY), base_url="http://user:SENTINEL@gate.example/v1"))


async def test_no_error_shows_what_is_secret_in_an_address() -> None:
    url = "http://user:pass%40SENTINEL@gate.example/v1?code=SENTINEL-of-query"
    error = APIConnectionError(f"Nothing at {url}, user pass@SENTINEL")
    with pytest.raises(Overloaded) as caught:
        await _model(Library(refuses=error), LiteLlmParameters(base_url=url)).complete(HELLO)
    assert "SENTINEL" not in str(caught.value)


def test_the_identity_names_what_changes_replies() -> None:
    assert _model(Library()).identity == "litellm/bedrock/claude"
    set_apart = LiteLlmParameters(key=Secret(KEY), timeout_s=1.0, temperature=0.5, extra='{"top_p": 0.9}')
    identity = _model(Library(), set_apart).identity
    assert identity.startswith('litellm/bedrock/claude?{"extra": "')
    assert identity.endswith('", "temperature": 0.5}')
    assert "top_p" not in identity
    assert identity != _model(Library(), replace(set_apart, extra='{"top_p": 0.8}')).identity


@pytest.mark.parametrize("extra", ["[1]", '{"api_key": "sk-SENTINEL"}', '{"api_base": "http://elsewhere.example"}'])
def test_extra_arguments_that_are_no_object_or_hold_a_key_or_an_address_are_refused(extra: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _model(Library(), LiteLlmParameters(extra=extra))
    assert "SENTINEL" not in str(caught.value)


def test_a_library_that_is_not_installed_is_unavailable_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(Unavailable, match=r"pip install 'quipu-rag\[litellm\]'"):
        LiteLlm("bedrock/claude", count_tokens=len)
    with pytest.raises(Unavailable, match="not installed"):
        import_litellm()


async def test_closing_leaves_the_library_alone() -> None:
    library = Library(piece("x", "stop"))
    model = _model(library)
    await model.aclose()
    assert (await model.complete(HELLO)).text == "x"
