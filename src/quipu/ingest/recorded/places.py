"""Places: which chunks of a document have a name, or the words of a quote, in them."""

import re
from collections.abc import Sequence
from functools import lru_cache

from quipu.text.unicode import UNSPACED

_RUN = re.compile(r"\w+")
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")


class Places:
    """Texts by the words in them, so that a name is looked for only where its rarest word stands.

    A place is the index of a text. Case and, in quotes, spacing do not matter.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._folded = [text.casefold() for text in texts]
        self._spaced = [" ".join(text.split()) for text in self._folded]
        self._by_run: dict[str, list[int]] = {}
        for place, text in enumerate(self._folded):
            for run in set(_RUN.findall(text)):
                self._by_run.setdefault(run, []).append(place)
        self._by_name: dict[str, tuple[int, ...]] = {}

    def of(self, name: str) -> tuple[int, ...]:
        """Return the places, in order, of the texts that have a name in them, not within other words."""
        if name not in self._by_name:
            pattern = pattern_of(name)
            self._by_name[name] = tuple(
                place for place in self._having(_whole_runs(name.casefold())) if pattern.search(self._folded[place])
            )
        return self._by_name[name]

    def first_naming(self, ends: Sequence[str]) -> int:
        """Return the place of the first text that names all ends but "", else of the first that names one, else 0."""
        places = [set(self.of(end)) for end in ends if end]
        if not places:
            return 0
        return min(set.intersection(*places) or set.union(*places), default=0)

    def first_quoting(self, quote: str) -> int | None:
        """Return the place of the first text with these words, however they are spaced, None where there is none."""
        folded = " ".join(quote.casefold().split())
        inner = _RUN.findall(folded)[1:-1]  # a quote may begin and end within a word
        return next((place for place in self._having(inner) if folded and folded in self._spaced[place]), None)

    def _having(self, runs: Sequence[str]) -> Sequence[int]:
        """Return the places of the texts that may have all of these runs of letters and digits."""
        return min((self._by_run.get(run, ()) for run in runs), key=len, default=range(len(self._folded)))


@lru_cache(maxsize=16_384)
def pattern_of(name: str) -> re.Pattern[str]:
    """Return what finds a name in a casefolded text; in writing without spaces it has no bounds."""
    folded = name.casefold()
    before = "" if _UNSPACED_CHARACTER.match(folded[:1]) else r"(?<!\w)"
    after = "" if _UNSPACED_CHARACTER.match(folded[-1:]) else r"(?!\w)"
    return re.compile(f"{before}{re.escape(folded)}{after}")


def _whole_runs(folded: str) -> list[str]:
    """Return the runs of letters and digits that a text with this name has as they are, not as part of longer ones."""
    runs = _RUN.findall(folded)
    start = 1 if _UNSPACED_CHARACTER.match(folded[:1]) else 0
    end = len(runs) - 1 if _UNSPACED_CHARACTER.match(folded[-1:]) else len(runs)
    return runs[start:end]
