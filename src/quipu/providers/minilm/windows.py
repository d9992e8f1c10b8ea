"""Windows: a text of any length as runs of tokens the model can read."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from quipu.errors import Unavailable
from quipu.providers.minilm.files import REMEDY

MAX_WINDOW = 256  # tokens, its two marks among them: what the model was trained on

_MAX_BYTES = 131_072  # more than a chunk may have; the rest of a longer text is not read
_MARKS = ("[CLS]", "[SEP]")


class Windows:
    """Cuts texts into windows of equal length, at most MAX_WINDOW tokens each."""

    def __init__(self, path: Path, *, n_tokens: int) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise Unavailable(f"{path} is not a tokenizer: {error}.", remedy=REMEDY) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        first, last = map(self._tokenizer.token_to_id, _MARKS)
        if first is None or last is None or self._tokenizer.get_vocab_size() != n_tokens:
            raise Unavailable(f"{path} is not the tokenizer of all-MiniLM-L6-v2.", remedy=REMEDY)
        self._first, self._last = first, last

    def of(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Return the windows of each text as token ids; none for a text without tokens."""
        encodings = self._tokenizer.encode_batch_fast([_readable(text) for text in texts], add_special_tokens=False)
        return [self._windows(encoding) for encoding in encodings]

    def _windows(self, encoding: Any) -> list[list[int]]:
        """Cut evenly, so that no window is a short rest whose few words would weigh as much as a full one's."""
        ids: list[int] = encoding.ids
        n_windows = -(-len(ids) // (MAX_WINDOW - len(_MARKS)))
        cuts = [len(ids) * window // n_windows for window in range(n_windows)] + [len(ids)]
        return [[self._first, *ids[begin:end], self._last] for begin, end in pairwise(cuts)]


def _readable(text: str) -> str:
    """Return what is read of `text`; the tokenizer refuses lone surrogates."""
    return text[:_MAX_BYTES].encode("utf-8", "replace")[:_MAX_BYTES].decode("utf-8", "ignore")
