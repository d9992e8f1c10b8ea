"""References: what names a passage, and what it refers to."""

import pytest

from quipu.text.references import (
    BEGINS,
    LINKS_TO,
    MAX_PHRASE_TERMS,
    document_key,
    number_of_heading,
    reference_keys,
    references_in,
    section_number,
    words_of,
)
from quipu.text.words import split_words

PAGE = """# 4.2 Timeouts

See Table 2, [the network](net.md#dns-lookup) and [home](../index.md), or [Quipu](https://example.org/a.md).

Table 2: limits

| Setting | Value |
|---|---|
| Max retries | 3 |

**Latency** (ms): time between two events.
A backoff is a pause that grows.
"""


def _keys(text: str, title: str = "", *, is_first: bool = False) -> set[str]:
    return set(reference_keys(text, "docs/a.md", title, is_first=is_first))


def test_headings_terms_captions_and_rows_name_a_passage() -> None:
    assert _keys(PAGE) >= {"=timeout", "=section 4.2", "=table 2", "=max retr", "=latenc", "=backoff"}


def test_the_title_and_the_document_name_its_first_passage_alone() -> None:
    first = _keys("Nothing.", "The night mail (film)", is_first=True)
    assert first == {"=night mail", document_key(BEGINS, "docs/a.md")}
    assert _keys("Nothing.", "The night mail (film)") == set()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Latency\nThe time between two events.", "=latenc"),
        ("Latency\n-------\nThe time.", "=latenc"),
        ("== Latency ==\nThe time.", "=latenc"),
        ("- `--retries`: how often.", "=retr"),
        ("Задержка — это время между событиями.", "=задержк"),
        ("超时是指等待的上限。", "=超时"),
        ("Таблица 3. Пределы", "=table 3"),
        ("图2：结构", "=figure 2"),
        ("## Appendix B: Limits", "=appendix B"),
        ("# 第3章 安装", "=section 3"),
    ],
)
def test_each_form_of_a_name(text: str, key: str) -> None:
    assert key in _keys(text)


@pytest.mark.parametrize("text", ["", "| |\n|---|", "2024", "It rained all day, and the mail was late again.", "# ?"])
def test_a_text_without_a_name_has_no_key(text: str) -> None:
    assert _keys(text) == set()


def test_links_lead_to_documents_and_their_sections_beside_this_one() -> None:
    references = references_in(PAGE, split_words(PAGE), "docs/a.md")
    assert references.keys_in_document == {("=dns lookup", "docs/net.md"), ("=table 2", "docs/a.md")}
    assert document_key(BEGINS, "index.md") in references.keys
    assert document_key(BEGINS, "https://example.org/a.md") not in references.keys
    assert _keys(PAGE) >= {document_key(LINKS_TO, "docs/net.md"), document_key(LINKS_TO, "index.md")}
    assert document_key(LINKS_TO, "docs/a.md") in references.keys  # who links to this document


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("as in tables 2 and 3", "=table 2"),
        ("см. таблицу 2", "=table 2"),
        ("见表2", "=table 2"),
        ("see fig. 4", "=figure 4"),
        ("in chapter 4.2", "=section 4.2"),
        ("§4.2 says", "=section 4.2"),
        ("в приложении Б", "=appendix Б"),
    ],
)
def test_a_number_means_this_document(text: str, key: str) -> None:
    assert (key, "docs/a.md") in references_in(text, split_words(text), "docs/a.md").keys_in_document


def test_phrases_refer_in_other_forms_and_never_across_sentences() -> None:
    text = "It sets the maximum retries. Latency grows."
    references = references_in(text, split_words(text), "a").keys
    assert "=maximum retr" in references
    assert not any("retr latenc" in key for key in references)
    assert max(key.count(" ") for key in references) < MAX_PHRASE_TERMS


def test_a_key_holds_no_character_that_a_database_refuses() -> None:
    keys = _keys("# One\0two\n[a](b\0c.md#d\0e) and [f](" + 500 * "g" + ")", "T\0", is_first=True)
    assert keys
    assert not any("\0" in key for key in keys)
    text = "[a](b\0c.md#d\0e)"
    references = references_in(text, split_words(text), "x\0y")
    assert not any("\0" in key for key in (*references.keys, *(key for key, _ in references.keys_in_document)))


@pytest.mark.parametrize(
    ("phrase", "text", "words"),
    [
        ("backoff polic", "Our Backoff policies differ.", "Backoff policies"),
        ("limit tim", "The limit of the time", "limit of the time"),
        ("超时 时设 设置", "见超时设置。", "超时设置"),
        ("git 设置", "见 git 设置。", "git 设置"),
        ("caf", "un café", "café"),
        ("cafe", "un café", "cafe"),
    ],
)
def test_a_phrase_is_shown_as_the_text_has_it(phrase: str, text: str, words: str) -> None:
    assert words_of(phrase, text) == words


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("What happens in stave two?", "sta", "2"),
        ("Summarise chapter XIV.", "cha", "14"),
        ("the 3rd section", "sec", "3"),
        ("Section 4.1 of the manual", "sec", "4.1"),
        ("the twelfth part", "par", "12"),
        ("О чём ЧЕТВЁРТАЯ глава?", "гла", "4"),
        ("Что происходит в части третьей?", "час", "3"),
        ("3-я глава", "гла", "3"),
        ("西游记第二十三回讲了什么？", "回", "23"),
        ("第十章", "章", "10"),
        ("Which act is a civil one?", "", ""),
        ("the seventeenth chapter", "", ""),
        ("Summarise the two parts.", "", ""),
        ("I read one book.", "", ""),
    ],
)
def test_the_number_of_a_section_is_read_however_it_is_written(text: str, kind: str, number: str) -> None:
    assert section_number(text) == ((kind, number) if number else None)


@pytest.mark.parametrize(
    ("heading", "kind", "number"),
    [
        ("STAVE ONE", "sta", "1"),
        ("## 3. Usage", "", "3"),
        ("4.1 Limits", "", "4.1"),
        ("IX.", "", "9"),
        ("XL) The road", "", "40"),
        ("A.2 Limits", "", "A.2"),
        ("\u0131. The road", "", "0"),  # no Roman numeral, but equal to one when case is ignored
        ("Глава II. Дорога", "гла", "2"),
        ("第七回：八卦炉", "回", "7"),
        ("The road of chapter 3", "", ""),
        ("Mix", "", ""),
    ],
)
def test_a_heading_begins_with_its_number(heading: str, kind: str, number: str) -> None:
    assert number_of_heading(heading) == ((kind, number) if number else None)
