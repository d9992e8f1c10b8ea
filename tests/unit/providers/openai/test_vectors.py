"""Bodies of requests for embeddings and what is read out of the answers."""

import base64
import json

import numpy as np
import pytest

from quipu.errors import Overloaded
from quipu.model.chat import TokenCount
from quipu.providers.openai.catalog import InputKind
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.said import Fault, Said, read_said
from quipu.providers.openai.vectors import (
    VectorForm,
    adapted,
    in_order,
    is_too_much,
    read_tokens,
    read_vectors,
    windows,
    write_inputs,
)
from tests.unit.providers.openai.raw import endpoint

KIND = InputKind(parameter="input_type", query="query", passage="document")
TARGET = Target(endpoint=endpoint("http://gate.example/v1"), model="m")


def _said(body: object, status: int = 200) -> Said:
    return read_said(status, {}, json.dumps(body).encode())


def _data(*vectors: object, indices: tuple[object, ...] | None = None) -> Said:
    places = range(len(vectors)) if indices is None else indices
    return _said({"data": [{"index": at, "embedding": each} for at, each in zip(places, vectors, strict=True)]})


def test_a_request_asks_for_base64_and_tells_questions_from_passages() -> None:
    form = VectorForm(dimension=256)
    question = json.loads(write_inputs(["a"], TARGET, form, KIND, asks=True))
    assert question == {
        "model": "m",
        "input": ["a"],
        "encoding_format": "base64",
        "dimensions": 256,
        "input_type": "query",
    }
    assert json.loads(write_inputs(["a"], TARGET, form, KIND, asks=False))["input_type"] == "document"
    bare = write_inputs(["a"], TARGET, VectorForm(is_base64=False, has_input_kind=False), KIND, asks=True)
    assert json.loads(bare) == {"model": "m", "input": ["a"]}


def test_voyage_has_another_name_for_the_dimension() -> None:
    voyage = Target(endpoint=endpoint("http://gate.example", "voyage"), model="m")
    assert "output_dimension" in json.loads(write_inputs(["a"], voyage, VectorForm(dimension=9), KIND, asks=True))


def test_lists_and_base64_are_read_alike_and_put_in_order() -> None:
    packed = base64.b64encode(np.array([3, 4], dtype="<f4").tobytes()).decode()
    vectors = read_vectors(_data(packed, [1, 2], indices=(1, 0)), 2, 2, "m")
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (_data([1, 2]), "1 vector for 2 texts"),
        (_data([1, 2], [1, 2], indices=(0, 0)), "2 vectors for 2 texts"),
        (_data([1, 2], [1, 2], indices=(0, 2)), "2 vectors for 2 texts"),
        (_data([1, 2], [1, 2, 3]), "vectors of 3 numbers where 2 were expected"),
        (_data([1, 2], "no base64!"), "vectors of 0 numbers where 2 were expected"),
        (_data([1, 2], None), "vectors of 0 numbers where 2 were expected"),
        (_data([1, 2], ["a", "b"]), "vectors of 0 numbers where 2 were expected"),
        (_data([1, 2], [1, float("nan")]), "vectors that are no numbers"),
        (_data([1, 2], [1, None]), "vectors that are no numbers"),
        (_data([1, 2], [1, 1e60]), "vectors that are no numbers"),
    ],
)
def test_what_was_not_asked_for_is_refused(said: Said, words: str) -> None:
    with pytest.raises(Overloaded, match=words) as caught:
        read_vectors(said, 2, 2, "m")
    assert caught.value.may_cost


def test_what_is_no_answer_is_a_fault() -> None:
    bodies: tuple[object, ...] = ({"error": "no"}, {"data": None}, [], None)
    for body in bodies:
        with pytest.raises(Fault):
            read_vectors(_said(body), 1, 2, "m")


def test_a_vector_of_any_length_is_taken_where_none_is_known() -> None:
    assert read_vectors(_data([1, 2, 3]), 1, 0, "m").shape == (1, 3)
    with pytest.raises(Overloaded, match="vectors of 0 numbers"):
        read_vectors(_data([]), 1, 0, "m")


def test_results_without_indices_stand_as_they_were_asked_for() -> None:
    assert in_order([None, None], 2) == [0, 1]
    assert in_order([2, 0, 1], 3) == [1, 2, 0]
    assert in_order([0, None], 2) is None
    assert in_order([], 1) is None


@pytest.mark.parametrize(
    ("body", "n_tokens"),
    [
        ({"usage": {"prompt_tokens": 5, "total_tokens": 6}}, 5),
        ({"usage": {"total_tokens": 6}}, 6),
        ({"meta": {"billed_units": {"input_tokens": 7}}}, 7),
    ],
)
def test_what_a_service_has_read_is_found(body: object, n_tokens: int) -> None:
    assert read_tokens(_said(body)) == TokenCount(input=n_tokens)
    assert read_tokens(_said({"data": []})) is None
    assert read_tokens(_said({"usage": {"prompt_tokens": 0}})) is None


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (413, "Payload too large", True),
        (422, "batch size 64 > maximum allowed batch size 32", True),
        (400, "'$.input' is invalid: array too long, expected at most 2048", True),
        (400, "at most 100 requests can be in one batch", True),
        (400, "This model's maximum context length is 8192 tokens", True),
        (429, "too many inputs", False),
        (400, "Unknown model", False),
    ],
)
def test_too_much_at_once_is_told_from_other_errors(status: int, message: str, expected: bool) -> None:
    assert is_too_much(_said({"error": {"message": message}}, status)) is expected


@pytest.mark.parametrize(
    ("message", "form"),
    [
        ("encoding_format 'base64' is not supported", VectorForm(is_base64=False, dimension=9)),
        ("This model does not support specifying dimensions.", VectorForm()),
        ("Model does not support matryoshka representation", VectorForm()),
        ("input_type: extra fields not permitted", VectorForm(dimension=9, has_input_kind=False)),
    ],
)
def test_what_a_server_rejects_by_name_is_left_out(message: str, form: VectorForm) -> None:
    said = _said({"error": {"message": message}}, 400)
    assert adapted(VectorForm(dimension=9), said, TARGET, KIND) == form
    assert adapted(form, said, TARGET, KIND) is None


def test_another_error_changes_nothing() -> None:
    assert adapted(VectorForm(), _said({"error": "no"}, 400), TARGET, KIND) is None
    assert adapted(VectorForm(), _said({"error": "base64"}, 500), TARGET, KIND) is None


def test_a_long_text_is_cut_evenly_at_spaces() -> None:
    text = "knots and cords " * 100
    pieces = windows(text, 4)
    assert len(pieces) == 4
    assert " ".join(pieces) == text.strip()
    assert max(map(len, pieces)) - min(map(len, pieces)) < 20
    assert windows("x" * 10, 2) == ["xxxxx", "xxxxx"]
    assert windows("x" + " " * 50, 3) == ["x"]
