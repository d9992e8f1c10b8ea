"""Work: what a model is used for, in words."""

from collections.abc import Sequence

from quipu.model.chat import Role

ALL_WORK = "all work"


def work_in_words(work: Sequence[str]) -> str:
    """Return the names of pieces of work with commas between, or that it is all a language model is used for."""
    if set(work) >= {role.value for role in Role}:
        return ", ".join([ALL_WORK, *(each for each in work if each not in list(Role))])
    return ", ".join(work)
