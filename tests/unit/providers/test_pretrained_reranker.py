"""Cross-encoders that score passages in this process, with fakes of the libraries."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from quipu.errors import InvalidInput, Unavailable
from quipu.providers.pretrained import RERANKER_LIBRARIES, CrossEncoderReranker

LISTED = "BAAI/bge-reranker-base"
QUESTION = "Who knots quipus?"


def _outputs(question: str, texts: Iterable[str]) -> list[float]:
    """Return the number of words that each text shares with the question, minus one."""
    words = set(question.split())
    return [len(words & set(text.split())) - 1.0 for text in texts]


class _Source(NamedTuple):
    url: str


class TextCrossEncoder:
    """fastembed.rerank.cross_encoder.TextCrossEncoder."""

    known: list[str]
    n_loaded: int
    output = staticmethod(_outputs)

    def __init__(self, name: str, specific_model_path: str | None = None) -> None:
        if name not in self.known:
            raise ValueError(f"Model {name} is not supported")
        type(self).n_loaded += 1
        self.path = specific_model_path

    @classmethod
    def list_supported_models(cls) -> list[dict[str, object]]:
        return [{"model": name} for name in cls.known]

    @classmethod
    def add_custom_model(cls, *, model: str, sources: _Source, model_file: str) -> None:
        assert sources.url.endswith(model.partition("@")[0])
        assert model_file == "model.onnx"
        cls.known.append(model)

    def rerank(self, question: str, texts: Sequence[str]) -> Iterator[float]:
        return iter(self.output(question, texts))


class CrossEncoder:
    """sentence_transformers.CrossEncoder."""

    def __init__(self, name: str) -> None:
        if name not in (LISTED, "/models/own"):
            raise OSError(f"{name} is not a local folder and is not a valid model identifier")

    def predict(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        activation_fn: Callable[[list[float]], list[float]],
        show_progress_bar: bool,
    ) -> list[float]:
        assert not show_progress_bar
        return activation_fn([_outputs(question, [text])[0] for question, text in pairs])


@pytest.fixture(autouse=True)
def fastembed(monkeypatch: pytest.MonkeyPatch) -> type[TextCrossEncoder]:
    """Put fakes in place of the libraries, which are not installed."""

    class Fresh(TextCrossEncoder):
        known = [LISTED]  # noqa: RUF012 - the library keeps its list so
        n_loaded = 0

    names = ("fastembed", "fastembed.common", "fastembed.rerank", "fastembed.rerank.cross_encoder")
    modules = {name: ModuleType(name) for name in (*names, "sentence_transformers")}
    for name, module in modules.items():
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    description = ModuleType("model_description")
    description.ModelSource = _Source  # type: ignore[attr-defined]
    modules["fastembed.common"].model_description = description  # type: ignore[attr-defined]
    modules["fastembed.rerank.cross_encoder"].TextCrossEncoder = Fresh  # type: ignore[attr-defined]
    modules["sentence_transformers"].CrossEncoder = CrossEncoder  # type: ignore[attr-defined]
    return Fresh


@pytest.mark.parametrize("library", RERANKER_LIBRARIES)
async def test_scores_lie_between_0_and_1_and_keep_the_order_of_the_texts(library: str) -> None:
    reranker = CrossEncoderReranker(library, LISTED)
    scores = await reranker.score(QUESTION, ["Rain fell.", "Who knots cords?", *["Who rains?"] * 20])
    assert scores[:2] == pytest.approx([1 / (1 + np.e), 1 / (1 + np.exp(-1))], abs=1e-6)
    assert scores[2:] == [0.5] * 20
    assert await reranker.score(QUESTION, []) == []
    assert reranker.identity == f"{library}/{LISTED}"
    await reranker.aclose()


async def test_the_model_is_loaded_once_and_by_the_first_question(fastembed: type[TextCrossEncoder]) -> None:
    reranker = CrossEncoderReranker("fastembed", LISTED)
    assert fastembed.n_loaded == 0
    for _ in range(2):
        await reranker.score(QUESTION, ["Who?"])
    assert fastembed.n_loaded == 1


async def test_a_folder_with_a_model_can_be_named(fastembed: type[TextCrossEncoder], tmp_path: Path) -> None:
    reranker = CrossEncoderReranker("fastembed", str(tmp_path))
    with pytest.raises(Unavailable, match=r"has no onnx/model\.onnx and no model\.onnx"):
        await reranker.score(QUESTION, ["Who?"])
    (tmp_path / "model.onnx").write_bytes(b"weights")
    assert await reranker.score(QUESTION, ["Who?"]) == [pytest.approx(0.268941, abs=1e-6)]
    assert len(fastembed.known) == 2


async def test_a_model_that_does_not_exist_is_named_with_the_remedy() -> None:
    for library in RERANKER_LIBRARIES:
        with pytest.raises(Unavailable, match=r"cannot use the reranker no/such .*Set reranker to a model"):
            await CrossEncoderReranker(library, "no/such").score(QUESTION, ["Who?"])


@pytest.mark.parametrize("outputs", [[float("nan")], [1.0, 2.0]])
async def test_a_model_with_other_outputs_is_refused(
    fastembed: type[TextCrossEncoder], outputs: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastembed, "output", staticmethod(lambda _question, _texts: outputs))
    with pytest.raises(Unavailable, match="did not return one finite number for each text"):
        await CrossEncoderReranker("fastembed", LISTED).score(QUESTION, ["Who?"])


def test_a_missing_library_and_a_missing_model_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="names no model"):
        CrossEncoderReranker("fastembed", "")
    monkeypatch.delitem(sys.modules, "fastembed")
    with pytest.raises(Unavailable, match=r"pip install 'quipu-rag\[fastembed\]'"):
        CrossEncoderReranker("fastembed", LISTED)
