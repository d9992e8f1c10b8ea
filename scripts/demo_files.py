"""Write the demo corpus's PDF and DOCX, byte for byte the same each time: `python scripts/demo_files.py`."""

import sys
import textwrap
from io import BytesIO
from pathlib import Path
from xml.sax.saxutils import escape
from zipfile import ZIP_STORED, ZipFile, ZipInfo

FOLDER = Path(__file__).resolve().parents[1] / "src" / "quipu" / "testing" / "corpora" / "demo"

ROYAL_ROAD_TITLE = "The Royal Road of the Persians"
# A page each: its heading and its paragraphs.
ROYAL_ROAD = (
    (
        "From Sardis to Susa",
        "The Royal Road was the great road of the Achaemenid kings of Persia. The Royal Road joined Sardis in Lydia "
        "with Susa in Elam and was about 2,500 kilometres long. The organisation of the Royal Road is often ascribed "
        "to Darius, the king whose deeds are told in the Behistun inscription.",
        "Herodotus counted 111 stations on the Royal Road, with good inns at all of them. According to Herodotus, a "
        "traveller on foot needed about ninety days from Sardis to Susa.",
    ),
    (
        "The couriers",
        "Mounted couriers carried the letters of the Persian king from station to station. Each courier rode for one "
        "day and handed the letter to the next. Herodotus wrote that neither snow nor rain nor heat nor the darkness "
        "of night kept them from their course.",
        "The Greeks called this relay of riders angareion. A sentence after Herodotus is cut into the front of the old "
        "General Post Office in New York.",
    ),
    (
        "The tablets of Persepolis",
        "In 1933 Ernst Herzfeld found thousands of clay tablets in the fortification wall of Persepolis. The "
        "Persepolis Fortification tablets are written in Elamite cuneiform. Richard Hallock published more than two "
        "thousand of the tablets in 1969.",
        "Many of the tablets record flour, wine and beer for travellers on the Royal Road. The sealed travel document "
        "that a traveller had to show to draw rations was called halmi in Elamite. It named the traveller, the size of "
        "the party and the daily rations.",
    ),
)

RELAY_POST_TITLE = "The Relay Post of the Mongols"
RELAY_POST = (
    (
        "The yam",
        "The relay post of the Mongol empire was called yam. The Great Khan Ögedei set up the yam in 1234 and built it "
        "out along the routes of the Silk Road. A station of the yam kept horses, food and fodder, and families who "
        "lived near it were held to supply them.",
        "Marco Polo admired the stations and wrote that they stood twenty-five or thirty miles apart.",
    ),
    (
        "The tablets of authority",
        "A messenger of the yam carried a paiza, a tablet of wood, silver or gold that ordered everyone to help its "
        "bearer. The brothers Niccolò and Maffeo Polo received a golden paiza from Kublai Khan.",
    ),
)
RELAYS = (
    ("Relay", "Realm", "Carried by"),
    ("angareion", "Achaemenid Persia", "riders"),
    ("cursus publicus", "Roman empire", "riders and wagons"),
    ("chasqui", "Inca realm", "runners"),
    ("yam", "Mongol empire", "riders"),
)

_WIDTH, _HEIGHT, _MARGIN, _LEADING = 420, 595, 54, 15
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_DATE = (2026, 1, 1, 0, 0, 0)


def royal_road() -> bytes:
    """Return the PDF: a page for each section, with a running header, page numbers and an outline."""
    n_pages = len(ROYAL_ROAD)
    pages = range(5, 5 + 3 * n_pages, 3)
    font = "<</Type/Font/Subtype/Type1/BaseFont/{}/Encoding/WinAnsiEncoding>>"
    bodies = [
        "<</Type/Catalog/Pages 2 0 R/Outlines 4 0 R>>",
        f"<</Type/Pages/Count {n_pages}/Kids[{' '.join(f'{page} 0 R' for page in pages)}]"
        f"/MediaBox[0 0 {_WIDTH} {_HEIGHT}]/Resources<</Font<</F1 {font.format('Times-Roman')}"
        f"/F2 {font.format('Times-Bold')}>>>>>>",
        f"<</Title({ROYAL_ROAD_TITLE})/CreationDate(D:20260101000000Z)>>",
        f"<</Type/Outlines/Count {n_pages}/First 7 0 R/Last {pages[-1] + 2} 0 R>>",
    ]
    for number, (page, (heading, *paragraphs)) in enumerate(zip(pages, ROYAL_ROAD, strict=True), 1):
        content = _page(number, heading, paragraphs)
        following = f"/Next {page + 5} 0 R" if number < n_pages else ""
        bodies += [
            f"<</Type/Page/Parent 2 0 R/Contents {page + 1} 0 R>>",
            f"<</Length {len(content.encode('cp1252'))}>>stream\n{content}\nendstream",
            f"<</Title({heading})/Parent 4 0 R{following}/Dest[{page} 0 R/Fit]>>",
        ]
    return _pdf([body.encode("cp1252") for body in bodies])


