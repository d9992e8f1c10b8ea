"""Vectors: the bodies of requests for embeddings, and what is read out of the answers."""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from quipu.errors import Overloaded
from quipu.model.chat import TokenCount
from quipu.providers.openai.catalog import InputKind
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.faults import Kind, kind_of
from quipu.providers.openai.fields import at, count_at, list_at
from quipu.providers.openai.said import Fault, Said
from quipu.text.formatting import format_count

_BATCH = re.compile(
    r"batch[ _-]?size|too many (inputs|texts|documents)|at most \d+|(input|array)[^.]{0,30}too (long|large)|"
    r"maximum[^.]{0,30}(batch|inputs|texts|documents)"
)

Floats = npt.NDArray[np.float32]
Sums = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorForm:
    """What a server takes, as far as is known; `dimension` is the length to ask for, None where none may be."""

    is_base64: bool = True
    dimension: int | None = None
    has_input_kind: bool = True


def write_inputs(texts: Sequence[str], target: Target, form: VectorForm, input_kind: InputKind, *, asks: bool) -> bytes:
    """Return a request for the vectors of texts: of questions where it `asks`, else of passages."""
    body: dict[str, object] = {"model": target.model, "input": list(texts)}
    if form.is_base64:
        body["encoding_format"] = "base64"
    if form.dimension:
        body[target.endpoint.provider.dimension_parameter] = form.dimension
    if form.has_input_kind and input_kind.parameter:
        body[input_kind.parameter] = input_kind.query if asks else input_kind.passage
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def read_vectors(said: Said, n_texts: int, dimension: int, place: str) -> Floats:
    """Return the vectors of an answer in the order of the texts, [n, dimension]; any length where `dimension` is 0.

    Raises Fault where it is no answer, Overloaded where it is not what was asked for: too few, too short, no numbers.
    """
    entries = list_at(said.body, "data")
    if not isinstance(at(said.body, "data"), list):
        raise Fault(said)
    rows = [_read_vector(at(each, "embedding")) for each in entries]
    order = in_order([count_at(each, "index") for each in entries], n_texts)
    if order is None:
        raise _malformed(place, f"{format_count(len(rows), 'vector')} for {format_count(n_texts, 'text')}")
    wanted = dimension or (len(rows[0]) if rows else 0)
    odd = next((len(row) for row in rows if len(row) != wanted), None)
    if odd is not None or not wanted:
        raise _malformed(place, f"vectors of {format_count(odd or 0, 'number')} where {wanted} were expected")
    vectors = np.stack([rows[index] for index in order])
    if not np.isfinite(vectors).all():
        raise _malformed(place, "vectors that are no numbers")
    return vectors


def read_tokens(said: Said) -> TokenCount | None:
    """Return how many tokens a service says it has read, None where it does not, or says none."""
    for path in (("usage", "prompt_tokens"), ("usage", "total_tokens"), ("meta", "billed_units", "input_tokens")):
        if n_tokens := count_at(said.body, *path):
            return TokenCount(input=n_tokens)
    return None


def in_order(indices: Sequence[int | None], n: int) -> list[int] | None:
    """Return where each of `n` results stands by the indices a server gave; None where they are not one of each.

    Without indices results stand as they were asked for.
    """
    if len(indices) == n and all(index is None for index in indices):
        return list(range(n))
    place_by_index = {index: place for place, index in enumerate(indices)}
    if len(indices) != n or set(place_by_index) != set(range(n)):
        return None
    return [place_by_index[index] for index in range(n)]


def is_too_much(said: Said) -> bool:
    """Return whether a server rejects how many texts it was given at once."""
    is_rejected = said.status in (400, 413, 422)
    return is_rejected and (kind_of(said) is Kind.LONG or said.status == 413 or bool(_BATCH.search(said.words)))


def adapted(form: VectorForm, said: Said, target: Target, input_kind: InputKind) -> VectorForm | None:
    """Return the form without what the server has rejected, None where nothing that can be changed was named."""
    if said.status not in (400, 422):
        return None
    words = f"{said.parameter.lower()} {said.words}"
    if form.is_base64 and ("encoding_format" in words or "base64" in words):
        return replace(form, is_base64=False)
    if form.dimension and (target.endpoint.provider.dimension_parameter in words or "matryoshka" in words):
        return replace(form, dimension=None)
    if form.has_input_kind and input_kind.parameter and input_kind.parameter in words:
        return replace(form, has_input_kind=False)
    return None


def windows(text: str, n_windows: int) -> list[str]:
    """Cut a text into windows of about equal length, at white space where there is some near."""
    places = [len(text) * window // n_windows for window in range(n_windows + 1)]
    cuts = [0, *(_space_before(text, begin, end) for begin, end in pairwise(places[:-1])), len(text)]
    pieces = (text[begin:end].strip() for begin, end in pairwise(cuts))
    return [piece for piece in pieces if piece]


def units(vectors: Sums | Floats) -> Floats:
    """Return vectors of length one; zero vectors stay."""
    wide = vectors.astype(np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    return (wide / np.where(norms > 0, norms, 1)).astype(np.float32)


def _space_before(text: str, begin: int, end: int) -> int:
    """Return the last white space in the later half of [begin, end), `end` where there is none."""
    found = max(text.rfind(" ", (begin + end) // 2, end), text.rfind("\n", (begin + end) // 2, end))
    return found if found > 0 else end


def _read_vector(written: object) -> Floats:
    """Return a vector written as a list, or as base64 of little-endian floats; an empty one for anything else."""
    try:
        if isinstance(written, str):
            return np.frombuffer(base64.b64decode(written, validate=True), dtype="<f4").astype(np.float32)
        with np.errstate(over="ignore"):  # what is too large is found as infinite
            return np.asarray(written if isinstance(written, list) else (), dtype=np.float32).reshape(-1)
    except (binascii.Error, ValueError, TypeError, OverflowError):
        return np.empty(0, dtype=np.float32)


def _malformed(place: str, what: str) -> Overloaded:
    return Overloaded(
        f"{place} returned {what}.",
        remedy="If this goes on, check the embedder's model and embedder_dimension.",
        may_cost=True,
    )
