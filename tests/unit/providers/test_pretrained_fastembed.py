"""The adapter of fastembed, with a fake of the library."""

import json
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from quipu.errors import Unavailable
from quipu.providers.pretrained import open_fastembed
from tests.unit.providers.pretrained_fakes import TextEmbedding

LISTED = ["BAAI/bge-small-en-v1.5", "intfloat/multilingual-e5-large"]


class _Pooling(Enum):
    CLS = "CLS"
    MEAN = "MEAN"


class _Source(NamedTuple):
    url: str


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> type[TextEmbedding]:
    """Put a fake in place of the library that is not installed."""

    class Fresh(TextEmbedding):
        known = [{"model": name} for name in LISTED]  # noqa: RUF012 - the library keeps its list so
        batch_sizes: list[int] = []  # noqa: RUF012

    fastembed, common, description = map(ModuleType, ("fastembed", "common", "model_description"))
    fastembed.TextEmbedding = Fresh  # type: ignore[attr-defined]
    common.model_description = description  # type: ignore[attr-defined]
    description.PoolingType = _Pooling  # type: ignore[attr-defined]
    description.ModelSource = _Source  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", fastembed)
    monkeypatch.setitem(sys.modules, "fastembed.common", common)
    return Fresh


def _write_model(folder: Path, *, weights: bytes = b"weights", pooling: str = "cls") -> Path:
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    (folder / "onnx/model.onnx").write_bytes(weights)
    (folder / "config.json").write_text(json.dumps({"hidden_size": 3}))
    (folder / "1_Pooling/config.json").write_text(json.dumps({f"pooling_mode_{pooling}_token": True}))
    return folder


async def test_a_listed_model_is_asked_for_one_text_at_a_time(library: type[TextEmbedding]) -> None:
    embedder = open_fastembed("")
    assert embedder.identity == "fastembed/BAAI/bge-small-en-v1.5/1"
    assert (await embedder.embed(["a", "bb"])).shape == (2, 3)
    await embedder.embed_queries(["c", "d"])
    assert set(library.batch_sizes) == {1}


async def test_questions_of_e5_are_told_from_passages() -> None:
    embedder = open_fastembed("intfloat/multilingual-e5-large")
    passage, question = await embedder.embed(["knots"]), await embedder.embed_queries(["knots"])
    plain = await open_fastembed("").embed(["passage: knots", "query: knots"])
    assert [passage[0].tolist(), question[0].tolist()] == plain.tolist()


def test_a_folder_is_registered_with_its_own_pooling_and_once(library: type[TextEmbedding], tmp_path: Path) -> None:
    folder = _write_model(tmp_path / "tuned")
    first, again = open_fastembed(str(folder)), open_fastembed(str(folder))
    assert first.identity == again.identity
    assert first.identity.startswith("fastembed/tuned@")
    (added,) = library.known[len(LISTED) :]
    assert (added["pooling"], added["dim"], added["model_file"]) == (_Pooling.CLS, 3, "onnx/model.onnx")


def test_other_weights_are_another_model(library: type[TextEmbedding], tmp_path: Path) -> None:
    first = open_fastembed(str(_write_model(tmp_path / "a/tuned", weights=b"first")))
    second = open_fastembed(str(_write_model(tmp_path / "b/tuned", weights=b"other", pooling="mean")))
    assert first.identity != second.identity
    assert library.known[-1]["pooling"] is _Pooling.MEAN


def test_weights_beside_the_graph_count_too(tmp_path: Path) -> None:
    first, second = _write_model(tmp_path / "a/tuned"), _write_model(tmp_path / "b/tuned")
    for folder, data in ((first, b"first"), (second, b"other")):
        (folder / "onnx/model.onnx_data").write_bytes(data)
    assert open_fastembed(str(first)).identity != open_fastembed(str(second)).identity


def test_a_model_that_is_not_listed_is_refused() -> None:
    with pytest.raises(Unavailable, match=r"cannot load no/model \(Model no/model is not supported\)"):
        open_fastembed("no/model")


def test_a_folder_without_a_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"has no onnx/model\.onnx and no model\.onnx"):
        open_fastembed(str(tmp_path))


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(Unavailable, match=r"pip install 'quipu-rag\[fastembed\]'"):
        open_fastembed("")
