"""Hostile files, and a run of them in one process of bounded memory and time: `python -m tests.unit.parse.hostile`."""

import json
import resource
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument
from quipu.parse import builder, markup_process
from tests.unit.parse.files import pdf as pdf_of
from tests.unit.parse.files import prose, read, zipped

MEMORY = 700_000_000  # bytes of address space, Python and its libraries included
SECONDS = 60
K = 1_000


def repeated(head: str, piece: str, n: int) -> Callable[[], bytes]:
    """Return what makes `head` and so many of `piece`."""
    return lambda: bytes(head + piece * n, "utf-8")


def numbered(piece: str, n: int) -> bytes:
    """Return `piece` so many times, each with its number in it."""
    return "".join(piece.replace("%d", str(i)) for i in range(n)).encode()


def office(main: str, related: Mapping[str, str] | None = None, content: Mapping[str, str] | None = None) -> bytes:
    """Return an office file whose main part is `main`, which has relations (by kind) to parts with `content`."""
    targets = {kind: f"{index}.xml" for index, kind in enumerate(related or {})}
    return zipped(
        {
            "_rels/.rels": '<R><Relationship Id="a" Type="x/officeDocument" Target="main.xml"/></R>',
            "main.xml": main,
            "_rels/main.xml.rels": "<R>"
            + "".join(f'<Relationship Id="{kind}" Type="x/{kind}" Target="{to}"/>' for kind, to in targets.items())
            + "</R>",
            **{targets[kind]: xml for kind, xml in (related or {}).items()},
            **(content or {}),
        }
    )


def docx(body: str, related: Mapping[str, str] | None = None) -> bytes:
    """Return a Word file with this body."""
    return office(f"<d>{body}</d>", related, {"word/x": ""})


def xlsx(sheet: str, shared: str = "<s/>") -> bytes:
    """Return a workbook of one sheet."""
    main = '<w xmlns:r="r"><sheets><sheet name="S" r:id="worksheet"/></sheets></w>'
    return office(main, {"worksheet": sheet, "sharedStrings": shared}, {"xl/x": ""})


def pptx(slide: str, n_slides: int = 1) -> bytes:
    """Return a presentation that shows one slide so many times."""
    listed = '<sldId r:id="slide"/>' * n_slides
    return office(f'<p xmlns:r="r">{listed}</p>', {"slide": slide}, {"ppt/x": ""})


def epub(page: str, href: str = "a.html") -> bytes:
    """Return a book of one page."""
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<c><rootfile full-path="o.opf"/></c>',
            "o.opf": f'<p><manifest><item id="a" href="{href}" media-type="text/html"/></manifest>'
            '<spine><itemref idref="a"/></spine></p>',
            "a.html": page,
        }
    )


def pdf_pages(tree: str) -> bytes:
    """Return a PDF whose object 2 is a page tree like this, object 3 a page."""
    page = b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n"
    root = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    return root + f"2 0 obj<</Type/Pages{tree}>>endobj\n".encode() + page + b"trailer<</Root 1 0 R>>\n"


def valid_files() -> dict[str, bytes]:
    """Return a small sound file of every format, by suffix."""
    line = "Alice Kober taught classics at Brooklyn College."
    return {
        ".txt": f"Kober\n\n{line}\n\n{line}".encode(),
        ".md": f"---\nyear: 1906\n---\n# Kober\n\n{line}\n\n- a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n".encode(),
        ".html": f"<title>K</title><h1>Kober</h1><p>{line}<ul><li>a<li>b</ul><table><th>x<tr><td>1</table>".encode(),
        ".csv": b"name,year\nAlice,1906\nMichael,1922\n",
        ".tsv": b"name\tyear\nAlice\t1906\n",
        ".json": b'[{"title": "Kober", "text": "She taught classics at Brooklyn College.", "year": 1906}]',
        ".jsonl": b'{"name": "Alice", "year": 1906}\n{"name": "Michael", "year": 1922}\n',
        ".eml": b"From: a@b.c\nSubject: =?utf-8?q?K=C3=B6ber?=\nContent-Type: multipart/mixed; boundary=x\n\n"
        b"--x\nContent-Type: text/plain; charset=utf-8\n\nText of it.\n--x\n"
        b"Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPHA+SGk8L3A+\n--x--\n",
        ".mbox": b"From a 10:00\nSubject: One\n\nText.\n\nFrom b 11:00\nSubject: Two\n\nText.\n",
        ".pdf": pdf_of(
            [prose(line), prose("Her papers are kept in Austin.")], outline=[("One", 1)], info={"Title": "K"}
        ),
        ".docx": docx(
            f"<p><pPr><outlineLvl val='0'/></pPr><r><t>Kober</t></r></p><p><r><t>{line}</t></r></p>"
            "<tbl><tr><tc><p><r><t>a</t></r></p></tc><tc><p><r><t>b</t></r></p></tc></tr></tbl>"
        ),
        ".pptx": pptx(f"<s><sp><ph type='title'/><p><t>Kober</t></p></sp><sp><p><t>{line}</t></p></sp></s>"),
        ".xlsx": xlsx(
            "<w><row r='1'><c r='A1' t='s'><v>0</v></c><c r='B1'><v>1.5</v></c></row></w>",
            "<s><si><t>Kober</t></si></s>",
        ),
        ".epub": epub(f"<h1>Kober</h1><p>{line}</p>"),
    }


