"""Tests of the reading order of PDFs: columns that the file mixes, and pages that stay as the file draws them."""

from tests.unit.parse.files import At, cells, pdf, prose, read, texts

LEFT = [f"The road number {name} led from the valley to the western" for name in "abcdefghijklmnop"]
RIGHT = [f"A courier called {name} carried cords with many knots over" for name in "abcdefghijklmnop"]


def _mixed(left: list[str], right: list[str]) -> list[At]:
    """Return lines of two columns, each line of the left one followed by the line beside it."""
    columns = zip(prose(*left, left=60), prose(*right, left=330), strict=True)
    return [At(line.x, line.y, line.text, 9) for pair in columns for line in pair]


def test_columns_that_the_file_draws_line_by_line_are_read_one_after_the_other() -> None:
    heading = At(60, 740, "A heading that runs over both of the columns of the page and is long enough to cross it", 12)
    parsed = read("a.pdf", pdf([[heading, *_mixed(LEFT, RIGHT)]]))
    assert texts(parsed)[0] == heading.text
    assert " ".join(texts(parsed)[1:]) == " ".join([*LEFT, *RIGHT])


def test_a_running_header_that_is_wider_than_the_left_column_does_not_hide_the_columns() -> None:
    left = [" ".join(line.split()[: 7 + index % 3]) for index, line in enumerate(LEFT)]  # ragged
    header = At(60, 740, "A HISTORY OF ROADS AND COURIERS OF THE NORTH", 9)
    text = " ".join(texts(read("a.pdf", pdf([[header, *_mixed(left, RIGHT)]]))))
    assert text.endswith(" ".join([*left, *RIGHT]))


def test_footnotes_of_both_columns_follow_the_text_of_both() -> None:
    notes = [At(60, 470, "The notes of the left column.", 7), At(330, 470, "Those of the right one.", 7)]
    parsed = read("a.pdf", pdf([[*_mixed(LEFT, RIGHT), *notes, At(280, 40, "Page 4", 9)]]))
    assert " ".join(texts(parsed)) == " ".join([*LEFT, *RIGHT, notes[0].text, "Page 4", notes[1].text])


def test_columns_that_the_file_draws_one_after_the_other_stay_in_its_order() -> None:
    page = [*prose(*RIGHT, left=330), *prose(*LEFT, left=60)]
    parsed = read("a.pdf", pdf([[At(line.x, line.y, line.text, 9) for line in page]]))
    assert " ".join(texts(parsed)) == " ".join([*RIGHT, *LEFT])


def test_terms_and_numbers_beside_text_stay_with_it() -> None:
    terms = [(f"option {name}", "says what the program does with the files") for name in "abcdefghijklmnop"]
    parsed = read("a.pdf", pdf([cells(*terms, lefts=(60, 300))]))
    assert "option a says what the program does" in texts(parsed)[0]
    rows = [(f"Harbour of {name}", str(index), str(900 - index)) for index, name in enumerate("abcdefghijklmnop")]
    assert "Harbour of a | 0 | 900" in read("a.pdf", pdf([cells(*rows, lefts=(60, 300, 400))])).text
