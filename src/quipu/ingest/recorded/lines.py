"""Lines of recorded graphs: the JSON objects they are made of, each known by its fields."""

from collections.abc import Iterator

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from quipu.model.cluster import Finding
from quipu.model.extraction import FoundEntity, FoundRelation
from quipu.model.graph import OTHER_TYPE
from quipu.model.recording import RecordedCommunity, RecordedReport

Id = str | int


class _Line(BaseModel):
    """Fields that are not known are passed over: other systems write more than is wanted here."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)


class EntityLine(_Line):
    """An entity of a passage."""

    name: str = Field(min_length=1, validation_alias=AliasChoices("name", "title", "entity"))
    type: str = OTHER_TYPE
    description: str = ""

    def entity(self) -> FoundEntity:
        """Return it as a recorded entity."""
        return FoundEntity(name=self.name, type=_type(self.type), description=self.description)


class RelationLine(_Line):
    """A relation of a passage."""

    source: str = Field(min_length=1)
    target: str = Field(min_length=1)
    description: str = ""
    keywords: list[str] | str = []
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    def relation(self) -> FoundRelation:
        """Return it as a recorded relation."""
        words = self.keywords.split(",") if isinstance(self.keywords, str) else self.keywords
        keywords = tuple(word for word in (each.strip() for each in words) if word)
        return FoundRelation(
            source=self.source, target=self.target, keywords=keywords, description=self.description, weight=self.weight
        )


class PassageLine(_Line):
    """A passage: its text, or what is recorded of it, or both."""

    id: Id = Field(validation_alias=AliasChoices("id", "passage_id", "document"))
    title: str = ""
    text: str | None = None
    entities: list[EntityLine] = []
    relations: list[RelationLine] = []
    triples: list[list[str]] = []

    @field_validator("entities", mode="before")
    @classmethod
    def _names_are_entities(cls, value: object) -> object:
        """Take a name alone for an entity of which nothing more is recorded."""
        return (
            [{"name": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value
        )

    def all_relations(self) -> Iterator[FoundRelation]:
        """Yield the relations, and of each whole triple one: its middle the keyword, all of it the description."""
        yield from (line.relation() for line in self.relations)
        for triple in self.triples:
            if len(triple) == 3 and all(part.strip() for part in triple):
                source, how, target = (part.strip() for part in triple)
                yield FoundRelation(
                    source=source, target=target, keywords=(how,), description=f"{source} {how} {target}"
                )


class CommunityLine(_Line):
    """A community: its entities by name."""

    community: Id
    level: int = Field(ge=0)
    parent: Id | None = None
    entities: list[str]

    def recorded(self) -> RecordedCommunity:
        """Return it as a recorded community."""
        parent = "" if self.parent in (None, -1, "-1", "") else str(self.parent)
        return RecordedCommunity(id=str(self.community), level=self.level, parent=parent, entities=tuple(self.entities))


class FindingLine(_Line):
    """A finding of a report."""

    summary: str
    explanation: str = ""


class ReportLine(_Line):
    """A report of a community."""

    community: Id
    title: str
    summary: str
    findings: list[FindingLine | str] = []
    rating: float = Field(default=0.0, ge=0, le=10, validation_alias=AliasChoices("rating", "rank"))

    def recorded(self) -> RecordedReport:
        """Return it as a recorded report."""
        findings = (
            Finding(summary=each)
            if isinstance(each, str)
            else Finding(summary=each.summary, explanation=each.explanation)
            for each in self.findings
        )
        return RecordedReport(
            community=str(self.community),
            title=self.title,
            summary=self.summary,
            findings=tuple(findings),
            rating=self.rating,
        )


Line = PassageLine | CommunityLine | ReportLine


def kind_of(fields: dict[str, object]) -> type[Line] | None:
    """Return what a line with these fields is, None where it is nothing that is known."""
    if "community" in fields:
        return ReportLine if "summary" in fields else CommunityLine if "entities" in fields else None
    is_named = not fields.keys().isdisjoint(("id", "passage_id", "document"))
    says = not fields.keys().isdisjoint(("text", "entities", "relations", "triples"))
    return PassageLine if is_named and says else None


def _type(written: str) -> str:
    """Return a type as Quipu writes types: "PERSON" is "Person"."""
    return written.capitalize() if written.isupper() else written or OTHER_TYPE
