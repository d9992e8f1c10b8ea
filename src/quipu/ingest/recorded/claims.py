"""Claims of recorded graphs: what is alleged or reported of an entity, as a list of a passage's line."""

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from quipu.model.extraction import FoundClaim
from quipu.model.recording import RecordedClaim
from quipu.text.names import entity_key

_NOTHING = ("none", "null", "-")  # what Microsoft GraphRAG writes where there is none, beside null
_MIDNIGHT = "T00:00:00"  # of a day without a time


def _said(value: object) -> object:
    """Take null, and the word for it, for a text that is not there."""
    is_nothing = value is None or (isinstance(value, str) and value.strip().casefold() in _NOTHING)
    return "" if is_nothing else value


def _in_any_case(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


Said = Annotated[str, BeforeValidator(_said)]
Status = Annotated[Literal["", "true", "false", "suspected"], BeforeValidator(_said), BeforeValidator(_in_any_case)]


class ClaimLine(BaseModel):
    """A claim of a passage, under Quipu's names of fields or those of Microsoft's covariates."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    subject: str = Field(min_length=1, validation_alias=AliasChoices("subject", "subject_id"))
    object: Said = Field(default="", validation_alias=AliasChoices("object", "object_id"))
    type: Said = ""
    status: Status = ""
    dates: Said = ""
    start_date: Said = ""
    end_date: Said = ""
    description: Said = ""
    source_text: Said = ""

    @property
    def is_whole(self) -> bool:
        """Whether something is claimed, of somebody: what says nothing, or names nobody, is left of a broken reply."""
        return bool(self.description or self.type) and bool(entity_key(self.subject))

    def recorded(self) -> RecordedClaim:
        """Return it as a recorded claim."""
        claim = FoundClaim(
            subject=self.subject,
            object=self.object,
            type=self.type.casefold() if self.type.isupper() else self.type,
            status=self.status,
            dates=self.dates or _between(self.start_date, self.end_date),
            description=self.description,
        )
        return RecordedClaim(claim=claim, quote=self.source_text)


def _between(start: str, end: str) -> str:
    """Return two dates as extraction writes them: "1999-05-01 to 1999-06-30", or the one there is."""
    days = dict.fromkeys(each.removesuffix(_MIDNIGHT) for each in (start, end) if each)
    return " to ".join(days)
