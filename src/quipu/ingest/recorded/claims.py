"""Claims of recorded graphs: what is alleged or reported of an entity."""

import json
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from quipu.model.extraction import ExtractedClaim
from quipu.model.imported_graph import ImportedClaim
from quipu.text.names import entity_key

_NOTHING = ("none", "null", "-")  # what Microsoft GraphRAG writes where there is none, beside null
_MIDNIGHT = "T00:00:00"  # of a day without a time


def _said(value: object) -> object:
    """Take null, and the word for it, for a text that is not there."""
    is_nothing = value is None or (isinstance(value, str) and value.strip().casefold() in _NOTHING)
    return "" if is_nothing else value


def _in_any_case(value: object) -> object:
    """Take JSON's own true and false for the words."""
    return str(value).strip().casefold() if isinstance(value, str | bool) else value


def _in_digits(value: object) -> object:
    """Take a number for a year."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Said = Annotated[str, BeforeValidator(_said)]
Status = Annotated[Literal["", "true", "false", "suspected"], BeforeValidator(_said), BeforeValidator(_in_any_case)]
Dates = Annotated[str, BeforeValidator(_said), BeforeValidator(_in_digits)]


class ClaimLine(BaseModel):
    """A claim, under Quipu's names of fields or those of Microsoft's covariates."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    subject: Said = Field(validation_alias=AliasChoices("subject", "subject_id"))
    object: Said = Field(default="", validation_alias=AliasChoices("object", "object_id"))
    type: Said = ""
    status: Status = ""
    dates: Dates = ""
    start_date: Dates = ""
    end_date: Dates = ""
    description: Said = ""
    source_text: Said = ""

    @property
    def fault(self) -> str:
        """What it lacks, in words, "" where it is whole: broken replies hold claims that say nothing or name nobody."""
        if not (self.description or self.type):
            return f"a claim about {_quoted(self.subject)} says nothing"
        return "" if entity_key(self.subject) else f"the claim {_quoted(self.description or self.type)} is about nobody"

    def recorded(self) -> ImportedClaim:
        """Return it as a recorded claim."""
        claim = ExtractedClaim(
            subject=self.subject,
            object=self.object,
            type=self.type.casefold() if self.type.isupper() else self.type,
            status=self.status,
            dates=self.dates or _between(self.start_date, self.end_date),
            description=self.description,
        )
        return ImportedClaim(claim=claim, quote=self.source_text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _between(start: str, end: str) -> str:
    """Return two dates as extraction writes them: "1999-05-01 to 1999-06-30", or the one there is."""
    days = dict.fromkeys(each.removesuffix(_MIDNIGHT) for each in (start, end) if each)
    return " to ".join(days)
