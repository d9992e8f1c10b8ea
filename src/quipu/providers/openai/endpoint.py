"""Endpoint: where a service is and how it is spoken to; Target: one model of it."""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from quipu.errors import InvalidInput, Unavailable
from quipu.model.secret import Secret
from quipu.providers.openai.catalog import Provider

ANY_KEY_VARIABLE = "QUIPU_LLM_KEY"

_OPERATIONS = re.compile(r"/(chat/completions|completions|embeddings|rerank|models)$")
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1|0\.0\.0\.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait: for a connection, for the next piece of a streamed reply (the first too), for all of it."""

    connect_s: float = 10.0
    silence_s: float = 180.0
    total_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Endpoint:
    """A service at an address. No form of it as text shows more than provider and host.

    `base_url` "" is the provider's own. `key_names` are the variables its key is looked for under, None for the usual.
    Raises InvalidInput where there is no address or it is not one.
    """

    provider: Provider
    base_url: str = ""
    key: Secret = field(default_factory=Secret)
    key_names: tuple[str, ...] | None = None
    api_version: str = ""
    timeouts: Timeouts = Timeouts()

    def __post_init__(self) -> None:
        url = (self.base_url or self.provider.base_url).strip()
        if not url:
            raise InvalidInput(
                f"{self.provider.name} has no address of its own.", remedy=f"Set its base URL. {self.provider.note}"
            )
        object.__setattr__(self, "base_url", _tidied(url, self.provider.name))

    def __repr__(self) -> str:
        return f"Endpoint({self.provider.name} at {self.host})"

    @property
    def host(self) -> str:
        """Host and port, as in "localhost:11434"."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def is_loopback(self) -> bool:
        """Whether the service is on this machine."""
        return _LOOPBACK.fullmatch(urlsplit(self.base_url).hostname or "") is not None

    @property
    def is_default(self) -> bool:
        """Whether this is the provider's own address, or one of the user's where the provider has none."""
        return self.base_url == self.provider.base_url or not self.provider.base_url

    @property
    def is_own(self) -> bool:
        """Whether this is an address of the provider: the only place that its keys may be sent to."""
        if self.provider.domains:
            parts = urlsplit(self.base_url)
            return parts.scheme == "https" and (parts.hostname or "").endswith(self.provider.domains)
        return bool(self.provider.base_url) and _origin(self.base_url) == _origin(self.provider.base_url)

    @property
    def needs_key(self) -> bool:
        """Whether a key is missing that the provider is known to want."""
        return bool(self.provider.key_variable) and self.is_default and not self.key

    @property
    def key_remedy(self) -> str:
        """What to do about a key that is missing or wrong."""
        usual = (*((self.provider.key_variable,) if self.is_own else ()), ANY_KEY_VARIABLE)
        named = [name for name in (usual if self.key_names is None else self.key_names) if name]
        line = self.provider.name if self.is_own else f'"{self.host}"'
        if not named:
            return f"Give its key in secrets.toml, as {line} = …{self._restriction}"
        if self.is_own:
            return f"Set {' or '.join(named)} to a key of {self.provider.title}."
        whose = f"a key of {self.host}, or give it in secrets.toml, as {line} = …"
        return f"Set {' or '.join(named)} to {whose}{self._restriction}"

    @property
    def _restriction(self) -> str:
        """Why a key that is set is not sent here, "" where none is kept back."""
        if self.is_own or not self.provider.key_variable:
            return ""
        places = " or ".join(self.provider.domains) or urlsplit(self.provider.base_url).hostname
        return f" ({self.provider.key_variable} is sent to {places} alone.)"

    def url(self, operation: str, model: str) -> str:
        """Return the address of an operation, as in "/chat/completions"; on Azure each deployment has its own."""
        parts = urlsplit(self.base_url)
        path, query = parts.path, parts.query
        if self.provider.name == "azure" and "/openai/v1" not in path:
            path = path if "/deployments/" in path else f"{path}/openai/deployments/{quote(model, safe='')}"
            version = f"api-version={quote(self.api_version or self.provider.api_version)}"
            query = query if "api-version=" in query else f"{query}&{version}".lstrip("&")
        return urlunsplit((parts.scheme, self.host, path + operation, query, ""))

    def beside(self, path: str) -> str:
        """Return an address on the same host outside the OpenAI-compatible part, as in "/api/show"."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, self.host, parts.path.removesuffix("/v1") + path, parts.query, ""))

    def request_headers(self) -> dict[str, str]:
        """Return what every request carries. Raises Unavailable where the key cannot be a header's value."""
        headers = {"Content-Type": "application/json", "User-Agent": "quipu"}
        if key := self.key.reveal():
            if not (key.isascii() and key.isprintable()):
                raise Unavailable(
                    f"The key for {self.provider.name} has a character that no key has (a line break, or not ASCII).",
                    remedy=self.key_remedy,
                )
            is_azure = self.provider.name == "azure"
            headers |= {"api-key": key} if is_azure else {"Authorization": f"Bearer {key}"}
        elif self._login:
            headers["Authorization"] = f"Basic {self._login}"
        return headers

    @property
    def _login(self) -> str:
        """Name and password in the address, as basic authentication sends them."""
        given, _, _ = urlsplit(self.base_url).netloc.rpartition("@")
        return b64encode(unquote(given).encode()).decode()

    def mask(self, text: str) -> str:
        """Return `text` without any secret of this endpoint."""
        parts = urlsplit(self.base_url)
        given = (unquote(parts.password or ""), parts.query, self._login)
        for secret in (self.key, *map(Secret, given)):
            text = secret.mask(text)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One model of a service."""

    endpoint: Endpoint
    model: str

    @property
    def name(self) -> str:
        """Provider and model, with the host where the provider's name says nothing, as in "openai/gpt-4.1-mini"."""
        provider = self.endpoint.provider.name
        where = f"({self.endpoint.host})" if provider == "custom" else ""
        return f"{provider}{where}/{self.model}"

    @property
    def place(self) -> str:
        """Name and host, for messages."""
        return f"{self.endpoint.provider.name}/{self.model} at {self.endpoint.host}"


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _tidied(url: str, provider: str) -> str:
    """Return an address without what users paste along: a slash at the end, the name of an operation."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}" if _LOOPBACK.match(url) else url)
        is_address = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        is_address = False
    if not is_address:
        shown = url.rpartition("@")[2].partition("?")[0]
        raise InvalidInput(
            f"The base URL {shown!r} of {provider} is not an address.",
            remedy="Write it in full, as in http://localhost:11434/v1.",
        )
    path = _OPERATIONS.sub("", parts.path.rstrip("/")).rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
