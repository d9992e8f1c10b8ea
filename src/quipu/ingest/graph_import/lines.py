"""Lines of imported graphs: the JSON objects of their files, each kind known by its fields."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from quipu.errors import InvalidInput
from quipu.model.cluster import Finding
from quipu.model.extraction import ExtractedClaim, ExtractedEntity, ExtractedRelation
from quipu.model.graph import MAX_WEIGHT, OTHER_TYPE, UNKNOWN_TYPE
from quipu.model.imported_graph import ImportedClaim, ImportedCommunity, ImportedExtraction, ImportedReport
from quipu.text.names import entity_key

_NOTHING = ("none", "null", "-")  # besides null, what Microsoft GraphRAG writes for a missing value
MAX_FILE_BYTES = 4 << 30  # of a JSON file, which is read whole
_FAULTS = {"missing": "is missing", "string_too_short": "is empty"}
_TYPE_STEPS = ("str", "int", "FindingLine")  # pydantic adds them to the place of a field with several types
_MIDNIGHT = "T00:00:00"  # of a date without a time


def _check_id(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and value.strip()):
        raise ValueError("should be a text that is not empty, or a whole number")
    return value


def _nothing_is_empty(value: object) -> object:
    """Replace null, and words that mean null, with an empty text."""
    is_nothing = value is None or (isinstance(value, str) and value.strip().casefold() in _NOTHING)
    return "" if is_nothing else value


def _casefolded(value: object) -> object:
    """Return a word or a JSON boolean in lower case."""
    return str(value).strip().casefold() if isinstance(value, str | bool) else value


def _number_is_year(value: object) -> object:
    """Return a number as text, because a year may be written as a number."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Id = Annotated[str | int, BeforeValidator(_check_id)]
_OptionalText = Annotated[str, BeforeValidator(_nothing_is_empty)]
_ClaimStatus = Annotated[
    Literal["", "true", "false", "suspected"], BeforeValidator(_nothing_is_empty), BeforeValidator(_casefolded)
]
_Dates = Annotated[str, BeforeValidator(_nothing_is_empty), BeforeValidator(_number_is_year)]


class _Line(BaseModel):
    """Unknown fields are ignored: other systems write more than is needed here."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)


class EntityLine(_Line):
    """A recorded entity of a passage, as an object in a JSON line."""

    name: str = Field(min_length=1, validation_alias=AliasChoices("name", "title", "entity"))
    type: str = OTHER_TYPE
    description: str = ""

    def entity(self) -> ExtractedEntity:
        """Return the entity."""
        return ExtractedEntity(name=self.name, type=entity_type(self.type), description=self.description)


class RelationLine(_Line):
    """A recorded relation of a passage, as an object in a JSON line."""

    source: str = Field(min_length=1)
    target: str = Field(min_length=1)
    description: str = ""
    keywords: list[str] | str = []
    weight: float = Field(default=1.0, gt=0, le=MAX_WEIGHT)

    def relation(self) -> ExtractedRelation:
        """Return the relation."""
        words = self.keywords.split(",") if isinstance(self.keywords, str) else self.keywords
        keywords = tuple(word for word in map(str.strip, words) if word)
        return ExtractedRelation(
            source=self.source, target=self.target, keywords=keywords, description=self.description, weight=self.weight
        )


class ClaimLine(_Line):
    """A claim of a passage, with the field names of Quipu or of Microsoft GraphRAG's covariates."""

    subject: _OptionalText = Field(validation_alias=AliasChoices("subject", "subject_id"))
    object: _OptionalText = Field(default="", validation_alias=AliasChoices("object", "object_id"))
    type: _OptionalText = ""
    status: _ClaimStatus = ""
    dates: _Dates = ""
    start_date: _Dates = ""
    end_date: _Dates = ""
    description: _OptionalText = ""
    source_text: _OptionalText = ""

    @property
    def fault(self) -> str:
        """What the claim lacks, "" if it is complete: broken replies contain claims without subject or content."""
        if not (self.description or self.type):
            return f"a claim about {_quoted(self.subject)} has no description and no type"
        return "" if entity_key(self.subject) else f"the claim {_quoted(self.description or self.type)} has no subject"

    def imported(self) -> ImportedClaim:
        """Return the claim and the words that it was read from."""
        claim = ExtractedClaim(
            subject=self.subject,
            object=self.object,
            type=self.type.casefold() if self.type.isupper() else self.type,
            status=self.status,
            dates=self.dates or _between(self.start_date, self.end_date),
            description=self.description,
        )
        return ImportedClaim(claim=claim, quote=self.source_text)


