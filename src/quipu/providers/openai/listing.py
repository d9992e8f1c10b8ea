"""Listing: which models a server has and how much they read, as far as it says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from quipu.errors import Overloaded, Unavailable
from quipu.providers.openai.fields import at, count_at, list_at, text_at
from quipu.providers.openai.session import Session, deadline

_WITHIN_S = 5.0
_WINDOW_FIELDS = (
    ("loaded_context_length",),
    ("context_length",),
    ("max_model_len",),
    ("context_window",),
    ("max_context_length",),
    ("max_input_tokens",),
    ("meta", "n_ctx"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model as a server lists it; None where it does not say how many tokens it reads."""

    name: str
    context_window: int | None = None


def read_models(body: object) -> list[ListedModel]:
    """Return the models of an answer to GET /models: a list, or an object with one as `data`."""
    entries = body if isinstance(body, list) else list_at(body, "data") or list_at(body, "models")
    listed = [ListedModel(name=_name(each), context_window=_window(each)) for each in entries]
    return [each for each in listed if each.name]


async def list_models(session: Session) -> list[ListedModel]:
    """Return the models a server lists; none where it lists none or does not answer."""
    target = session.target
    return read_models(await _asked(session, target.endpoint.url("/models", target.model)))


async def find_window(session: Session) -> int | None:
    """Return how many tokens the model reads as it is served now, None where the server does not say.

    A model must have been used before it is asked about: Ollama and LM Studio load it then.
    """
    name, endpoint = session.target.model, session.target.endpoint
    if endpoint.provider.name == "ollama":
        running = list_at(await _asked(session, endpoint.beside("/api/ps")), "models")
        mine = (
            each for each in running if name in (text_at(each, "name").removesuffix(":latest"), text_at(each, "model"))
        )
        return next((count_at(each, "context_length") for each in mine), None) or await _ollama_parameter(session)
    if endpoint.provider.name == "llamacpp":
        return count_at(await _asked(session, endpoint.beside("/props")), "default_generation_settings", "n_ctx")
    if endpoint.provider.name == "lmstudio":
        models = read_models(await _asked(session, endpoint.beside("/api/v0/models")))
    else:
        models = await list_models(session)
    return next((each.context_window for each in models if each.name == name), None)


async def _ollama_parameter(session: Session) -> int | None:
    """Return num_ctx of the model's own file."""
    body = json.dumps({"model": session.target.model}).encode()
    shown = text_at(await _asked(session, session.target.endpoint.beside("/api/show"), body), "parameters")
    lines = (line.split() for line in shown.splitlines())
    return next(
        (int(words[1]) for words in lines if words[:1] == ["num_ctx"] and words[1:2] and words[1].isdigit()), None
    )


async def _asked(session: Session, url: str, body: bytes | None = None) -> object:
    try:
        return await session.ask(url, deadline(_WITHIN_S), body)
    except (Overloaded, Unavailable):
        return None


def _name(entry: object) -> str:
    """Return a model's name; Gemini writes "models/" before it."""
    if not isinstance(entry, Mapping):
        return ""
    return (text_at(entry, "id") or text_at(entry, "name") or text_at(entry, "model")).removeprefix("models/")


def _window(entry: object) -> int | None:
    return next((found for path in _WINDOW_FIELDS if (found := count_at(at(entry, *path)))), None)
