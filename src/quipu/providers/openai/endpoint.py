"""Endpoints: the address of a service, its key and its headers; and the target, one model at an endpoint."""

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
    """How long to wait: for a connection, for each part of a streamed reply, and for the whole reply."""

    connect_s: float = 10.0
    silence_s: float = 180.0
    total_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Endpoint:
    """A service at an address. Its text form shows only provider and host.

    An empty `base_url` means the provider's own. `key_names` are the variables that may hold the key, None for the
    usual ones. Raises InvalidInput if there is no address or it is not a URL.
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
                f"{self.provider.name} has no default address.", remedy=f"Set its base URL. {self.provider.note}"
            )
        object.__setattr__(self, "base_url", _normalize(url, self.provider.name))

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
        """Whether this is the provider's own address, or any address if the provider has none."""
        return self.base_url == self.provider.base_url or not self.provider.base_url

    @property
    def is_official(self) -> bool:
        """Whether this address belongs to the provider. Its keys may be sent to no other address."""
        if self.provider.domains:
            parts = urlsplit(self.base_url)
            return parts.scheme == "https" and (parts.hostname or "").endswith(self.provider.domains)
        return bool(self.provider.base_url) and _origin(self.base_url) == _origin(self.provider.base_url)

    @property
    def needs_key(self) -> bool:
        """Whether the provider requires a key and there is none."""
        return bool(self.provider.key_variable) and self.is_default and not self.key

    @property
    def key_remedy(self) -> str:
        """What to do about a missing or wrong key."""
        usual = (*((self.provider.key_variable,) if self.is_official else ()), ANY_KEY_VARIABLE)
        names = [name for name in (usual if self.key_names is None else self.key_names) if name]
        entry = self.provider.name if self.is_official else f'"{self.host}"'
        if not names:
            return f"Give its key in secrets.toml, as {entry} = …{self._restriction}"
        variables = " or ".join(names)
        if self.is_official:
            return f"Set {variables} to a key of {self.provider.title}."
        return f"Set {variables} to a key of {self.host}, or give it in secrets.toml, as {entry} = …{self._restriction}"

    @property
    def _restriction(self) -> str:
        """Why the provider's key is not sent to this address; "" if it may be."""
        if self.is_official or not self.provider.key_variable:
            return ""
        places = " or ".join(self.provider.domains) or urlsplit(self.provider.base_url).hostname
        return f" ({self.provider.key_variable} is sent only to {places}.)"

    def url(self, operation: str, model: str) -> str:
        """Return the URL of an operation such as "/chat/completions"; on Azure each deployment has its own."""
        parts = urlsplit(self.base_url)
        path, query = parts.path, parts.query
        if self.provider.name == "azure" and "/openai/v1" not in path:
            path = path if "/deployments/" in path else f"{path}/openai/deployments/{quote(model, safe='')}"
            version = f"api-version={quote(self.api_version or self.provider.api_version)}"
            query = query if "api-version=" in query else f"{query}&{version}".lstrip("&")
        return urlunsplit((parts.scheme, self.host, path + operation, query, ""))

    def url_outside_api(self, path: str) -> str:
        """Return a URL on the same host outside the OpenAI-compatible paths, as for "/api/show"."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, self.host, parts.path.removesuffix("/v1") + path, parts.query, ""))

    def request_headers(self) -> dict[str, str]:
        """Return the headers of every request. Raises Unavailable if the key cannot be a header value."""
        headers = {"Content-Type": "application/json", "User-Agent": "quipu"}
        if key := self.key.reveal():
            if not (key.isascii() and key.isprintable()):
                raise Unavailable(
                    f"The key for {self.provider.name} contains an invalid character (a line break, or not ASCII).",
                    remedy=self.key_remedy,
                )
            is_azure = self.provider.name == "azure"
            headers |= {"api-key": key} if is_azure else {"Authorization": f"Bearer {key}"}
        elif self._credentials:
            headers["Authorization"] = f"Basic {self._credentials}"
        return headers

    @property
    def _credentials(self) -> str:
        """Name and password in the address, encoded for basic authentication."""
        credentials, _, _ = urlsplit(self.base_url).netloc.rpartition("@")
        return b64encode(unquote(credentials).encode()).decode()

    def mask(self, text: str) -> str:
        """Return `text` with every secret of this endpoint masked."""
        parts = urlsplit(self.base_url)
        in_address = (unquote(parts.password or ""), parts.query, self._credentials)
        for secret in (self.key, *map(Secret, in_address)):
            text = secret.mask(text)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One model of a service."""

    endpoint: Endpoint
    model: str

    @property
    def name(self) -> str:
        """Provider and model, as in "openai/gpt-4.1-mini"; for a custom server also its host."""
        provider = self.endpoint.provider.name
        host = f"({self.endpoint.host})" if provider == "custom" else ""
        return f"{provider}{host}/{self.model}"

    @property
    def label(self) -> str:
        """Provider, model and host, for messages."""
        return f"{self.endpoint.provider.name}/{self.model} at {self.endpoint.host}"


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _normalize(url: str, provider: str) -> str:
    """Return an address without a slash or an operation at its end, which users often paste along."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}" if _LOOPBACK.match(url) else url)
        is_address = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        is_address = False
    if not is_address:
        without_secrets = url.rpartition("@")[2].partition("?")[0]
        raise InvalidInput(
            f"The base URL {without_secrets!r} of {provider} is not a URL.",
            remedy="Write it in full, as in http://localhost:11434/v1.",
        )
    path = _OPERATIONS.sub("", parts.path.rstrip("/")).rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
