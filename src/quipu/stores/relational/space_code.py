"""Space codes: how a space is written in a row."""

from sqlalchemy import Text, TypeDecorator

from quipu.ports.store import VectorSpace

SPACE_CODES = {
    VectorSpace.CHUNK: "c",
    VectorSpace.ENTITY: "e",
    VectorSpace.RELATION: "r",
    VectorSpace.NAME: "n",
    VectorSpace.SENTENCE: "s",
    VectorSpace.REPORT: "p",
}
_SPACE_BY_CODE = {code: space for space, code in SPACE_CODES.items()}


class SpaceCode(TypeDecorator[VectorSpace]):
    """A space as one letter: then five vectors of 384 dimensions fit a page, where there were four."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: VectorSpace | None, dialect: object) -> str | None:
        """Return the letter of a space."""
        return None if value is None else SPACE_CODES[value]

    def process_result_value(self, value: str | None, dialect: object) -> VectorSpace | None:
        """Return the space of a letter, None for one that stands for none."""
        return _SPACE_BY_CODE.get(value or "")
