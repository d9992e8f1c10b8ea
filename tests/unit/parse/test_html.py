"""Tests of the HTML parser."""

import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.html import HtmlParser


def read(markup: str | bytes) -> ParsedDocument:
    data = markup if isinstance(markup, bytes) else markup.encode()
    return HtmlParser().parse(SourceDocument(id="a", content=data, source="a.html", media_type="text/html"))


def test_inline_elements_join_and_blocks_are_a_blank_line_apart() -> None:
    assert (
        read("<p>A <b>lo</b>ng&nbsp;\n road &amp; more</p>loose<div>last</div>").text
        == "A long road & more\n\nloose\n\nlast"
    )


def test_exponents_and_the_marks_of_footnotes_stay_raised() -> None:
    text = "<p>10<sup>−6</sup> m<sup>2</sup>, as<sup><a href='#n'>3</a></sup> H<sub>2</sub>O, 20<sup>th</sup>"
    assert read(f"{text}</p>").text == "10⁻⁶ m², as³ H2O, 20th"
    assert read("<table><tr><td>Oslo</td><td>1,200<sup>2</sup></td></tr></table>").text == "Oslo | 1,200²"


def test_one_line_break_ends_a_line_and_two_a_paragraph() -> None:
    assert read("<p>a<br>b<br><br>c</p>").text == "a\nb\n\nc"


def test_a_term_and_its_explanation_are_one_paragraph() -> None:
    terms = "<dt>-n</dt><dt>--night</dt><dd><p>Walk.</p><p>Slowly.</p></dd><dt>-q</dt><dd><pre>q</pre>Say less.</dd>"
    assert (
        read(f"<p>Options:</p><dl>{terms}<dt>last</dt></dl><p>Text.</p>").text
        == "Options:\n\n-n\n--night\nWalk.\n\nSlowly.\n\n-q\n\n```text\nq\n```\n\nSay less.\n\nlast\n\nText."
    )
    assert read("<ul><li>a<dl><dt>b</dt><dd>c</dd></dl></li></ul>").text == "- a\n  b\n  c"
    assert [block.kind for block in read("<dl><dt>a</dt><dd><ul><li>b</li></ul></dd></dl>").blocks] == [
        "paragraph",
        "list",
    ]


@pytest.mark.parametrize(
    "noise",
    [
        "<script>x</script>",
        "<style>x</style>",
        "<nav>x</nav>",
        "<header>x</header>",
        "<footer>x</footer>",
        "<aside>x</aside>",
        "<form>x</form>",
        "<noscript>x</noscript>",
        "<template>x</template>",
        "<p hidden>x</p>",
        '<p aria-hidden="true">x</p>',
        '<p style="color:red; display : none">x</p>',
        '<p style="VISIBILITY:hidden">x</p>',
        "<!-- x -->",
        "<svg><text>x</text></svg>",
        "<button>x</button>",
    ],
)
def test_what_is_not_the_pages_text_is_left_out(noise: str) -> None:
    assert read(f"<p>a</p>{noise}<p>b</p>").text == "a\n\nb"


def test_the_header_of_an_article_is_text() -> None:
    assert read("<article><header><h1>Road</h1></header><p>a</p></article>").text == "Road\n\na"


def test_a_page_that_is_all_form_is_read_whole() -> None:
    assert read("<form><p>a</p><script>x</script></form>").text == "a"


def test_headings_make_the_path_and_the_first_h1_the_title() -> None:
    parsed = read("<h2>Zero</h2><h1>The <em>Road</em></h1><p>a</p><h2>Parts</h2><p>b</p><h1>Next</h1>c")
    assert parsed.title == "The Road"
    assert [(block.kind, block.headings) for block in parsed.blocks] == [
        ("heading", ()),
        ("heading", ()),
        ("paragraph", ("The Road",)),
        ("heading", ("The Road",)),
        ("paragraph", ("The Road", "Parts")),
        ("heading", ()),
        ("paragraph", ("Next",)),
    ]


def test_the_only_heading_is_the_title_and_with_several_it_is_the_one_the_page_declares() -> None:
    assert read("<title>Road - Site</title><h1>The Road</h1><p>a").title == "The Road"
    assert read("<title>The Road</title><h1>1. Start</h1><p>a<h1>2. End</h1><p>b").title == "The Road"