class PassageLine(_Line):
    """A passage: its text, or its recorded extraction, or both."""

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
        """Accept a plain name for an entity."""
        if not isinstance(value, list):
            return value
        return [{"name": entity} if isinstance(entity, str) else entity for entity in value]

    @field_validator("id", "title")
    @classmethod
    def _has_no_nul(cls, value: object) -> object:
        if isinstance(value, str) and "\0" in value:
            raise ValueError("holds a NUL, so it is not text")
        return value

    @field_validator("text")
    @classmethod
    def _has_visible_text(cls, value: str | None) -> str | None:
        if value is not None and (fault := text_fault(value)):
            raise ValueError(fault)
        return value

    def imported(self) -> tuple[ImportedExtraction, list[str]]:
        """Return the recorded extraction of the passage, and messages about what of it is left out.

        A triple becomes a relation: its middle is the keyword, the whole triple the description. Left out are triples
        without three texts, claims that lack something, and relations of an entity with itself; that entity is kept.
        """
        complete = [triple for triple in self.triples if _is_complete(triple)]
        left_out = [f"{_quoted(triple)} is not a triple" for triple in self.triples if not _is_complete(triple)]
        entities = [line.entity() for line in self.entities]
        keys = {entity_key(entity.name) for entity in entities}
        relations: list[ExtractedRelation] = []
        for relation in (*(line.relation() for line in self.relations), *map(_relation_of, complete)):
            key = entity_key(relation.source)
            if key != entity_key(relation.target):
                relations.append(relation)
                continue
            left_out.append(f"{_quoted(relation.source)} is related to itself")
            if key not in keys:
                keys.add(key)
                entities.append(ExtractedEntity(name=relation.source, type=UNKNOWN_TYPE))
        left_out += [claim.fault for claim in self.claims if claim.fault]
        extraction = ImportedExtraction(
            document=str(self.id),
            entities=tuple(entities),
            relations=tuple(relations),
            claims=tuple(claim.imported() for claim in self.claims if not claim.fault),
        )
        return extraction, left_out


class CovariateLine(ClaimLine):
    """A row of a covariates table: a claim that names its passage."""

    passage: Id = Field(validation_alias="text_unit_id")

    def as_passage(self) -> PassageLine:
        """Return the claim as a line of its passage."""
        return PassageLine.model_construct(id=self.passage, claims=[self])


class CommunityLine(_Line):
    """A community with the names of its entities."""

    community: Id
    level: int = Field(ge=0)
    parent: str | int | None = None
    entities: list[str]

    def imported(self) -> ImportedCommunity:
        """Return the community."""
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

    def imported(self) -> ImportedReport:
        """Return the report."""
        findings = (
            Finding(summary=finding)
            if isinstance(finding, str)
            else Finding(summary=finding.summary, explanation=finding.explanation)
            for finding in self.findings
        )
        return ImportedReport(
            community=str(self.community),
            title=self.title,
            summary=self.summary,
            findings=tuple(findings),
            rating=self.rating,
        )


GraphLine = PassageLine | CommunityLine | ReportLine


def line_kind(fields: dict[str, object]) -> type[GraphLine | CovariateLine] | None:
    """Return the kind of a line with these fields, None if its kind is unknown."""
    if "community" in fields:
        return ReportLine if "summary" in fields else CommunityLine if "entities" in fields else None
    has_id = not fields.keys().isdisjoint(("id", "passage_id", "document"))
    has_content = not fields.keys().isdisjoint(("text", "entities", "relations", "triples", "claims"))
    if has_id and has_content:
        return PassageLine
    is_claim = "text_unit_id" in fields and not fields.keys().isdisjoint(("subject", "subject_id"))
    return CovariateLine if is_claim else None


def text_fault(text: str) -> str:
    """Return why a text cannot be that of a document, "" if it can."""
    if "\0" in text:
        return "holds a NUL, so it is not text"
    is_visible = any(char.isprintable() and not char.isspace() for char in text)
    return "" if is_visible else "holds no text: there is nothing to index"


def read_whole(file: Path) -> bytes:
    """Return the content of a file that is read whole. Raises InvalidInput if it is too large for that."""
    n_bytes = file.stat().st_size
    if n_bytes > MAX_FILE_BYTES:
        raise InvalidInput(
            f"{file} has {n_bytes:,} bytes; at most {MAX_FILE_BYTES:,} can be read.", remedy="Split it into several."
        )
    return file.read_bytes()


def first_fault(error: ValidationError) -> str:
    """Return the first fault, such as "`name` of item 1 of `entities` is empty"."""
    first = error.errors()[0]
    fault = _FAULTS.get(first["type"]) or first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    steps = [
        step for step in first["loc"] if isinstance(step, int) or (step.isidentifier() and step not in _TYPE_STEPS)
    ]
    place = " of ".join(f"item {step + 1}" if isinstance(step, int) else f"`{step}`" for step in reversed(steps))
    return f"{place} {fault}"


def entity_type(written: str) -> str:
    """Return a type as Quipu writes it: "PERSON" becomes "Person"."""
    return written.capitalize() if written.isupper() else written or OTHER_TYPE


def _is_complete(triple: list[str]) -> bool:
    return len(triple) == 3 and all(part.strip() for part in triple)


def _relation_of(triple: list[str]) -> ExtractedRelation:
    source, keyword, target = (part.strip() for part in triple)
    return ExtractedRelation(
        source=source, target=target, keywords=(keyword,), description=f"{source} {keyword} {target}"
    )


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _between(start: str, end: str) -> str:
    """Return two dates as extraction writes them: "1999-05-01 to 1999-06-30", or a single date."""
    days = dict.fromkeys(date.removesuffix(_MIDNIGHT) for date in (start, end) if date)
    return " to ".join(days)
