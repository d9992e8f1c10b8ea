"""Prices of hosted models, as far as they are known. The user's own table comes first."""

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from quipu.model.usage import USD, Price

# From the providers' public price lists of October 2025, in USD, for the standard tier and prompts of ordinary length.
# Prices change and depend on contracts: users set the ones that matter in [[price]] tables. Uncertain ones are omitted.
LOCAL = ("ollama", "lmstudio", "vllm", "llamacpp", "tei", "replay")
FREE = Price(input=0.0, output=0.0)

# A version at the end of a name does not change the price: "-2024-07-18", "-20241022", "@20250514", "-001", "-latest".
_VERSION = re.compile(r"(-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-00\d|-latest)$")

_PRICES: Mapping[str, Price] = MappingProxyType(
    {
        "gpt-5": Price(input=1.25, cached=0.125, output=10.0),
        "gpt-5-mini": Price(input=0.25, cached=0.025, output=2.0),
        "gpt-5-nano": Price(input=0.05, cached=0.005, output=0.40),
        "gpt-4.1": Price(input=2.0, cached=0.50, output=8.0),
        "gpt-4.1-mini": Price(input=0.40, cached=0.10, output=1.60),
        "gpt-4.1-nano": Price(input=0.10, cached=0.025, output=0.40),
        "gpt-4o": Price(input=2.50, cached=1.25, output=10.0),
        "gpt-4o-mini": Price(input=0.15, cached=0.075, output=0.60),
        "gpt-4-turbo": Price(input=10.0, output=30.0),
        "gpt-4": Price(input=30.0, output=60.0),
        "gpt-3.5-turbo": Price(input=0.50, output=1.50),
        "o1": Price(input=15.0, cached=7.50, output=60.0),
        "o3": Price(input=2.0, cached=0.50, output=8.0),
        "o3-mini": Price(input=1.10, cached=0.55, output=4.40),
        "o4-mini": Price(input=1.10, cached=0.275, output=4.40),
        "text-embedding-3-small": Price(input=0.02, output=0.0),
        "text-embedding-3-large": Price(input=0.13, output=0.0),
        "text-embedding-ada-002": Price(input=0.10, output=0.0),
        "claude-3-haiku": Price(input=0.25, cached=0.03, output=1.25),
        "claude-3-opus": Price(input=15.0, cached=1.50, output=75.0),
        "claude-3-5-haiku": Price(input=0.80, cached=0.08, output=4.0),
        "claude-3-5-sonnet": Price(input=3.0, cached=0.30, output=15.0),
        "claude-3-7-sonnet": Price(input=3.0, cached=0.30, output=15.0),
        "claude-sonnet-4": Price(input=3.0, cached=0.30, output=15.0),
        "claude-sonnet-4-0": Price(input=3.0, cached=0.30, output=15.0),
        "claude-sonnet-4-5": Price(input=3.0, cached=0.30, output=15.0),
        "claude-haiku-4-5": Price(input=1.0, cached=0.10, output=5.0),
        "claude-opus-4": Price(input=15.0, cached=1.50, output=75.0),
        "claude-opus-4-0": Price(input=15.0, cached=1.50, output=75.0),
        "claude-opus-4-1": Price(input=15.0, cached=1.50, output=75.0),
        "gemini-2.0-flash": Price(input=0.10, cached=0.025, output=0.40),
        "gemini-2.0-flash-lite": Price(input=0.075, output=0.30),
        "gemini-2.5-pro": Price(input=1.25, output=10.0),
        "gemini-2.5-flash": Price(input=0.30, output=2.50),
        "gemini-2.5-flash-lite": Price(input=0.10, output=0.40),
        "gemini-embedding-001": Price(input=0.15, output=0.0),
        "mistral-embed": Price(input=0.10, output=0.0),
        "deepseek/deepseek-chat": Price(input=0.28, cached=0.028, output=0.42),
        "deepseek/deepseek-reasoner": Price(input=0.28, cached=0.028, output=0.42),
        "groq/llama-3.1-8b-instant": Price(input=0.05, output=0.08),
        "groq/llama-3.3-70b-versatile": Price(input=0.59, output=0.79),
    }
)


class PriceTable:
    """Finds the price of a model. `own` maps patterns ("gpt-4o*", "*/my-model") to prices, before the built-in ones.

    All prices are in `currency`. The built-in ones are in USD, so there are none in another currency.
    """

    def __init__(self, own: Mapping[str, Price] | None = None, currency: str = USD) -> None:
        self._own = {pattern: replace(price, currency=currency) for pattern, price in (own or {}).items()}
        self._currency = currency

    def find(self, model: str) -> Price | None:
        """Return the price of a model such as "openai/gpt-4.1-mini"; None if it is not known.

        A pattern is compared with the whole name and with the part after each "/". The longest matching pattern wins. A
        model of a local server is free.
        """
        names = _names(model.removeprefix("litellm/"))
        matching = [pattern for pattern in self._own if any(fnmatchcase(name, pattern) for name in names)]
        if matching:
            return self._own[max(matching, key=lambda pattern: (len(pattern), pattern))]
        if model.partition("/")[0] in LOCAL:
            return replace(FREE, currency=self._currency)
        if self._currency != USD:
            return None
        spellings = (spelling for name in (names[0], names[-1]) for spelling in (name, _VERSION.sub("", name)))
        return next((_PRICES[spelling] for spelling in spellings if spelling in _PRICES), None)


def _names(model: str) -> list[str]:
    """Return the whole name, and the part after each "/"."""
    parts = model.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]