@pytest.mark.parametrize(
    "noise",
    [
        '<a class="headerlink" href="#road">¶</a>',
        '<a href="#road"> # </a>',
        '<a href="#content">Skip to content</a>',
        '<p><a href="#top">[Back to top]</a>',
        '<p><a href="#">(наверх)</a>',
        '<div class="navheader">x</div>',
        '<div role="navigation">x</div>',
        '<ul class="toc small"><li>x</ul>',
        '<div class="fancy_toc"><a href="#x">x</a></div>',
        '<div id="toc2">x</div>',
        '<div class="menu mainmenu"><ul><li>x</ul></div>',
        '<ul class="docnav top"><li>x</ul>',
        '<div id="banner"><a href="/get">x</a></div>',
        '<p><a href="https://example.org"><img alt="x" src="x.png"></a>',
        '<div id="footer">x</div>',
    ],
)
def test_what_is_marked_as_part_of_the_site_is_left_out(noise: str) -> None:
    assert read(f"<p>a</p>{noise}<p>b</p>").text == "a\n\nb"


def test_what_holds_the_page_itself_is_read_whatever_it_is_called() -> None:
    assert read('<body class="sidebar"><p>a</p>').text == "a"
    assert read('<div id="footer"><h1>Road</h1><p>a</p></div><p>b</p>').text == "Road\n\na\n\nb"
    assert read('<div class="toc"><p>a</p></div>').text == "a"
    assert read('<p>See <a href="#b">the part on roads</a>.</p>').text == "See the part on roads."


def test_without_a_heading_the_title_is_the_pages() -> None:
    assert read("<title> A\n page </title><p>a</p>").title == "A page"
    assert read("<p>a</p>").title == ""


def test_an_unclosed_heading_does_not_swallow_the_page_as_a_heading() -> None:
    parsed = read("<h1>Road<div>" + "<p>long text</p>" * 100)
    assert [block.kind for block in parsed.blocks] == ["paragraph"]


def test_a_list_is_one_block_with_a_line_for_each_item() -> None:
    parsed = read("<ul><li>one<li><p>two</p><p>more</p><ol><li>a</li><li>b</li></ol></li></ul><p>end</p>")
    assert parsed.text == "- one\n- two\n  more\n  1. a\n  2. b\n\nend"
    assert [block.kind for block in parsed.blocks] == ["list", "paragraph"]


def test_a_table_is_one_block_with_a_line_for_each_row() -> None:
    parsed = read(
        "<table><caption>Kings</caption><tr><th>Name<th>Year</tr>"
        "<tr><td><p>Ann</p><td>1901<br>or so</tr><tr><td><td></tr></table>"
    )
    assert parsed.text == "Kings\nName | Year\nAnn | 1901 or so"
    assert [block.kind for block in parsed.blocks] == ["table"]


@pytest.mark.parametrize(
    ("table", "header"),
    [
        ("<tr><th>Name<th>Year</tr><tr><td>Ann<td>1901</tr>", "Name | Year"),
        ("<caption>Kings</caption><tr><th>Name</tr><tr><th>of birth</tr><tr><td>Ann</tr>", "Kings\nName\nof birth"),
        ("<thead><tr><td>Name<td>Year</tr></thead><tr><td>Ann<td>1901</tr>", "Name | Year"),
        ("<tr><th>Name<td>Ann</tr><tr><th>Year<td>1901</tr>", ""),
        ("<tr><td>Ann<td>1901</tr><tr><th>Name<th>Year</tr>", ""),
        ("<tr><th>Name<th>Year</tr>", ""),
    ],
)
def test_the_header_of_a_table_is_its_rows_of_headings(table: str, header: str) -> None:
    parsed = read(f"<p>a</p><table>{table}</table><table><tr><td>x</table>")
    assert [block.header for block in parsed.blocks] == ["", header, ""]
    assert parsed.text[parsed.blocks[1].start :].startswith(header)


def test_a_table_that_places_things_is_read_as_blocks() -> None:
    parsed = read("<table><tr><td><h2>Road</h2><p>a</p><table><tr><td>x<td>y</table></table>")
    assert parsed.text == "Road\n\na\n\nx | y"
    assert [block.kind for block in parsed.blocks] == ["heading", "paragraph", "table"]


