"""Tests of encoding detection: the encoding that makes the most probable text."""

import random

import pytest

from quipu.parse.encoding import assume_encoding, codec_of

RUSSIAN = (
    "Однажды весною, в час небывало жаркого заката, в Москве, на Патриарших прудах, появились два гражданина. "
    "Первый из них был маленького роста, упитан, лыс; шляпу свою нёс в руке. Второй — плечистый, рыжеватый, вихрастый."
)
SIMPLIFIED = (
    "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？人不知而不愠，不亦君子乎？这段话出自《论语》，讲的是学习的乐趣。"
)
TRADITIONAL = (
    "學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？人不知而不慍，不亦君子乎？這段話出自《論語》，講的是學習的樂趣。"
)
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。"
KOREAN = (
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았다."
)
FRENCH = "L'été dernier, le garçon s'est levé très tôt : où était donc passée la clé du café ? Il l'a cherchée à côté."
GERMAN = "Über den Dächern hörte man Mädchen und Jungen grüßen; die Straße war für Fußgänger gesperrt."
TEXTS = [
    ("windows-1251", RUSSIAN),
    ("koi8-r", RUSSIAN.replace("—", "-")), ("ibm866", RUSSIAN.replace("—", "-")),
    ("gb18030", SIMPLIFIED), ("big5", TRADITIONAL), ("shift_jis", JAPANESE), ("euc-jp", JAPANESE), ("euc-kr", KOREAN),
    ("windows-1252", FRENCH), ("windows-1252", GERMAN),
]  # fmt: skip


@pytest.mark.parametrize(("charset", "text"), TEXTS)
def test_the_encoding_of_two_sentences_is_recognised(charset: str, text: str) -> None:
    assumed = assume_encoding(text.encode(codec_of(charset)))
    assert assumed is not None
    assert (assumed.name, assumed.is_sure) == (charset, True)


@pytest.mark.parametrize(("charset", "text"), TEXTS)
def test_a_foreign_text_within_english_is_recognised(charset: str, text: str) -> None:
    page = f"{'An English page, with some code: x = 1.  ' * 2_000}\n{text}\nand more English."
    assumed = assume_encoding(page.encode(codec_of(charset)))
    assert assumed is not None
    assert assumed.name == charset


def test_a_single_foreign_letter_is_western_and_a_word_that_may_be_either_is_unsure() -> None:
    cafe = assume_encoding(b"a caf\xe9 noir")
    assert cafe is not None
    assert cafe.name == "windows-1252"
    frame = assume_encoding("├── src\n│   └── main\n".encode("ibm866"))
    assert frame is not None
    assert not frame.is_sure


def test_text_with_a_few_bad_bytes_is_in_the_encoding_of_the_rest() -> None:
    assumed = assume_encoding(RUSSIAN.encode() + b"\xff" + RUSSIAN.encode())
    assert assumed is not None
    assert assumed.name == "utf-8"


def test_random_bytes_are_in_no_encoding() -> None:
    assert assume_encoding(random.Random(7).randbytes(20_000)) is None


@pytest.mark.parametrize("charset", ["rot13", "utf-8", "utf-7", "unicode_escape", "windows-1259", ""])
def test_charsets_that_are_unknown_or_unicode_have_no_codec(charset: str) -> None:
    assert codec_of(charset) == ""


def test_the_name_of_a_charset_means_what_browsers_take_it_for() -> None:
    assert [codec_of(name) for name in ("ISO-8859-1", " GB2312", "Shift_JIS", "windows-1251")] == [
        "cp1252", "gb18030", "cp932", "cp1251",
    ]  # fmt: skip
