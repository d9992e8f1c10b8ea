"""Draft: the text of a document as it grows block by block, with a form feed where a page ends."""

from quipu.errors import InvalidDocument
from quipu.model.document import Block, Metadata, ParsedDocument
from quipu.parse.decode import normalise
from quipu.parse.headings import MAX_HEADING, HeadingPath
from quipu.parse.limits import MAX_BLOCKS, MAX_CHARACTERS


class Draft:
    """Gathers blocks; `document` then returns them with their text, a blank line between two blocks.

    Between blocks of different pages the blank line holds one form feed for each page turned, so that the page of any
    character is that of its chunk plus the form feeds between. `name` is the document's, for messages.
    """

    def __init__(self, name: str) -> None:
        self.path = HeadingPath()
        self.name = name
        self._texts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []

    @property
    def has_body(self) -> bool:
        """Say whether something other than headings was added."""
        return any(block.kind != "heading" for block in self._blocks)

    def add(self, text: str, kind: str = "paragraph", *, page: int | None = None, header: str = "") -> None:
        """Add a block under the open headings unless it is blank.

        Raises InvalidDocument where the text grows past the limit.
        """
        text = "\f".join(map(normalise, text.split("\f"))) if page is not None else normalise(text)
        self._add(text.strip("\n"), kind, self.path.above(), page=page, header=normalise(header))

    def add_heading(self, text: str, level: int, *, page: int | None = None) -> None:
        """Add a heading of `level` (1 is the highest) and go below it; what is too long for one is a paragraph."""
        line = " ".join(normalise(text).split())
        if len(line) > MAX_HEADING:
            self.add(line, page=page)
        elif line:
            self._add(line, "heading", self.path.above(level), page=page)
            self.path.enter(level, line)

    def append(self, document: ParsedDocument) -> None:
        """Add the blocks of a document that is a part of this one, under the headings open here."""
        above = self.path.above()
        for block in document.blocks:
            self._add(
                document.text[block.start : block.end], block.kind, (*above, *block.headings), header=block.header
            )

    def refuse_over(self, n_more: int) -> None:
        """Raise InvalidDocument where `n_more` characters would take the text past the limit."""
        if self._length + n_more > MAX_CHARACTERS:
            raise InvalidDocument(
                f"{self.name} holds more than {MAX_CHARACTERS:,} characters of text.",
                remedy="Split it into several files.",
            )

    def document(self, title: str = "", metadata: Metadata | None = None) -> ParsedDocument:
        """Return what was gathered."""
        return ParsedDocument(
            text="".join(self._texts), title=title, blocks=tuple(self._blocks), metadata=metadata or {}
        )

    def _add(
        self, text: str, kind: str, headings: tuple[str, ...], *, page: int | None = None, header: str = ""
    ) -> None:
        if not text.strip():
            return
        gap = self._gap(page)
        start = self._length + len(gap)
        header = header if text.startswith(header) else ""
        self.refuse_over(len(gap) + len(text))
        refuse_blocks_over(len(self._blocks) + 1, self.name)
        self._length = start + len(text)
        self._texts += [gap, text]
        self._blocks.append(
            Block(start=start, end=self._length, kind=kind, headings=headings, page=page, header=header)
        )

    def _gap(self, page: int | None) -> str:
        if not self._blocks:
            return ""
        turned = (page or 0) - (self._blocks[-1].page or 0) - self._texts[-1].count("\f")
        return "\n" + "\f" * turned + "\n" if turned > 0 else "\n\n"


def refuse_blocks_over(n_blocks: int, name: str) -> None:
    """Raise InvalidDocument, naming the document `name`, for more blocks than the limit."""
    if n_blocks > MAX_BLOCKS:
        raise InvalidDocument(
            f"{name} holds more than {MAX_BLOCKS:,} paragraphs.", remedy="Split it into several files."
        )
