"""Lines of recorded graphs: the JSON objects they are made of, each known by its fields."""

import json
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from quipu.ingest.recorded.claims import ClaimLine
from quipu.model.cluster import Finding
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.model.imported_graph import ImportedCommunity, ImportedExtraction, ImportedReport
from quipu.text.names import entity_key


def _is_an_id(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and value.strip()):
        raise ValueError("should be a text that is not empty, or a whole number")
    return value


Id = Annotated[str | int, BeforeValidator(_is_an_id)]


class _Line(BaseModel):
    """Fields that are not known are passed over: other systems write more than is wanted here."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)


class EntityLine(_Line):
    """An entity of a passage."""

    name: str = Field(min_length=1, validation_alias=AliasChoices("name", "title", "entity"))
    type: str = OTHER_TYPE
    description: str = ""

    def entity(self) -> ExtractedEntity:
        """Return it as a recorded entity."""
        return ExtractedEntity(name=self.name, type=_type(self.type), description=self.description)


class RelationLine(_Line):
    """A relation of a passage."""

    source: str = Field(min_length=1)
    target: str = Field(min_length=1)
    description: str = ""
    keywords: list[str] | str = []
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    def relation(self) -> ExtractedRelation:
        """Return it as a recorded relation."""
        words = self.keywords.split(",") if isinstance(self.keywords, str) else self.keywords
        keywords = tuple(word for word in (each.strip() for each in words) if word)
        return ExtractedRelation(
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
    claims: list[ClaimLine] = []

    @field_validator("entities", mode="before")
    @classmethod
    def _names_are_entities(cls, value: object) -> object:
        """Take a name alone for an entity of which nothing more is recorded."""
        return (
            [{"name": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value
        )

    @field_validator("id", "title", "text")
    @classmethod
    def _holds_no_nul(cls, value: object) -> object:
        if isinstance(value, str) and "\0" in value:
            raise ValueError("holds a NUL: it is no text")
        return value

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str | None) -> str | None:
        if value is not None and not any(each.isprintable() and not each.isspace() for each in value):
            raise ValueError("holds no text: there is nothing to index")
        return value

    def recorded(self) -> tuple[ImportedExtraction, list[str]]:
        """Return what is recorded of the passage, and in words what of it is left out.

        Of a triple there is a relation: its middle the keyword, all of it the description. One that is not whole is
        left out, and so is a relation of an entity with itself; the entity stays. So is a claim that lacks something.
        """
        whole = [triple for triple in self.triples if _is_whole(triple)]
        left_out = [f"{_quoted(each)} is no triple" for each in self.triples if not _is_whole(each)]
        entities = [each.entity() for each in self.entities]
        known = {entity_key(each.name) for each in entities}
        relations: list[ExtractedRelation] = []
        for each in (*(line.relation() for line in self.relations), *map(_stated, whole)):
            key = entity_key(each.source)
            if key != entity_key(each.target):
                relations.append(each)
                continue
            left_out.append(f"{_quoted(each.source)} is related to itself")
            if key not in known:
                known.add(key)
                entities.append(ExtractedEntity(name=each.source, type=UNKNOWN_TYPE))
        left_out += [each.fault for each in self.claims if each.fault]
        recording = ImportedExtraction(
            document=str(self.id),
            entities=tuple(entities),
            relations=tuple(relations),
            claims=tuple(each.recorded() for each in self.claims if not each.fault),
        )
        return recording, left_out


class CovariateLine(ClaimLine):
    """A row of a covariates table: a claim that names its passage itself."""

    passage: Id = Field(validation_alias="text_unit_id")

    def listed(self) -> PassageLine:
        """Return it as the line of its passage that lists it."""
        return PassageLine.model_construct(id=self.passage, claims=[self])


class CommunityLine(_Line):
    """A community: its entities by name."""

    community: Id
    level: int = Field(ge=0)
    parent: str | int | None = None
    entities: list[str]

    def recorded(self) -> ImportedCommunity:
        """Return it as a recorded community."""
        parent = "" if self.parent in (None, -1, "-1", "") else str(self.parent)
        return ImportedCommunity(id=str(self.community), level=self.level, parent=parent, entities=tuple(self.entities))


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

    def recorded(self) -> ImportedReport:
        """Return it as a recorded report."""
        findings = (
            Finding(summary=each)
            if isinstance(each, str)
            else Finding(summary=each.summary, explanation=each.explanation)
            for each in self.findings
        )
        return ImportedReport(
            community=str(self.community),
            title=self.title,
            summary=self.summary,
            findings=tuple(findings),
            rating=self.rating,
        )


Line = PassageLine | CommunityLine | ReportLine


def kind_of(fields: dict[str, object]) -> type[Line | CovariateLine] | None:
    """Return what a line with these fields is, None where it is nothing that is known."""
    if "community" in fields:
        return ReportLine if "summary" in fields else CommunityLine if "entities" in fields else None
    is_named = not fields.keys().isdisjoint(("id", "passage_id", "document"))
    says = not fields.keys().isdisjoint(("text", "entities", "relations", "triples", "claims"))
    if is_named and says:
        return PassageLine
    is_claim = "text_unit_id" in fields and not fields.keys().isdisjoint(("subject", "subject_id"))
    return CovariateLine if is_claim else None


def _type(written: str) -> str:
    """Return a type as Quipu writes types: "PERSON" is "Person"."""
    return written.capitalize() if written.isupper() else written or OTHER_TYPE


def _is_whole(triple: list[str]) -> bool:
    return len(triple) == 3 and all(part.strip() for part in triple)


def _stated(triple: list[str]) -> ExtractedRelation:
    source, how, target = (part.strip() for part in triple)
    return ExtractedRelation(source=source, target=target, keywords=(how,), description=f"{source} {how} {target}")


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
