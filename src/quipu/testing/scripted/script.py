"""Script: how a scripted model answers, how fast, and what goes wrong. One value, the same in a file and in a test."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError, with_config

from quipu.errors import InvalidInput
from quipu.testing.scripted.fault import Fault
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.range import STRICT, Count, Seconds, Share, Size


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a reply takes, in seconds.

    The time to its last byte is drawn from a log-normal distribution of mean `mean_s`; `sigma` is the standard
    deviation of the logarithm, 0 for a constant. A streamed reply begins after `first_share` of it, and the rest is
    spread over its pieces. `piece_s` is added for every piece: slow tokens.
    """

    mean_s: Seconds = 0.0
    sigma: Seconds = 0.0
    first_share: Share = 1.0
    piece_s: Seconds = 0.0


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many requests are answered at a time, None for any number, and what becomes of the others.

    `reject`: 429, with Retry-After where `retry_after_s` is given. `slow`: every reply begun above the limit takes
    longer, by the ratio of the requests under way to the limit.
    """

    concurrent: Size | None = None
    beyond: Literal["reject", "slow"] = "reject"
    retry_after_s: Seconds | None = None

    def rejects(self, n_under_way: int) -> bool:
        """Say whether the last of so many requests is rejected."""
        return self.concurrent is not None and self.beyond == "reject" and n_under_way > self.concurrent

    def slowdown(self, n_under_way: int) -> float:
        """Return how many times longer the last of so many requests takes."""
        is_slow = self.concurrent is not None and self.beyond == "slow"
        return max(1.0, n_under_way / self.concurrent) if is_slow and self.concurrent else 1.0


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply of your own: to chat requests of these kinds (() for any) that hold this text ("" for any)."""

    text: str
    kinds: tuple[Kind, ...] = ()
    containing: str = ""


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """What the replies say.

    `extraction` is a file of recorded extractions (`passage_id`, `entities`, `triples` a line) with the `corpus.jsonl`
    of its passages beside it: a passage it knows gets its own, any other text what a few rules find in it, at most
    `max_entities` entities and as many relations. The first
    reply leaves out the last `n_withheld` of its records, and a request for what was missed brings them. Of `replies`
    the first that fits is given word for word.
    """

    extraction: str = ""
    max_entities: Size = 20
    n_withheld: Count = 0
    replies: tuple[Reply, ...] = ()


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the server is and accepts; None, "" and () set no limit.

    Without `models` every name is accepted. `rejects` names parameters that are answered with 400, as some servers do
    with `max_tokens`, `stream_options` or `dimensions`; `json_object` and `json_schema` name a response format.
    `ignores_format`: a response format is taken and not obeyed. `context_window` counts the tokens of the prompt and of
    the reply asked for. `caches_prefixes`: prompts that begin as an earlier one did (1,024 tokens or more) report
    cached tokens. `piece_chars` is the length of the pieces of a streamed reply.
    """

    models: tuple[str, ...] = ()
    api_key: str = field(default="", repr=False)
    context_window: Size | None = None
    dimension: Size = 64
    max_inputs: Size = 2048
    rejects: tuple[str, ...] = ()
    ignores_format: bool = False
    reports_usage: bool = True
    caches_prefixes: bool = False
    piece_chars: Size = 16


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The whole of it. Everything drawn by chance is a function of `seed`, the request and how often it was asked.

    Of `faults` the first that strikes is what happens. `log` names a file that gets a line of JSON for every request at
    its end.
    """

    seed: str = "0"
    latency: Latency = field(default_factory=Latency)
    limit: Limit = field(default_factory=Limit)
    faults: tuple[Fault, ...] = ()
    answering: Answering = field(default_factory=Answering)
    service: Service = field(default_factory=Service)
    log: str = ""


_SCRIPT = TypeAdapter(Script)


def parse_script(data: str | bytes) -> Script:
    """Return the script written as JSON; raises InvalidInput naming the field that does not fit."""
    try:
        return _SCRIPT.validate_json(data)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise InvalidInput(f"The script is wrong at {place or 'its beginning'}: {problem['msg']}.") from error


def read_script(path: Path) -> Script:
    """Return the script in a file."""
    return parse_script(path.read_bytes())


def write_script(script: Script) -> bytes:
    """Return the script as JSON."""
    return _SCRIPT.dump_json(script, indent=1)
