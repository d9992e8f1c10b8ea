"""Tests of the parser of Org mode."""

from tests.unit.parse.files import read, texts


def test_a_heading_loses_its_state_and_its_tags_and_keeps_its_words() -> None:
    parsed = read("a.org", b"* DONE [#A] Roads :old:rome:\nTo Rome.\n** A : b :c\nx\n")
    assert texts(parsed) == ["Roads", "To Rome.", "A : b :c", "x"]
    assert parsed.blocks[1].headings == ("Roads",)
    assert parsed.title == "Roads"


def test_a_heading_with_a_million_spaces_is_read_at_once() -> None:
    assert texts(read("a.org", b"* a" + b" " * 1_000_000 + b"b\n\nx"))[0] == "a b"


def test_a_block_that_does_not_end_is_text_and_many_are_read_at_once() -> None:
    assert texts(read("a.org", b"#+begin_src c\nx = 1;\n#+end_src\n#+begin_quote\nTo Rome.")) == [
        "```c\nx = 1;\n```",
        "To Rome.",
    ]
    starts = "".join(f"#+begin_q{n}\n" for n in range(20_000))
    assert texts(read("a.org", f"{starts}To Rome.".encode())) == ["To Rome."]
