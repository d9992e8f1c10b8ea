"""Tests of the parsers of XML, Org, LaTeX, Rich Text and OpenDocument."""

import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, texts, zipped

ROW = "<table:table-row>{}</table:table-row>"
CELL = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
ODT = f"""<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b"><office:body><office:text>
<text:p text:style-name="Title">Roads</text:p>
<text:h text:outline-level="1">To <text:span>Rome</text:span></text:h>
<text:p>It was<text:s text:c="2"/>long<text:note><text:note-body><text:p>Very.</text:p></text:note-body></text:note>.
</text:p><text:list><text:list-item><text:p>one</text:p>
<text:list><text:list-item><text:p>two</text:p></text:list-item></text:list></text:list-item></text:list>
<table:table>{ROW.format(CELL.format("Name") + CELL.format("Year"))}
{ROW.format(CELL.format("Appia") + CELL.format("312"))}</table:table>
</office:text></office:body></office:document-content>"""
CREATOR = '<dc:creator xmlns:dc="d">Ann</dc:creator>'
META = f'<office:document-meta xmlns:office="o"><office:meta>{CREATOR}</office:meta></office:document-meta>'


def kinds(parsed: ParsedDocument) -> list[str]:
    return [block.kind for block in parsed.blocks]


def test_a_docbook_is_read_by_its_sections() -> None:
    parsed = read(
        "a.xml",
        b"<?xml version='1.0'?><book><title>Roads</title><chapter><title>To <emphasis>Rome</emphasis></title>"
        b"<para>It was <code>long</code>.</para><programlisting>a\n  b</programlisting><para>End.</para></chapter>"
        b"<appendix><title>Notes</title><para>One.</para></appendix></book>",
    )
    assert parsed.title == "Roads"
    assert texts(parsed) == ["Roads", "To Rome", "It was long.", "a\n  b", "End.", "Notes", "One."]
    assert kinds(parsed)[3] == "code"
    assert [block.headings for block in parsed.blocks][4:] == [("Roads", "To Rome"), ("Roads",), ("Roads", "Notes")]


def test_other_xml_is_a_line_for_each_value() -> None:
    parsed = read("pom.xml", b"<project><name>road</name><version>1</version><part><id>b</id></part></project>")
    assert texts(parsed) == ["name: road\nversion: 1\nid: b"]


def test_entities_of_an_xml_file_are_not_expanded() -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY b "xx"><!ENTITY c "&b;&b;&b;">]><a><p>&c; &amp; more</p></a>'
    assert texts(read("a.xml", bomb)) == ["c & more"]
    external = b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a><p>x&b;</p></a>'
    assert texts(read("a.xml", external)) == ["xb"]


@pytest.mark.parametrize("content", [b"<a><b></a>", b"<a>" * 300 + b"x" + b"</a>" * 300, b"no xml"])
def test_invalid_and_absurd_xml_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidDocument) as caught:
        read("a.xml", content)
    assert caught.value.remedy


def test_the_encoding_that_an_xml_file_declares_is_used() -> None:
    content = '<?xml version="1.0" encoding="windows-1251"?><a><p>Москва</p></a>'.encode("cp1251")
    assert texts(read("a.xml", content)) == ["Москва"]


def test_org_headings_lists_tables_and_code_are_blocks() -> None:
    parsed = read(
        "a.org",
        b"#+TITLE: Roads\n#+AUTHOR: Ann\n* TODO [#A] To Rome :tag:\n:PROPERTIES:\n:ID: 1\n:END:\n"
        b"It was *long*, see\n[[https://a][the site]].\n- one\n- two\n| a | b |\n|---+---|\n| 1 | 2 |\n"
        b"#+begin_src sh\nls\n#+end_src\n: x\n",
    )
    assert (parsed.title, dict(parsed.metadata)) == ("Roads", {"author": "Ann"})
    code = ["```sh\nls\n```", "```text\nx\n```"]
    assert texts(parsed) == ["To Rome", "It was long, see the site.", "- one\n- two", "a | b\n1 | 2", *code]
    assert kinds(parsed) == ["heading", "paragraph", "list", "table", "code", "code"]
    assert parsed.blocks[3].header == "a | b"


def test_latex_is_read_by_its_sections_without_commands() -> None:
    parsed = read(
        "a.tex",
        rb"""\documentclass{article}
\title{The \emph{Road}} \author{Ann}
\begin{document}
\maketitle
\section{To Rome}\label{s}
It was \textbf{very} long~\cite{a}, 100\% of $x^2$. % not this

See \href{https://a.org}{the site}.
\begin{itemize}
\item one
\item[b] two
\end{itemize}
\begin{verbatim}
x = 1 % kept
\end{verbatim}
\begin{tabular}{ll}
Name & Year \\ \hline
Appia & 312 \\
\end{tabular}
\end{document}
Not read.""",
    )
    assert (parsed.title, dict(parsed.metadata)) == ("The Road", {"author": "Ann"})
    assert texts(parsed) == [
        "To Rome", "It was very long , 100% of $x^2$.", "See the site (https://a.org).", "- one\n- b: two",
        "```text\nx = 1 % kept\n```", "Name | Year\nAppia | 312",
    ]  # fmt: skip
    assert parsed.blocks[1].headings == ("To Rome",)


def test_open_document_text_is_read_with_lists_tables_and_notes() -> None:
    mimetype = "application/vnd.oasis.opendocument.text"
    parsed = read("a.odt", zipped({"mimetype": mimetype, "content.xml": ODT, "meta.xml": META}))
    assert (parsed.title, dict(parsed.metadata)) == ("Roads", {"author": "Ann"})
    assert texts(parsed) == ["Roads", "To Rome", "It was  long.", "Very.", "- one\n  - two", "Name | Year\nAppia | 312"]
    assert kinds(parsed) == ["paragraph", "heading", "paragraph", "paragraph", "list", "table"]
