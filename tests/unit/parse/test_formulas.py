"""Tests of formulas of Office documents as LaTeX."""

import time

import pytest

from quipu.parse.formulas import inline_formula, office_formula
from quipu.parse.xml import parse_tree


def formula(body: str) -> str:
    """Return the LaTeX of an `oMath` element; `[x]` in `body` is a run with the text x."""
    runs = body.replace("[", "<r><t>").replace("]", "</t></r>")
    return office_formula(parse_tree(f"<oMath>{runs}</oMath>".encode(), "a.docx"))


@pytest.mark.parametrize(
    ("body", "latex"),
    [
        ("[a=b]", "a=b"),
        ("<f><num>[1]</num><den>[2x]</den></f>", r"\frac{1}{2x}"),
        ("<sSup><e>[10]</e><sup>[-6]</sup></sSup>", "10^{-6}"),
        ("<sSubSup><e>[x]</e><sub>[i]</sub><sup>[2]</sup></sSubSup>", "x_{i}^{2}"),
        ("<sSub><e>[max]</e><sub>[n]</sub></sSub>", r"\max_{n}"),
        ("<rad><deg>[3]</deg><e>[x]</e></rad>", r"\sqrt[3]{x}"),
        ("<rad><radPr/><deg/><e>[x]</e></rad>", r"\sqrt{x}"),
        ('<nary><naryPr><chr val="∑"/></naryPr><sub>[i=1]</sub><sup>[n]</sup><e>[i]</e></nary>', r"\sum_{i=1}^{n} i"),
        ("<nary><sub/><sup/><e>[x]</e></nary>", r"\int x"),
        ("<d><e>[a]</e></d>", "(a)"),
        ('<d><dPr><begChr val="{"/><endChr val=""/></dPr><e>[a]</e></d>', r"\{a"),
        ("<func><fName>[sin]</fName><e>[x]</e></func>", r"\sin{x}"),
        ("[sin\u2061θ]", r"\sin θ"),
        ('<acc><accPr><chr val="⃗"/></accPr><e>[v]</e></acc>', r"\vec{v}"),
        ("<limLow><e>[lim]</e><lim>[n→∞]</lim></limLow>", r"\lim_{n→∞}"),
        (
            "<m><mr><e>[1]</e><e>[0]</e></mr><mr><e>[0]</e><e>[1]</e></mr></m>",
            r"\begin{matrix}1 & 0 \\ 0 & 1\end{matrix}",
        ),
        ("<bar><e>[x]</e></bar>", r"\overline{x}"),
        ("<borderBox><e>[x]</e></borderBox>", "x"),
        ("[5 %]", r"5 \%"),
    ],
)
def test_an_element_has_its_latex(body: str, latex: str) -> None:
    assert formula(body) == latex


def test_a_formula_that_nests_too_deep_shows_its_letters() -> None:
    nested = "[x]"
    for _ in range(20_000):
        nested = f"<rad><e>{nested}</e></rad>"
    assert formula(nested) == "x"


@pytest.mark.parametrize(
    ("latex", "inline"),
    [
        ("a=b", "$a=b$"),
        ("", ""),
        ("$", r"$\$$"),
        ("$x$", "$x$"),
        ("$$ x $$", "$x$"),
        (r"5\$ or 3$", r"$5\$ or 3\$$"),
        (r"a \\$b", r"$a \\\$b$"),
        ("x\\", "$x\\ $"),
    ],
)
def test_no_dollar_sign_of_a_formula_ends_it(latex: str, inline: str) -> None:
    assert inline_formula(latex) == inline


def test_a_formula_of_a_million_letters_takes_linear_time() -> None:
    start = time.process_time()
    assert len(formula(f"[{'a' * 1_000_000}]")) == 1_000_000
    assert time.process_time() - start < 5
