"""Tests of the DOCX parser, on files python-docx writes and on what it cannot write."""

from io import BytesIO

import docx
import pytest
from docx.document import Document

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument
from quipu.parse import xml
from tests.unit.parse.files import read, text_of, texts, zipped

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def saved(document: Document) -> ParsedDocument:
    stream = BytesIO()
    document.save(stream)
    return read("a.docx", stream.getvalue())


def package(body: str, *, namespace: str = W, extra: dict[str, str] | None = None, rels: str = "") -> bytes:
    """Return a minimal document of `body`."""
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": f'<Relationships xmlns="{RELATIONS}"><Relationship Id="r1" Type="{OFFICE}/officeDocument"'
            ' Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{RELATIONS}">{rels}</Relationships>',
            **(extra or {}),
        }
    )


def p(*runs: str, properties: str = "") -> str:
    return f"<w:p>{properties}{''.join(runs)}</w:p>"


def r(text: str) -> str:
    return f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"


def test_heading_styles_make_the_path() -> None:
    document = docx.Document()
    document.add_heading("Quipus", 1)
    document.add_heading("Cords", 2)
    document.add_paragraph("A main cord.")
    document.add_heading("Roads", 1)
    document.add_paragraph("They led west.")
    parsed = saved(document)
    assert [(block.kind, block.headings, text_of(parsed, block)) for block in parsed.blocks] == [
        ("heading", (), "Quipus"),
        ("heading", ("Quipus",), "Cords"),
        ("paragraph", ("Quipus", "Cords"), "A main cord."),
        ("heading", (), "Roads"),
        ("paragraph", ("Roads",), "They led west."),
    ]
    assert all(block.page is None for block in parsed.blocks)