def _nested_zip() -> bytes:
    data = b"x"
    for _ in range(50):
        data = zipped({"a.zip": data})
    return data


def _lying_zip() -> bytes:
    """Return a Word file whose directory says its parts are far smaller than they are."""
    data = docx("<p><r><t>" + "x" * 300 * K + "</t></r></p>")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        size = archive.getinfo("main.xml").file_size
    return data.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))


def _xml(body: str, head: str = "") -> bytes:
    return office(f"{head}<d>{body}</d>", content={"word/x": ""})


_HALVES = b"\\udfff " * 9
_BARE, _PREFIXED = " a%d=''", " p:a%d=''"
_PART = 'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n'
_LAUGHS = (
    "<!DOCTYPE d [<!ENTITY a 'ha'>"
    + "".join(f"<!ENTITY a{i} '{f'&a{i - 1 if i else str()};' * 10}'>" for i in range(12))
    + "]>"
)

# By what is hostile about them: a suffix, and what makes the bytes.
CASES: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    "text of one long line": (".txt", lambda: b"word " * 400 * K),
    "text of one long word": (".txt", lambda: b"a" * 2_000 * K),
    "text of line ends": (".txt", lambda: b"\n" * 2_000 * K + b"x"),
    "text of more paragraphs than are kept": (".txt", lambda: b"a\n\n" * 210 * K),
    "marks upon one letter": (".txt", repeated("a", "\u0316\u0301", 300 * K)),
    "marks upon one letter of a page": (".html", repeated("<p>a", "\u0316\u0301", 300 * K)),
    "flags": (".txt", repeated("", "\U0001f1e9", 100 * K)),
    "bidirectional overrides": (".md", repeated("", "# \u202eabc\u202c\u2066\n\nx\u200f", K)),
    "half a pair in UTF-16": (".txt", lambda: b"\xff\xfe\x00\xd8a\x00"),
    "UTF-16 of odd length": (".csv", lambda: "a,b".encode("utf-16") + b"x"),
    "UTF-32": (".md", lambda: "# Roads\n\nTo Rome.".encode("utf-32")),
    "UTF-16 without a mark": (".txt", lambda: "Roads to Rome".encode("utf-16-le")),
    "mixed encodings": (".txt", lambda: "é ".encode() * 9 + b"\xe9 " * 9),
    "NULs": (".json", lambda: b"\0" * 9 + b'{"a": 1}' + b"\0" * 9),
    "deep quotes": (".md", lambda: b">" * 100 * K + b"x"),
    "deep lists": (".md", lambda: b"- " * 100 * K + b"x"),
    "a heading of brackets": (".md", lambda: b"# " + b"[" * 200 * K),
    "a heading of stars": (".md", lambda: b"# " + b"*a_ " * 100 * K),
    "a wide table": (".md", lambda: b"|a" * 10 * K + b"|\n" + b"|-" * 10 * K + b"|\n" + b"|a|\n" * 500),
    "lists within lists on many lines": (".md", lambda: (b"- " * 20 + b"x\n\n") * 30 * K),
    "long front matter": (".md", lambda: b"---\n" + b"a: b\n" * 30 * K + b"---\nx"),
    "front matter of one number": (".md", lambda: b"---\na: 0x" + b"f" * 90 * K + b"\n---\nx"),
    "front matter of aliases": (".md", lambda: b"---\na: &a [x]\nb: [*a, *a]\n---\nx"),
    "deep elements never closed": (".html", lambda: b"<div></x>" * 25 * K + b"x"),
    "deep items and definitions": (".html", lambda: b"<li><dd>" * 12 * K + b"x"),
    "deep elements": (".html", lambda: b"<div>" * 100 * K + b"x"),
    "formatting that goes on forever": (".html", lambda: numbered("<p><b id=%d>x</x>", 3_000)),
    "an element of many attributes": (".html", lambda: b"<p" + numbered(" a%d", 90 * K) + b">x"),
    "attributes with marks of ends": (".html", lambda: b"<p" + numbered(" a%d='>'", 90 * K) + b">x"),
    "many empty cells": (".html", lambda: b"<table><tr>" + b"<td></td>" * 100 * K + b"</table>x"),
    "a page of marks": (".html", lambda: b"<a" * 4_100 * K),
    "a row of many cells": (".csv", lambda: b"," * 2_000 * K + b"a"),
    "a row of many cells over many lines": (".csv", lambda: b'"\n",' * 1_100 * K + b"a"),
    "a cell that does not end": (".csv", lambda: b'a,b\n1,"' + b"x\n" * 200 * K),
    "empty rows": (".csv", lambda: b",\n" * 500 * K + b"a"),
    "deep lists of JSON": (".json", lambda: b"[" * 100 * K + b"]" * 100 * K),
    "deep objects of JSON": (".json", lambda: b'{"a":' * 200 + b"1" + b"}" * 200),
    "halves of pairs in JSON": (".json", lambda: b'{"\\udfff": "\\ud800", "title": "\\ud800", "text": "%b"}' % _HALVES),
    "a number of thousands of digits": (".jsonl", lambda: b'{"a": ' + b"9" * 5_000 + b"}"),
    "records of one number": (".json", lambda: b"[" + b"1," * 210 * K + b"1]"),
    "nested parts of mail": (".eml", lambda: b"Subject: x\n" + numbered(_PART, 9_990)),
    "mail within mail": (".eml", lambda: b"Subject: x\n" + b"Content-Type: message/rfc822\n\n" * 5_000 + b"x"),
    "a header of encoded words": (".eml", lambda: b"Subject: " + b"=?utf-8?q?a?= " * 100 * K + b"\n\nx"),
    "a header of many lines": (".eml", lambda: b"A: b\n" * 500 * K + b"\nx"),
    "a header of comments": (".eml", lambda: b"Subject: a\nTo: " + b"(" * 200 * K + b"\n\nx"),
    "a charset that is none": (".eml", lambda: b"Subject: a\nContent-Type: text/plain; charset=idna\n\nx \xff"),
    "a line that looks like many messages": (".mbox", lambda: b"From " + b"10:00" * 100 * K),
    "a ZIP in a ZIP in a ZIP": (".docx", _nested_zip),
    "a directory that lies": (".docx", _lying_zip),
    "a bomb": (".docx", lambda: docx(" " * 40_000 * K)),
    "a billion laughs": (".docx", lambda: _xml("<p><r><t>&a11;</t></r></p>", _LAUGHS)),
    "an entity from outside": (".docx", lambda: _xml("&e;", "<!DOCTYPE d [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>")),
    "a long namespace": (
        ".docx",
        lambda: _xml(f"<e xmlns='{'u' * 900 * K}'>{numbered('<a%d/>', 4 * K).decode()}</e>"),
    ),
    "a long namespace of attributes": (
        ".docx",
        lambda: _xml(f"<e xmlns:p='{'u' * 900 * K}' {numbered(_PREFIXED, 4 * K).decode()}/>"),
    ),
    "an element of many attributes in Word": (".docx", lambda: _xml(f"<a{numbered(_BARE, 200 * K).decode()}/>")),
    "deep elements in Word": (".docx", lambda: _xml("<p>" * 100 * K + "<t>x</t>" + "</p>" * 100 * K)),
    "tables in tables in tables": (
        ".docx",
        lambda: _xml("<tbl><tr><tc><p><t>x</t></p>" * 300 + "</tc></tr></tbl>" * 300),
    ),
    "a level of thousands of digits": (
        ".docx",
        lambda: _xml(f"<p><pPr><outlineLvl val='{'9' * 5_000}'/></pPr><t>x</t></p>"),
    ),
    "styles upon styles": (
        ".docx",
        lambda: docx(
            "<p><t>x</t></p>",
            {
                "styles": "<s>"
                + "".join(f"<style styleId='s{i}'><basedOn val='s{i + 1}'/></style>" for i in range(3_000))
                + "</s>"
            },
        ),
    ),
    "a note cited again and again": (
        ".docx",
        lambda: docx(
            "<p><t>x</t><footnoteReference id='1'/></p>" * 3_000,
            {"footnotes": f"<f><footnote id='1'><p><t>{'y ' * 50 * K}</t></p></footnote></f>"},
        ),
    ),
    "a text shared by many cells": (
        ".xlsx",
        lambda: xlsx(
            "<w><row>" + "<c t='s'><v>0</v></c>" * 100 * K + "</row></w>", f"<s><si><t>{'y ' * 700 * K}</t></si></s>"
        ),
    ),
    "numbers of thousands of digits": (
        ".xlsx",
        lambda: xlsx(
            f"<w><row r='{'9' * 5_000}'><c t='s' s='{'9' * 5_000}'><v>{'9' * 5_000}</v></c><c><v>1</v></c></row></w>"
        ),
    ),
    "empty cells": (".xlsx", lambda: xlsx("<w>" + "<row><c/></row>" * 50 * K + "<row><c><v>1</v></c></row></w>")),
    "a slide shown again and again": (".pptx", lambda: pptx("<s><sp><p><t>x</t></p></sp></s>", 5_000)),
    "groups in groups": (".pptx", lambda: pptx("<s>" + "<g>" * 5_000 + "</g>" * 5_000 + "</s>")),
    "a chapter out of the book": (".epub", lambda: epub("x", "../../../../etc/passwd")),
    "a chapter of odd markup": (".epub", lambda: epub("<div></x>" * 25 * K + "x")),
    "a page tree in a loop": (".pdf", lambda: pdf_pages("/Kids[2 0 R 2 0 R]/Count 1000000")),
    "a million pages": (".pdf", lambda: pdf_pages("/Kids[3 0 R]/Count 1000000")),
    "pages that are not there": (".pdf", lambda: pdf_pages("/Kids[3 0 R]/Count 40000")),
}


