"""Old office formats: recognised, to be refused with what to do instead of passed over in silence."""

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import name_of
from quipu.parse.signature import PROTECTED, kind_of

_NEW_BY_TYPE = {
    "application/msword": ("Word format (.doc)", ".docx"),
    "application/vnd.ms-powerpoint": ("PowerPoint format (.ppt)", ".pptx"),
    "application/vnd.ms-excel": ("Excel format (.xls)", ".xlsx"),
}


class LegacyParser:
    """Reads nothing: it says what to convert to."""

    media_types = frozenset(_NEW_BY_TYPE)

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Raise InvalidDocument with the format to save the document in."""
        old, suffix = _NEW_BY_TYPE[source.media_type.partition(";")[0].strip().lower()]
        protected = " and protected by a password" if kind_of(source.content) == PROTECTED else ""
        raise InvalidDocument(
            f"{name_of(source)} is in the old {old}{protected}, which Quipu does not read.",
            remedy=f"Save it as {suffix}, in Office or with: soffice --headless --convert-to {suffix[1:]} FILE",
        )


PARSER = LegacyParser()