def relay_post() -> bytes:
    """Return the DOCX: sections under headings, and a table."""
    body = [_paragraph(RELAY_POST_TITLE, "Title")]
    for heading, *paragraphs in RELAY_POST:
        body += [_paragraph(heading, "Heading1"), *map(_paragraph, paragraphs)]
    rows = "".join(f"<w:tr>{''.join(f'<w:tc>{_paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in RELAYS)
    body += [_paragraph("Relays compared", "Heading1"), f"<w:tbl>{rows}</w:tbl>", _paragraph("")]
    styles = (("Title", "Title", 40), ("Heading1", "heading 1", 28))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_TYPES}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{_TYPES}.styles+xml"/>'
        '<Override PartName="/docProps/core.xml"'
        ' ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        "</Types>",
        "_rels/.rels": _relations(
            (f"{_OFFICE}/officeDocument", "word/document.xml"),
            (f"{_PACKAGE}/relationships/metadata/core-properties", "docProps/core.xml"),
        ),
        "docProps/core.xml": f'<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{RELAY_POST_TITLE}</dc:title><dc:subject>routes</dc:subject><dc:language>en</dc:language>"
        "</cp:coreProperties>",
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{"".join(body)}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">'
        + "".join(
            f'<w:style w:type="paragraph" w:styleId="{style}"><w:name w:val="{name}"/>'
            f'<w:rPr><w:b/><w:sz w:val="{size}"/></w:rPr></w:style>'
            for style, name, size in styles
        )
        + "</w:styles>",
        "word/_rels/document.xml.rels": _relations((f"{_OFFICE}/styles", "styles.xml")),
    }
    stream = BytesIO()
    with ZipFile(stream, "w", ZIP_STORED) as archive:
        for name, xml in parts.items():
            head = ZipInfo(name, _DATE)
            head.create_system = 0  # else it names the system this ran on
            archive.writestr(head, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n{xml}')
    return stream.getvalue()


FILES = {"royal-road.pdf": royal_road, "relay-post.docx": relay_post}


def _page(number: int, heading: str, paragraphs: list[str]) -> str:
    top = _HEIGHT - _MARGIN
    lines = [("F1", 9, top, ROYAL_ROAD_TITLE), ("F1", 9, _MARGIN // 2, str(number))]
    y = top - 3 * _LEADING
    if number == 1:
        lines.append(("F2", 18, y, ROYAL_ROAD_TITLE))
        y -= 2 * _LEADING
    lines.append(("F2", 13, y, heading))
    for paragraph in paragraphs:
        y -= _LEADING // 2
        for line in textwrap.wrap(paragraph, 62):
            y -= _LEADING
            lines.append(("F1", 11, y, line))
    return "\n".join(
        f"BT /{font} {size} Tf {_MARGIN} {y} Td ({text.replace('(', chr(92) + '(').replace(')', chr(92) + ')')}) Tj ET"
        for font, size, y, text in lines
    )


def _pdf(bodies: list[bytes]) -> bytes:
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(bodies) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % size
    return (
        out + head + table + b"trailer<</Size %d/Root 1 0 R/Info 3 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    )


def _paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _relations(*targets: tuple[str, str]) -> str:
    listed = "".join(
        f'<Relationship Id="r{number}" Type="{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def main() -> int:
    """Write the files; with --check only say which are not as they would be written, and return 1 if one is."""
    stale = [
        name for name, made in FILES.items() if not (FOLDER / name).exists() or (FOLDER / name).read_bytes() != made()
    ]
    if "--check" in sys.argv[1:]:
        print("\n".join(stale))
        return 1 if stale else 0
    for name in stale:
        (FOLDER / name).write_bytes(FILES[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
