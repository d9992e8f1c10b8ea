"""Jieba: splits Chinese text into words by dictionary, with the optional package rjieba."""

from collections.abc import Sequence
from importlib.metadata import version

from quipu.errors import Unavailable


class JiebaSegmenter:
    """A Segmenter that uses jieba's search mode, which also returns the words inside long words."""

    def __init__(self) -> None:
        try:
            import rjieba
        except ImportError as error:
            raise Unavailable(
                "The segmenter 'jieba' is not installed.", remedy="Run pip install 'quipu-rag[zh]'."
            ) from error
        self._cut = rjieba.cut_for_search

    @property
    def identity(self) -> str:
        """Name and version of the dictionary."""
        return f"jieba/{version('rjieba')}"

    def words(self, run: str) -> Sequence[str]:
        """Return the words of a run of Chinese characters, and the shorter words inside them."""
        return self._cut(run)
