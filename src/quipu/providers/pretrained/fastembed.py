"""fastembed: the models it lists, by name, or a model in ONNX format from a folder."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.providers.pretrained.embedder import PretrainedEmbedder
from quipu.providers.pretrained.prefixes import prefixes_of

DEFAULT = "BAAI/bge-small-en-v1.5"

_MODEL_FILES = ("onnx/model.onnx", "model.onnx")
_SAMPLED_BYTES = 65_536


def open_fastembed(model: str = "") -> PretrainedEmbedder:
    """Load a model: one that fastembed lists, which it fetches once, or a folder with model.onnx and its tokenizer.

    Takes a second. Raises Unavailable where the library is not installed or the model cannot be loaded.
    """
    try:
        import fastembed  # noqa: PLC0415 - optional driver
        from fastembed.common import model_description as description  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable(
            "The embedder 'fastembed' is not installed.", remedy="Run pip install 'quipu-rag[fastembed]'."
        ) from error
    name = model or DEFAULT
    folder = Path(name).expanduser()
    try:
        if folder.is_dir():
            name = _register(folder, fastembed.TextEmbedding, description)
            loaded = fastembed.TextEmbedding(name, specific_model_path=str(folder))
        else:
            loaded = fastembed.TextEmbedding(name)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        problem = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise Unavailable(
            f"fastembed cannot load {model or DEFAULT} ({problem}).",
            remedy="Set embedder_model to a model it lists, where there is a network, or to a folder with model.onnx.",
        ) from error
    return PretrainedEmbedder(_Encoder(loaded, name))


class _Encoder:
    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self._prefixes = prefixes_of(name)
        self.identity = f"fastembed/{name}"

    def passages(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Embed what is searched."""
        return self._encoded(self._model.passage_embed, self._prefixes.passage, texts)

    def queries(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Embed what is searched for."""
        return self._encoded(self._model.query_embed, self._prefixes.query, texts)

    def _encoded(self, embed: Any, prefix: str, texts: list[str]) -> npt.NDArray[np.float32]:
        return np.asarray(list(embed([prefix + text for text in texts], batch_size=1)), dtype=np.float32)


def _register(folder: Path, library: Any, description: Any) -> str:
    """Tell fastembed of the model in a folder, with the pooling its files name; return the name it then has."""
    file = next((each for each in _MODEL_FILES if (folder / each).is_file()), None)
    if file is None:
        raise ValueError(f"{folder} has no {' and no '.join(_MODEL_FILES)}")
    name = f"{folder.name}@{_fingerprint(folder / file)}"
    if name not in {each["model"] for each in library.list_supported_models()}:
        pooling = _read_json(folder / "1_Pooling/config.json")
        library.add_custom_model(
            model=name,
            pooling=getattr(description.PoolingType, "CLS" if pooling.get("pooling_mode_cls_token") else "MEAN"),
            normalization=True,
            sources=description.ModelSource(url=folder.absolute().as_uri()),
            dim=int(str(_read_json(folder / "config.json").get("hidden_size", 0))),
            model_file=file,
        )
    return name


def _read_json(path: Path) -> dict[str, object]:
    parsed: object = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return parsed if isinstance(parsed, dict) else {}


def _fingerprint(path: Path) -> str:
    """Return twelve digits that change with the weights: of the start, middle and end of model.onnx and its data."""
    digest = hashlib.sha256()
    for each in sorted(path.parent.glob(f"{path.name}*")):
        size = each.stat().st_size
        digest.update(f"{each.name} {size} ".encode())
        with each.open("rb") as file:
            for start in (0, size // 2, max(0, size - _SAMPLED_BYTES)):
                file.seek(start)
                digest.update(file.read(_SAMPLED_BYTES))
    return digest.hexdigest()[:12]
