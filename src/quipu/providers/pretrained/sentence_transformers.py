"""sentence-transformers: any model it loads, by name from its hub or from a folder."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.providers.pretrained.embedder import PretrainedEmbedder
from quipu.providers.pretrained.prefixes import prefixes_of

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"

_SAMPLED = 16  # numbers of each tensor that tell weights apart


def open_sentence_transformers(model: str = "") -> PretrainedEmbedder:
    """Load a model, from the hub unless it is a folder or was fetched before; NAME@REVISION pins a version.

    Takes seconds. Raises Unavailable where the library is not installed or the model cannot be loaded.
    """
    try:
        import sentence_transformers  # noqa: PLC0415 - optional driver
    except ImportError as error:
        raise Unavailable(
            "The embedder 'sentence-transformers' is not installed.",
            remedy="Run pip install 'quipu-rag[sentence-transformers]'.",
        ) from error
    name, _, revision = (model or DEFAULT).partition("@")
    path = Path(name).expanduser()
    try:
        loaded = sentence_transformers.SentenceTransformer(
            str(path) if path.is_dir() else name, revision=revision or None
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise Unavailable(
            f"sentence-transformers cannot load {name} ({_first_line(error)}).",
            remedy="Set embedder_model to a model of its hub, where there is a network, or to a folder with one.",
        ) from error
    return PretrainedEmbedder(_Encoder(loaded, path.name if path.is_dir() else name))


class _Encoder:
    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        own = getattr(model, "prompts", None) or {}  # the model's own word on prefixes comes first
        self._prefixes = prefixes_of("" if any(own.values()) else name)
        self.identity = f"sentence-transformers/{name}@{_fingerprint(model)}"

    def passages(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Embed what is searched."""
        return self._encoded(self._model.encode_document, self._prefixes.passage, texts)

    def queries(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Embed what is searched for."""
        return self._encoded(self._model.encode_query, self._prefixes.query, texts)

    def _encoded(self, encode: Any, prefix: str, texts: list[str]) -> npt.NDArray[np.float32]:
        prefixed = [prefix + text for text in texts]
        vectors = encode(prefixed, batch_size=1, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)


def _fingerprint(model: Any) -> str:
    """Return twelve digits that change with the weights: a name, or a folder, may hold others tomorrow."""
    digest = hashlib.sha256(str(model.max_seq_length).encode())
    for name, tensor in sorted(model.state_dict().items()):
        sample = tensor.flatten()[:_SAMPLED].float().cpu().numpy()
        digest.update(f"{name} {tuple(tensor.shape)} ".encode() + sample.tobytes())
    return digest.hexdigest()[:12]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
