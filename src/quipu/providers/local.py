"""Local provider: token counters and an embedder that need no server and no key."""

import asyncio
import importlib.util
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from quipu.algo.similarity import unit_vectors, widen
from quipu.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from quipu.ports.providers import Tokenizer as TokenCounter

_WEIGHTS = Path("weights/l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers/l2_supercat_tokenizer_config.json")
_TENSOR = "embedding.weight"
_REMEDY = "pip install wordllama"
BYTES = "bytes"
_TIKTOKEN = "tiktoken/"

_MAX_PIECE_CHARS = 16_384  # a longer text is split, because the tokenizer's memory grows with its longest input
_MAX_BATCH_CHARS = 65_536  # characters tokenized at once, which takes about 15 MB
_MAX_POOL_TOKENS = 4_096  # token rows widened at once
_THREAD_CHARS = 32_768  # about 10 ms of work


class ByteTokenizer:
    """Counts one token per four bytes of UTF-8: close to GPT tokenizers for English, higher for other languages."""

    @property
    def identity(self) -> str:
        return "bytes/4"

    def count(self, text: str) -> int:
        """Return ceil(bytes / 4), which is 0 only for the empty text."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def open_tokenizer(name: str) -> "TokenCounter":
    """Return what counts tokens: `bytes`, the path of a `tokenizer.json` (Hugging Face), or `tiktoken/NAME`.

    NAME is an encoding of tiktoken, which downloads it once. Raises InvalidInput for a file that cannot be read and for
    an unknown name, Unavailable if tiktoken is not installed or cannot load the encoding.
    """
    if name == BYTES:
        return ByteTokenizer()
    if name.startswith(_TIKTOKEN):
        return _TiktokenTokenizer(name.removeprefix(_TIKTOKEN))
    path = Path(name).expanduser()
    try:
        return _FileTokenizer(path)
    except Exception as error:  # the library raises Exception itself
        raise InvalidInput(
            f"tokenizer = {name!r}: {path} is no tokenizer.json that can be read ({error}).",
            remedy='Give the path of a tokenizer.json, "tiktoken/o200k_base" or "bytes".',
        ) from error


class _FileTokenizer:
    """Counts with a tokenizer of Hugging Face from its file, without the tokens that frame a text."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.identity = str(path)

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return len(self._tokenizer.encode(_without_surrogates(text), add_special_tokens=False))


class _TiktokenTokenizer:
    """Counts with an encoding of tiktoken; special tokens in a text are counted as text."""

    def __init__(self, name: str) -> None:
        try:
            import tiktoken
        except ImportError as error:
            raise Unavailable("tiktoken is not installed.", remedy="Run pip install 'quipu-rag[tiktoken]'.") from error
        names = tiktoken.list_encoding_names()
        if name not in names:
            raise InvalidInput(
                f"tokenizer: tiktoken has no encoding {name!r}.", remedy=f"Choose one of: {', '.join(names)}."
            )
        try:
            self._encoding = tiktoken.get_encoding(name)
        except Exception as error:  # of several libraries for the network
            raise Unavailable(
                f"tiktoken cannot load the encoding {name} ({error}).",
                remedy='It is downloaded once; without a network use a tokenizer.json or "bytes".',
            ) from error
        self.identity = f"{_TIKTOKEN}{name}"

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return len(self._encoding.encode_ordinary(_without_surrogates(text)))


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class WordLlamaEmbedder:
    """Embeds a text as the mean of static token vectors, with the weights inside the `wordllama` wheel.

    The files are read directly, because importing the package configures logging and takes a quarter of a second.
    Token vectors are float16, so their sum in float64 is exact in any order (2^-24 resolution, |x| <= 8, below 2^26
    tokens). Therefore a vector depends only on its text, to the bit. Source: L. Miller, WordLlama (2024),
    `l2_supercat_256`.
    """

    def __init__(self) -> None:
        self._model: _WordLlama | None = None

    @property
    def identity(self) -> str:
        """Model and version of the pooling."""
        return "wordllama/l2_supercat_256/1"

    @property
    def dimension(self) -> int:
        return 256

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector per text, [n, 256]; zeros for a text without tokens.

        The first call loads the model (about 0.1 s). Raises Unavailable if the package is missing.
        """
        if self._model is None or sum(map(len, texts)) > _THREAD_CHARS:
            return await asyncio.to_thread(self._embed, texts)
        return self._embed(texts)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the same as `embed`: the model does not distinguish questions from passages."""
        return await self.embed(texts)

    def _embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self._model is None:
            self._model = _WordLlama(_package_folder())
        return unit_vectors(self._model.token_sums(texts)).astype(np.float32)


class _WordLlama:
    """The tokenizer, and the token vectors as a float16 memory map of the weights file, [vocabulary, dimension]."""

    def __init__(self, folder: Path) -> None:
        missing = [str(path) for path in (_WEIGHTS, _TOKENIZER) if not (folder / path).is_file()]
        if missing:
            raise Unavailable(f"The wordllama package in {folder} lacks {' and '.join(missing)}.", remedy=_REMEDY)
        self._vectors = _map_tensor(folder / _WEIGHTS)
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # Its cache would hold whole texts, as it does not split at spaces: 60 MB, and a fifth of the time.
        self._tokenizer.model._resize_cache(0)

    def token_sums(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the sum of the token vectors of each text, [n, dimension]."""
        sums = np.zeros((len(texts), self._vectors.shape[1]), dtype=np.float64)
        for batch in _batches(texts):
            encodings = self._tokenizer.encode_batch_fast([piece for _, piece in batch], add_special_tokens=False)
            for (index, _), encoding in zip(batch, encodings, strict=True):
                for start in range(0, len(encoding.ids), _MAX_POOL_TOKENS):
                    tokens = widen(self._vectors[encoding.ids[start : start + _MAX_POOL_TOKENS]])
                    sums[index] += tokens.sum(axis=0, dtype=np.float64)
        return sums


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("The local embedder needs the wordllama package.", remedy=_REMEDY)
    return Path(spec.submodule_search_locations[0])


def _map_tensor(path: Path) -> npt.NDArray[np.float16]:
    """Map the float16 matrix of a safetensors file: 8 bytes of header length, a JSON header, and the data."""
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        tensor = json.loads(file.read(header_bytes))[_TENSOR]
    if tensor["dtype"] != "F16":
        raise ValueError(f"{_TENSOR} is {tensor['dtype']}, not F16")
    offset = 8 + header_bytes + tensor["data_offsets"][0]
    return np.memmap(path, dtype=np.float16, mode="r", offset=offset, shape=tuple(tensor["shape"]))


def _batches(texts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield the pieces of all texts, each with the index of its text, in batches of limited size."""
    pieces = ((index, piece) for index, text in enumerate(texts) for piece in _pieces(text))
    batch: list[tuple[int, str]] = []
    n_chars = 0
    for index, piece in pieces:
        batch.append((index, piece))
        n_chars += len(piece)
        if n_chars >= _MAX_BATCH_CHARS:
            yield batch
            batch, n_chars = [], 0
    if batch:
        yield batch


def _pieces(text: str) -> Iterator[str]:
    """Split a long text at spaces. No token crosses a space, so the tokens do not change."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # the tokenizer rejects lone surrogates
    start = 0
    while len(text) - start > _MAX_PIECE_CHARS:
        end = start + _MAX_PIECE_CHARS
        space = text.rfind(" ", start + 1, end)
        yield text[start : space if space > 0 else end]
        start = space + 1 if space > 0 else end
    yield text[start:]