def test_preformatted_text_keeps_its_lines() -> None:
    parsed = read("<p>a</p><pre>\ndef f():\n    return  1\n\n</pre><p>b</p>")
    assert parsed.text == "a\n\n```text\ndef f():\n    return  1\n```\n\nb"
    assert [block.kind for block in parsed.blocks] == ["paragraph", "code", "paragraph"]


@pytest.mark.parametrize(
    "markup",
    [
        '<pre class="sourceCode sh">{}</pre>',
        '<pre><code class="language-sh hljs">{}</code></pre>',
        '<div class="highlight-sh notranslate"><div class="highlight"><pre>{}</pre></div></div>',
        '<div class="highlight highlight-source-sh"><pre>{}</pre></div>',
    ],
)
def test_code_keeps_its_language(markup: str) -> None:
    assert read(markup.format("ls -l\nrm x")).text == "```sh\nls -l\nrm x\n```"


def test_code_with_an_element_for_each_line_and_with_backticks_is_one_block() -> None:
    parsed = read("<pre><div>echo `date`</div><div>echo ```x```</div></pre>")
    assert parsed.text == "````text\necho `date`\necho ```x```\n````"


def test_code_in_a_list_stays_in_its_item() -> None:
    text = read("<ul><li>Run:<pre>make all</pre></li><li>Wait.</li></ul>").text
    assert text == "- Run:\n```text\nmake all\n```\n- Wait."


def test_preformatted_sentences_are_no_code() -> None:
    letter = "The road to the north is closed,\nand it is said that a storm\nof sand is on the way to us."
    assert read(f"<pre>{letter}</pre>").text == letter


def test_the_declared_charset_is_used() -> None:
    assert read('<meta charset="windows-1251"><p>Москва</p>'.encode("cp1251")).text == "Москва"
    markup = '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>Москва</p>'
    assert read(markup.encode("koi8-r")).text == "Москва"
    assert read('<?xml version="1.0" encoding="iso-8859-1"?><p>café</p>'.encode("latin-1")).text == "café"


def test_entities_cannot_bring_in_what_text_must_not_hold() -> None:
    assert read("<p>e&#769;&#1;&#13;x</p>").text == "é x"


def test_absurd_nesting_is_refused() -> None:
    with pytest.raises(InvalidDocument, match=r"a\.html nest more than"):
        read("<script>'<div>'</SCRIPT>" + "<div>" * 30_000)


def test_many_elements_that_do_not_nest_are_read() -> None:
    assert read("<p>a" * 6_000 + "<div></div>" * 6_000).text.count("a") == 6_000


def test_a_large_page_is_read_the_same_in_a_process_of_its_own() -> None:
    some = "<h1>Roads</h1><p>To Rome.</p><table><tr><th>Name<th>Year</tr><tr><td>Appia<td>312</tr></table>"
    small, large = read(some), read(some + "<i></i>" * 20_000)
    assert small == large
    assert large.blocks[2].header == "Name | Year"


@pytest.mark.parametrize(
    ("markup", "latex"),
    [
        ("<math><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></math>", "E=m{c}^{2}"),
        ("<math><mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac></math>", r"\frac{a}{b+1}"),
        ("<math><msqrt><mi>x</mi></msqrt><mroot><mi>y</mi><mn>3</mn></mroot></math>", r"\sqrt{x}\sqrt[3]{y}"),
        ('<math alttext="E=mc^2"><mi>E</mi></math>', "E=mc^2"),
        (
            '<math><semantics><mi>E</mi><annotation encoding="application/x-tex">E_0</annotation></semantics></math>',
            "E_0",
        ),
    ],
)
def test_a_formula_is_latex_within_its_sentence(markup: str, latex: str) -> None:
    assert read(f"<p>So {markup} holds.</p>").text == f"So ${latex}$ holds."


def test_a_formula_that_nests_too_deep_shows_its_letters_and_a_dollar_sign_does_not_end_it() -> None:
    deep = "<math>" + "<msqrt>" * 150 + "<mi>x</mi>" + "</msqrt>" * 150 + "</math>"
    assert "x" in read(f"<p>So {deep} holds.</p>").text
    text = read('<p>It costs <math alttext="5$+x"><mi>x</mi></math> today.</p>').text
    assert text == r"It costs $5\$+x$ today."


def test_an_empty_formula_leaves_no_signs() -> None:
    assert read("<p>So it <math><mspace/></math> holds.</p>").text == "So it holds."
