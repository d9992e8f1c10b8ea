"""Tests of the parser of XML documents."""

from tests.unit.parse.files import read, texts


def test_titles_are_headings_and_values_are_lines() -> None:
    parsed = read(
        "a.xml", b'<?xml version="1.0"?><book><title>Roads</title><para>To <b>Rome</b>.</para><n>3</n></book>'
    )
    assert texts(parsed) == ["Roads", "To Rome.", "n: 3"]
    assert parsed.title == "Roads"


def test_a_declaration_that_is_quoted_stays_in_the_text() -> None:
    quoted = b"<a><para>x</para><screen><![CDATA[<?xml version='1.0'?><b/>]]></screen></a>"
    assert texts(read("a.xml", quoted)) == ["x", "<?xml version='1.0'?><b/>"]


def test_text_at_the_end_of_the_outermost_element_is_read() -> None:
    assert texts(read("a.xml", b"<a><n>3</n>Rome</a>")) == ["n: 3\na: Rome"]


def test_a_million_spaces_are_read_at_once() -> None:
    assert read("a.xml", b"<a>" + b" " * 1_000_000 + b"x</a>").text == "a: x"
