"""The examples of an ontology file: what one may hold, and whether its text bears it out."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from quipu.errors import InvalidInput
from quipu.ingest.llm.grounds import Grounds
from quipu.model.extraction import ChunkInput, ExtractedEntity, ExtractedRelation, ExtractionExample
from quipu.text.names import entity_key

MAX_EXAMPLES = 3
MAX_TEXT = 1_000  # characters: each request holds it
MAX_RECORDS = 20  # of each kind in an example


def _as_line(text: str) -> str:
    """Return a text on one line: a record is one line of a reply."""
    return " ".join(text.split())


Line = Annotated[str, AfterValidator(_as_line)]
Name = Annotated[str, AfterValidator(_as_line), Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: Line = ""


class EntityPart(_Part):
    """An entity as it stands in the file."""

    name: Name
    type: Name


class RelationPart(_Part):
    """A relation as it stands in the file; keywords may be a list, or one text with commas."""

    source: Name
    target: Name
    keywords: list[Name] = []
    strength: float = Field(5, ge=1, le=10)

    @field_validator("keywords", mode="before")
    @classmethod
    def _as_list(cls, value: object) -> object:
        if isinstance(value, str):
            return [word.strip() for word in value.split(",") if word.strip()]
        return value or []


class ExamplePart(BaseModel):
    """An example as it stands in the file."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=MAX_TEXT)
    entities: list[EntityPart] = Field(min_length=1, max_length=MAX_RECORDS)
    relations: list[RelationPart] = Field([], max_length=MAX_RECORDS)

    def example(self) -> ExtractionExample:
        """Return it as extraction takes it."""
        return ExtractionExample(
            text=self.text.strip(),
            entities=tuple(
                ExtractedEntity(name=each.name, type=each.type, description=each.description) for each in self.entities
            ),
            relations=tuple(
                ExtractedRelation(
                    source=each.source,
                    target=each.target,
                    keywords=tuple(each.keywords),
                    description=each.description,
                    weight=each.strength / 10,
                )
                for each in self.relations
            ),
        )


def check_examples(examples: Sequence[ExtractionExample], types: Collection[str], place: str) -> None:
    """Raise InvalidInput naming the field where an example says what its text or the types do not bear out."""
    for number, example in enumerate(examples):
        for field, problem, remedy in _problems(example, types):
            raise InvalidInput(f"{place}, examples.{number}.{field}: {problem}", remedy=remedy)


def _problems(example: ExtractionExample, types: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the field, what is wrong with it, and the remedy."""
    grounds = Grounds(ChunkInput(text=example.text))
    named = {entity_key(each.name) for each in example.entities}
    for place, entity in enumerate(example.entities):
        if not grounds.hold_whole(entity.name):
            problem = f"{entity.name!r} does not stand in the text of the example."
            yield f"entities.{place}.name", problem, "Write the name as the text has it, or take it out."
        if entity.type not in types:
            problem = f"{entity.type!r} is not among the types."
            yield f"entities.{place}.type", problem, f"Types: {', '.join(sorted(types))}."
    for place, relation in enumerate(example.relations):
        for field in ("source", "target"):
            name = getattr(relation, field)
            if entity_key(name) not in named:
                problem = f"{name!r} is not among the entities of the example."
                yield f"relations.{place}.{field}", problem, "Add it to the entities, or take the relation out."
