"""Pretrained models run by optional libraries, sentence-transformers and fastembed: embedders and rerankers."""

import asyncio
import hashlib
import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import unit_vectors
from quipu.errors import InvalidInput, Unavailable

SENTENCE_TRANSFORMERS_DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
FASTEMBED_DEFAULT = "BAAI/bge-small-en-v1.5"

RERANKER_LIBRARIES = ("fastembed", "sentence-transformers")

_PROBE = "Quipus are records kept in knotted cords."
_TEXTS_PER_CALL = 32  # between two calls of the library the work can be cancelled
_PAIRS_PER_CALL = 8  # of a question and a passage
_SAMPLED_NUMBERS = 16  # of each tensor, for a fingerprint
_SAMPLED_BYTES = 65_536  # at three places of each file, for a fingerprint
_ONNX_FILES = ("onnx/model.onnx", "model.onnx")
_E5 = re.compile(r"(?:^|[/_-])e5(?:[_-]|$)", re.IGNORECASE)

Floats = npt.NDArray[np.float32]


def open_sentence_transformers(model: str = "") -> "PretrainedEmbedder":
    """Load a model from a folder, or by name from the hub or its local copy. NAME@REVISION selects a version.

    Takes seconds. Raises Unavailable if the library is not installed or the model cannot be loaded.
    """
    try:
        import sentence_transformers
    except ImportError as error:
        raise Unavailable(
            "The embedder 'sentence-transformers' is not installed.",
            remedy="Run pip install 'quipu-rag[sentence-transformers]'.",
        ) from error
    name, _, revision = (model or SENTENCE_TRANSFORMERS_DEFAULT).partition("@")
    path = Path(name).expanduser()
    try:
        loaded = sentence_transformers.SentenceTransformer(
            str(path) if path.is_dir() else name, revision=revision or None
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise Unavailable(
            f"sentence-transformers cannot load {name} ({_first_line(error)}).",
            remedy="Set embedder_model to a model of its hub, if there is a network, or to a folder with a model.",
        ) from error
    return PretrainedEmbedder(_SentenceTransformersModel(loaded, path.name if path.is_dir() else name))


def open_fastembed(model: str = "") -> "PretrainedEmbedder":
    """Load a model that fastembed lists (it downloads it once), or a folder with model.onnx and its tokenizer.

    Takes a second. Raises Unavailable if the library is not installed or the model cannot be loaded.
    """
    try:
        import fastembed
        from fastembed.common import model_description as description
    except ImportError as error:
        raise Unavailable(
            "The embedder 'fastembed' is not installed.", remedy="Run pip install 'quipu-rag[fastembed]'."
        ) from error
    name = model or FASTEMBED_DEFAULT
    folder = Path(name).expanduser()
    try:
        if folder.is_dir():
            name = _register_folder(folder, fastembed.TextEmbedding, description)
            loaded = fastembed.TextEmbedding(name, specific_model_path=str(folder))
        else:
            loaded = fastembed.TextEmbedding(name)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise Unavailable(
            f"fastembed cannot load {model or FASTEMBED_DEFAULT} ({_first_line(error)}).",
            remedy="Set embedder_model to a model it lists, if there is a network, or to a folder with model.onnx.",
        ) from error
    return PretrainedEmbedder(_FastembedModel(loaded, name))


class CrossEncoderReranker:
    """Scores passages with a cross-encoder in this process, from 0 to 1: the logistic function of the model's output.

    The model is a folder, or a name of the library's hub or of its local copy. It is loaded by the first question, in
    seconds. Raises Unavailable if the library is not installed, InvalidInput if no model is named.
    """

    def __init__(self, library: str, model: str) -> None:
        if not model:
            raise InvalidInput(
                f"The reranker '{library}/' names no model.",
                remedy=f'Name a folder or a model of the library, as in "{library}/BAAI/bge-reranker-base".',
            )
        if importlib.util.find_spec(library.replace("-", "_")) is None:
            raise Unavailable(
                f"The reranker {library}/{model} needs {library}, which is not installed.",
                remedy=f"Run pip install 'quipu-rag[{library}]'.",
            )
        self.identity = f"{library}/{model}"
        self._library = library
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reranker")
        self._score_pairs: Callable[[str, list[str]], Floats] | None = None  # set by the thread

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text, from 0 to 1; higher is better. Raises Unavailable if the model cannot be used."""
        scores: list[float] = []
        for start in range(0, len(texts), _PAIRS_PER_CALL):
            batch = [text.encode("utf-8", "replace").decode("utf-8") for text in texts[start : start + _PAIRS_PER_CALL]]
            outputs = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, question, batch)
            scores += (1 / (1 + np.exp(-np.clip(outputs, -50, 50)))).round(6).tolist()
        return scores

    async def aclose(self) -> None:
        """Stop the thread of the model."""
        self._thread.shutdown(wait=False)

    def _run(self, question: str, texts: list[str]) -> npt.NDArray[np.float64]:
        try:
            if self._score_pairs is None:
                load = _load_fastembed_reranker if self._library == "fastembed" else _load_cross_encoder
                self._score_pairs = load(self._model)
            outputs = np.asarray(self._score_pairs(question, texts), dtype=np.float64)
        except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
            raise Unavailable(
                f"{self._library} cannot use the reranker {self._model} ({_first_line(error)}).",
                remedy="Set reranker to a model of the library, if there is a network, or to a folder with a model.",
            ) from error
        if outputs.shape != (len(texts),) or not np.isfinite(outputs).all():
            raise Unavailable(
                f"The reranker {self.identity} did not return one finite number for each text.",
                remedy="Is it a cross-encoder with one output? Check the files of the model.",
            )
        return outputs


def _load_fastembed_reranker(model: str) -> Callable[[str, list[str]], Floats]:
    from fastembed.common import model_description
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    folder = Path(model).expanduser()
    if folder.is_dir():
        name = _register_reranker_folder(folder, TextCrossEncoder, model_description)
        loaded = TextCrossEncoder(name, specific_model_path=str(folder))
    else:
        loaded = TextCrossEncoder(model)
    return lambda question, texts: np.array(list(loaded.rerank(question, texts)), dtype=np.float32)


def _load_cross_encoder(model: str) -> Callable[[str, list[str]], Floats]:
    from sentence_transformers import CrossEncoder

    folder = Path(model).expanduser()
    loaded = CrossEncoder(str(folder) if folder.is_dir() else model)

    def score(question: str, texts: list[str]) -> Floats:
        pairs = [(question, text) for text in texts]
        outputs = loaded.predict(pairs, activation_fn=lambda logits: logits, show_progress_bar=False)
        return np.asarray(outputs, dtype=np.float32)

    return score


class EmbeddingLibraryModel(Protocol):
    """A model loaded by a library. It returns one vector per text, [n, d], each computed on its own."""

    @property
    def identity(self) -> str:
        """Library, model, and a fingerprint of the weights."""

    def passages(self, texts: list[str]) -> Floats:
        """Embed passages."""

    def queries(self, texts: list[str]) -> Floats:
        """Embed questions, as a model that distinguishes them expects it."""


class PretrainedEmbedder:
    """Embeds with a model of another library, one text at a time.

    In a batch texts are padded to one length, which changes the last bits of their vectors. An index must not depend on
    which texts were embedded together. The library cuts a text that is longer than the model reads.
    """

    def __init__(self, model: EmbeddingLibraryModel) -> None:
        self._model = model
        self._dimension = int(model.passages([_PROBE]).shape[1])
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")  # tokenizers allow one caller at a time

    @property
    def identity(self) -> str:
        """Library, model, fingerprint, and version of the use here."""
        return f"{self._model.identity}/1"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector per passage, [n, dimension]; zeros for a blank text."""
        return await self._run_in_thread(self._model.passages, texts)

    async def embed_queries(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector per question, [n, dimension]; zeros for a blank text."""
        return await self._run_in_thread(self._model.queries, texts)

    async def _run_in_thread(self, encode: Callable[[list[str]], Floats], texts: Sequence[str]) -> Floats:
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        present = [index for index, text in enumerate(texts) if text.strip()]
        for start in range(0, len(present), _TEXTS_PER_CALL):
            rows = present[start : start + _TEXTS_PER_CALL]
            readable = [texts[row].encode("utf-8", "replace").decode("utf-8") for row in rows]
            encoded = await asyncio.get_running_loop().run_in_executor(self._thread, encode, readable)
            if not np.isfinite(encoded).all():
                raise Unavailable(
                    f"The model {self.identity} returned vectors that are not finite numbers.",
                    remedy="Check the files of the model.",
                )
            vectors[rows] = unit_vectors(encoded)
        return vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """The words a model expects before a question and before a passage."""

    query: str = ""
    passage: str = ""


def prefixes_of(model: str) -> Prefixes:
    """Return the prefixes of a model, by its name: the E5 family was trained with them (Wang et al. 2022)."""
    return Prefixes(query="query: ", passage="passage: ") if _E5.search(model) else Prefixes()


class _SentenceTransformersModel:
    """A model of sentence-transformers. If it defines its own prompts, no prefixes are added."""

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        prompts = getattr(model, "prompts", None) or {}
        self._prefixes = prefixes_of("" if any(prompts.values()) else name)
        self.identity = f"sentence-transformers/{name}@{_tensor_fingerprint(model)}"

    def passages(self, texts: list[str]) -> Floats:
        """Embed passages."""
        return self._encode(self._model.encode_document, self._prefixes.passage, texts)

    def queries(self, texts: list[str]) -> Floats:
        """Embed questions."""
        return self._encode(self._model.encode_query, self._prefixes.query, texts)

    def _encode(self, encode: Any, prefix: str, texts: list[str]) -> Floats:
        prefixed = [prefix + text for text in texts]
        vectors = encode(prefixed, batch_size=1, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)


class _FastembedModel:
    """A model of fastembed."""

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self._prefixes = prefixes_of(name)
        self.identity = f"fastembed/{name}"

    def passages(self, texts: list[str]) -> Floats:
        """Embed passages."""
        return self._encode(self._model.passage_embed, self._prefixes.passage, texts)

    def queries(self, texts: list[str]) -> Floats:
        """Embed questions."""
        return self._encode(self._model.query_embed, self._prefixes.query, texts)

    def _encode(self, encode: Any, prefix: str, texts: list[str]) -> Floats:
        return np.asarray(list(encode([prefix + text for text in texts], batch_size=1)), dtype=np.float32)


def _register_folder(folder: Path, library: Any, description: Any) -> str:
    """Register the model in a folder with fastembed, with the pooling its files name; return its name there."""
    onnx_file = _onnx_file(folder)
    name = f"{folder.name}@{_file_fingerprint(folder / onnx_file)}"
    if name not in {model["model"] for model in library.list_supported_models()}:
        pooling = _read_json(folder / "1_Pooling/config.json")
        library.add_custom_model(
            model=name,
            pooling=getattr(description.PoolingType, "CLS" if pooling.get("pooling_mode_cls_token") else "MEAN"),
            normalization=True,
            sources=description.ModelSource(url=folder.absolute().as_uri()),
            dim=int(str(_read_json(folder / "config.json").get("hidden_size", 0))),
            model_file=onnx_file,
        )
    return name


def _register_reranker_folder(folder: Path, library: Any, description: Any) -> str:
    """Register the cross-encoder in a folder with fastembed; return its name there."""
    onnx_file = _onnx_file(folder)
    name = f"{folder.name}@{_file_fingerprint(folder / onnx_file)}"
    if name not in {model["model"] for model in library.list_supported_models()}:
        source = description.ModelSource(url=folder.absolute().as_uri())
        library.add_custom_model(model=name, sources=source, model_file=onnx_file)
    return name


def _onnx_file(folder: Path) -> str:
    onnx_file = next((path for path in _ONNX_FILES if (folder / path).is_file()), None)
    if onnx_file is None:
        raise ValueError(f"{folder} has no {' and no '.join(_ONNX_FILES)}")
    return onnx_file


def _read_json(path: Path) -> dict[str, object]:
    parsed: object = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return parsed if isinstance(parsed, dict) else {}


def _tensor_fingerprint(model: Any) -> str:
    """Return twelve digits that change with the weights: the same name may stand for other weights later."""
    digest = hashlib.sha256(str(model.max_seq_length).encode())
    for name, tensor in sorted(model.state_dict().items()):
        sample = tensor.flatten()[:_SAMPLED_NUMBERS].float().cpu().numpy()
        digest.update(f"{name} {tuple(tensor.shape)} ".encode() + sample.tobytes())
    return digest.hexdigest()[:12]


def _file_fingerprint(path: Path) -> str:
    """Return twelve digits that change with the weights, from start, middle and end of each file of the model."""
    digest = hashlib.sha256()
    for part in sorted(path.parent.glob(f"{path.name}*")):
        size = part.stat().st_size
        digest.update(f"{part.name} {size} ".encode())
        with part.open("rb") as content:
            for start in (0, size // 2, max(0, size - _SAMPLED_BYTES)):
                content.seek(start)
                digest.update(content.read(_SAMPLED_BYTES))
    return digest.hexdigest()[:12]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
