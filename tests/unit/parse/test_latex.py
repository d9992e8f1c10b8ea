"""Tests of the parser of LaTeX."""

from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, texts


def latex(*lines: str) -> ParsedDocument:
    return read("a.tex", "\n".join(("\\begin{document}", *lines, "\\end{document}")).encode())


def test_sections_make_the_path_and_commands_are_reduced_to_their_text() -> None:
    parsed = latex("\\section{Roads}", "To \\emph{Rome} % not read", "", "\\begin{itemize}\\item One\\end{itemize}")
    assert texts(parsed) == ["Roads", "To Rome", "- One"]
    assert parsed.blocks[1].headings == ("Roads",)


def test_the_columns_of_a_table_are_no_text_however_they_are_declared() -> None:
    for columns in ("{ll}", "{@{}p{3cm}l@{}}", "[t]{|>{\\bf}l|r|}"):
        parsed = latex(f"\\begin{{tabular}}{columns}", "Road & Year \\\\", "Appia & old", "\\end{tabular}")
        assert texts(parsed) == ["Road | Year\nAppia | old"]
    wide = latex("\\begin{tabularx}{\\textwidth}{lX}", "{\\bf Road} & Year", "\\end{tabularx}")
    assert texts(wide) == ["Road | Year"]


def test_a_row_may_end_right_before_the_next_and_a_rule_below_the_first_marks_the_header() -> None:
    parsed = latex(
        *("\\begin{tabular}{ll}", "1 & 2\\\\[2pt]", "\\midrule", "% no & row \\\\"),
        *("Ann & Bob\\\\Carl & Dora", "\\end{tabular}"),
    )
    assert texts(parsed) == ["1 | 2\nAnn | Bob\nCarl | Dora"]
    assert parsed.blocks[0].header == "1 | 2"