def assert_sound(parsed: ParsedDocument) -> None:
    """Blocks are in order and within the text, all that is kept can be stored, and what goes with chunks is short."""
    end = 0
    for block in parsed.blocks:
        assert end <= block.start < block.end <= len(parsed.text)
        assert parsed.text.startswith(block.header, block.start)
        assert all(0 < len(heading) <= 300 for heading in block.headings)
        assert block.page is None or block.page > 0
        end = block.end
    assert parsed.text.strip()
    assert len(parsed.title) <= 300
    assert "\n" not in parsed.title
    json.dumps([parsed.text, parsed.title, dict(parsed.metadata)], ensure_ascii=False).encode()
    assert "\0" not in parsed.text


def outcome(suffix: str, data: bytes) -> str:
    """Return how reading `data` ended: the empty string where it is a sound document, else the reason and remedy."""
    try:
        assert_sound(read(f"a{suffix}", data))
    except InvalidDocument as error:
        assert error.message
        assert error.remedy
        return str(error)
    return ""


def main() -> None:
    """Read each case, printing its name before and how it ended after."""
    for module, name, value in (
        (markup_process, "MAX_MARKUP_BYTES", 300_000_000),
        (markup_process, "MAX_MARKUP_SECONDS", 1),
        (builder, "MAX_BLOCKS", 200_000),
    ):
        setattr(module, name, value)  # as hostile, sooner
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))
    for name, (suffix, build) in CASES.items():
        print(json.dumps({"case": name}), flush=True)
        print(json.dumps({"ended": outcome(suffix, build())}), flush=True)


if __name__ == "__main__":
    main()
