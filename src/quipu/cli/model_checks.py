"""The checks of models in `quipu doctor`: what one small call to each showed, and whose keys can be read by others."""

import asyncio
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quipu.cli.checks import Check
from quipu.cli.work import work_in_words
from quipu.errors import QuipuError

if TYPE_CHECKING:
    from quipu.providers.openai.probe import ProbeResult
    from quipu.settings import Settings
    from quipu.wiring.inventory import NamedModel

_NONE = "none is set: local rules read, and answers are quotes"
_HOW = 'Set llm, as in QUIPU_LLM="ollama/qwen3:8b", to have one read and answer.'
_READABLE = stat.S_IRWXG | stat.S_IRWXO


def model_checks(settings: "Settings") -> list[Check]:
    """Return a check for each model the settings name, or one that says there is none."""
    is_remote = settings.embedder == "openai"
    if not settings.names_model and not is_remote:
        return [Check(name="language model", outcome="ok", detail=_NONE, remedy=_HOW)]
    from quipu.wiring.probing import probe_models

    try:
        probed = asyncio.run(probe_models(settings))
    except QuipuError as error:
        return [Check(name="language model", outcome="failed", detail=error.message, remedy=error.remedy)]
    return [_check(named, found, settings) for named, found in probed]


def secrets_checks(settings: "Settings") -> Iterator[Check]:
    """Yield a check of the file of secrets, where there is one: nobody else shall be able to read it."""
    from quipu.settings.keys import find_secrets

    file = find_secrets(settings.secrets, settings.index)
    if file is None:
        return
    mode = stat.S_IMODE(file.stat().st_mode)
    if os.name == "posix" and mode & _READABLE:
        detail = f"{file} can be read by others on this machine (mode {mode:o})"
        yield Check(name="secrets", outcome="warning", detail=detail, remedy=f"chmod 600 {file}")
    else:
        yield Check(name="secrets", outcome="ok", detail=str(file))


def _check(named: "NamedModel", found: "ProbeResult", settings: "Settings") -> Check:
    name = work_in_words(named.work)
    if found.problem:
        remedy = found.remedy or "Check its name and address."
        return Check(name=name, outcome="failed", detail=f"{named.name}: {found.problem}", remedy=remedy)
    advice = [*found.advice, *_further_advice(named, found, settings)]
    detail = f"{named.name} at {named.host}: {', '.join(_facts(named, found))}"
    return Check(name=name, outcome="warning" if advice else "ok", detail=detail, remedy=" ".join(advice))


def _facts(named: "NamedModel", found: "ProbeResult") -> Iterator[str]:
    """Yield what is known, in the order a reader wants it."""
    if found.took_s is not None:
        first = f" (begins after {found.first_token_s:.1f} s)" if found.first_token_s is not None else ""
        yield f"answered in {found.took_s:.1f} s{first}"
    if found.tokens_per_s is not None:
        yield f"{found.tokens_per_s:,.0f} tokens a second"
    if found.json is not None:
        yield {"schema": "JSON by a schema", "object": "JSON without a schema"}.get(found.json, "no JSON of its own")
    if found.context_window is not None:
        yield f"a context window of {found.context_window:,} tokens"
    if found.dimension is not None:
        yield f"{found.dimension:,} numbers a vector"
    yield f"key {'from ' if named.key else ''}{named.key or 'none'}"


def _further_advice(named: "NamedModel", found: "ProbeResult", settings: "Settings") -> Iterator[str]:
    if found.is_listed is False:
        yield "The server answers for it, but does not list it among its models: check the name."
    if named.price is None and settings.spending.cost is not None:
        yield "No price is known for it, so that a budget in money cannot be kept: add a [[price]] table to quipu.toml."