def test_a_table_stays_in_its_place_with_its_header() -> None:
    document = docx.Document()
    document.add_paragraph("Before.")
    table = document.add_table(rows=3, cols=2)
    for row, cells in zip(table.rows, [("Name", "Year"), ("Kober", "1906"), ("Ventris", "1922")], strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.add_paragraph("After.")
    parsed = saved(document)
    assert texts(parsed) == ["Before.", "Name | Year\nKober | 1906\nVentris | 1922", "After."]
    assert (parsed.blocks[1].kind, parsed.blocks[1].header) == ("table", "Name | Year")


def test_merged_cells_keep_the_columns() -> None:
    document = docx.Document()
    table = document.add_table(rows=2, cols=3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "Wide"
    table.cell(0, 2).text = "c"
    for column, text in enumerate("xyz"):
        table.cell(1, column).text = text
    assert texts(saved(document)) == ["Wide |  | c\nx | y | z"]


def test_a_table_of_one_column_is_a_frame_around_text() -> None:
    document = docx.Document()
    cell = document.add_table(rows=1, cols=1).cell(0, 0)
    cell.text = "First."
    cell.add_paragraph("Second.")
    parsed = saved(document)
    assert texts(parsed) == ["First.", "Second."]


def test_list_items_are_one_block() -> None:
    document = docx.Document()
    document.add_paragraph("cords", style="List Bullet")
    document.add_paragraph("knots", style="List Bullet")
    document.add_paragraph("End.")
    parsed = saved(document)
    assert texts(parsed) == ["- cords\n- knots", "End."]
    assert parsed.blocks[0].kind == "list"


def test_the_title_and_properties_are_kept() -> None:
    document = docx.Document()
    document.add_heading("Title on the Page", 0)
    document.add_paragraph("Text.")
    assert saved(document).title == "Title on the Page"
    document.core_properties.title = "Own Title"
    document.core_properties.author = "A. Kober"
    document.core_properties.language = ""
    parsed = saved(document)
    assert (parsed.title, parsed.metadata["author"]) == ("Own Title", "A. Kober")
    assert str(parsed.metadata["created"]).startswith("2013-")


def test_tracked_changes_read_as_if_accepted() -> None:
    inserted, deleted = f"<w:ins>{r('new')}</w:ins>", "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    moved = f"<w:moveFrom>{r('gone')}</w:moveFrom>"
    assert texts(read("a.docx", package(p(r("A "), inserted, deleted, moved, r(" road."))))) == ["A new road."]


def test_content_controls_links_and_text_boxes_are_read_hidden_text_and_field_codes_are_not() -> None:
    body = (
        f"<w:sdt><w:sdtContent>{p(r('In a control.'))}</w:sdtContent></w:sdt>"
        + p("<w:hyperlink>", r("A link"), "</w:hyperlink><w:r><w:instrText>PAGEREF x</w:instrText></w:r>")
        + p("<w:r><w:rPr><w:vanish/></w:rPr><w:t>Hidden</w:t></w:r>", r("Shown."))
        + p(
            "<w:r><w:AlternateContent><w:Choice><w:txbxContent>", p(r("In a box.")), "</w:txbxContent></w:Choice>"
            "<w:Fallback><w:txbxContent>", p(r("In a box.")), "</w:txbxContent></w:Fallback></w:AlternateContent></w:r>"
        )
    )  # fmt: skip
    assert texts(read("a.docx", package(body))) == ["In a control.", "A link", "Shown.", "In a box."]


def test_exponents_and_the_marks_of_footnotes_stay_raised() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("About 10")
    for text, is_raised in (("6", True), (" m, H", False), ("2", False), ("O, the 20", False), ("th", True)):
        paragraph.add_run(text).font.superscript = is_raised
    assert texts(saved(document)) == ["About 10⁶ m, H2O, the 20th"]


def test_a_footnote_follows_the_paragraph_it_belongs_to() -> None:
    notes = f'<w:footnotes xmlns:w="{W}"><w:footnote w:id="0" w:type="separator">{p(r("-"))}</w:footnote>'
    notes += f'<w:footnote w:id="2">{p(r("See Kober 1948."))}</w:footnote></w:footnotes>'
    data = package(
        p(r("A claim."), '<w:r><w:footnoteReference w:id="2"/></w:r>') + p(r("Next.")),
        extra={"word/footnotes.xml": notes},
        rels=f'<Relationship Id="r1" Type="{OFFICE}/footnotes" Target="footnotes.xml"/>',
    )
    assert texts(read("a.docx", data)) == ["A claim.", "Note: See Kober 1948.", "Next."]


def test_strict_documents_have_another_namespace_and_are_read() -> None:
    assert texts(read("a.docx", package(p(r("Strict.")), namespace=STRICT))) == ["Strict."]


def test_a_document_without_its_main_part_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="damaged: the part with its text is missing"):
        read("a.docx", zipped({"[Content_Types].xml": "<Types/>", "word/other.xml": "<a/>"}))


def test_entities_and_document_types_are_refused() -> None:
    bomb = '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    data = package("", extra={"word/document.xml": f'{bomb}<w:document xmlns:w="{W}">&b;</w:document>'})
    with pytest.raises(InvalidDocument, match="document type"):
        read("a.docx", data)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="nests deeper"):
        read("a.docx", package("<w:x>" * 20_000 + "</w:x>" * 20_000))


def test_more_elements_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_NODES", 1_000)
    with pytest.raises(InvalidDocument, match="1,000 XML elements and attributes"):
        read("a.docx", package("<w:p/>" * 1_000))


def test_an_empty_document_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="nothing to index"):
        saved(docx.Document())


def test_a_formula_is_latex_within_its_sentence() -> None:
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    run = "<m:r><m:t>{}</m:t></m:r>"
    parts = f"<m:num>{run.format('a')}</m:num><m:den>{run.format('b')}</m:den>"
    fraction = f'<m:oMath xmlns:m="{math}"><m:f>{parts}</m:f></m:oMath>'
    body = f"<w:p><w:r><w:t>So </w:t></w:r>{fraction}<w:r><w:t> holds.</w:t></w:r></w:p>"
    assert read("a.docx", package(body)).text == r"So $\frac{a}{b}$ holds."


def test_an_empty_formula_leaves_no_signs() -> None:
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    body = f'<w:p><w:r><w:t>So it is.</w:t></w:r><m:oMath xmlns:m="{math}"><m:r><m:t/></m:r></m:oMath></w:p>'
    assert read("a.docx", package(body)).text == "So it is."
