"""Sources: what each number leads to, a passage, or the passages that a point, a report or a claim rests on."""

from collections.abc import Mapping
from dataclasses import dataclass

from quipu.answer.accounts import chunks_of
from quipu.answer.material import Material
from quipu.answer.pack import Passage

MAX_QUOTABLE = 40  # chunks beneath accounts that quotes are looked for in, as many as passages fill a context


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a number leads to: passages of documents, the most telling first. What a report says of them is none."""

    passages: tuple[Passage, ...]


def sources_by_number(material: Material) -> Mapping[int, Source]:
    """Return the source of each number; a point, report or claim whose passages are not at hand has none."""
    sources = {passage.number: Source(passages=(passage,)) for passage in material.packed.passages}
    for account in material.packed.accounts:
        passages = tuple(
            Passage(number=account.number, chunk=material.basis[chunk])
            for chunk in account.chunks
            if chunk in material.basis
        )
        if passages:
            sources[account.number] = Source(passages=passages)
    return sources


def quotable_passages(material: Material) -> list[Passage]:
    """Return the passages to quote from: those packed, then those beneath accounts, the first of each first.

    Each chunk stands once, under the number of the first that rests on it.
    """
    packed = material.packed
    number_by_chunk: dict[str, int] = {}
    for account in packed.accounts:
        for chunk in account.chunks:
            number_by_chunk.setdefault(chunk, account.number)
    shown = {passage.chunk.id for passage in packed.passages}
    beneath = [chunk for chunk in chunks_of(packed.accounts, MAX_QUOTABLE) if chunk not in shown]
    return [
        *packed.passages,
        *(
            Passage(number=number_by_chunk[chunk], chunk=material.basis[chunk])
            for chunk in beneath
            if chunk in material.basis
        ),
    ]
