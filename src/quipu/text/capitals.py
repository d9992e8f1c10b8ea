"""Capitals: runs of capitalised words, which in scripts with case are often names; no model."""

from quipu.text.function_words import FUNCTION_WORDS
from quipu.text.words import Word, is_unspaced, split_words


def capital_runs(text: str) -> list[tuple[int, int]]:
    """Return the [start, end) span of each run of capitalised words that only joints separate, in order.

    Function words at the ends of a run are no part of it, so that "Which" of a question is none. Words of scripts
    without case are left out, and so is a text without small letters.
    """
    words = split_words(text)
    runs: list[list[int]] = []
    for place, word in enumerate(words):
        if not word.is_capital or is_unspaced(word.form) or not text[word.start].isalpha() or text == text.upper():
            continue
        if runs and runs[-1][-1] == place - 1 and word.is_joined:
            runs[-1].append(place)
        else:
            runs.append([place])
    trimmed = [_trimmed([words[place] for place in run]) for run in runs]
    return [(run[0].start, run[-1].end) for run in trimmed if run]


def _trimmed(run: list[Word]) -> list[Word]:
    while run and _is_function_word(run[0]):
        run = run[1:]
    while run and _is_function_word(run[-1]):
        run = run[:-1]
    return run


def _is_function_word(word: Word) -> bool:
    return word.form in FUNCTION_WORDS and not word.is_acronym
