"""Tests of the e-mail parser, on messages the standard library writes and on broken ones."""

from email.message import EmailMessage

import pytest

from quipu.errors import InvalidDocument
from quipu.parse import mail
from tests.unit.parse.files import read, text_of, texts


def message(body: str = "The triplets are done.\n\n> Are they?\n> A.") -> EmailMessage:
    made = EmailMessage()
    made["Subject"] = "Триплеты и знаки"
    made["From"] = "Alice Kober <kober@example.org>"
    made["To"] = "John Myres <myres@example.org>, evans@example.org"
    made["Date"] = "Sun, 16 May 1948 09:30:00 +0000"
    made["Message-ID"] = "<1@example.org>"
    made.set_content(body)
    return made


def test_the_subject_is_the_heading_and_quotes_are_kept() -> None:
    parsed = read("a.eml", message().as_bytes())
    assert parsed.title == "Триплеты и знаки"
    assert texts(parsed) == [
        "Триплеты и знаки",
        "From: Alice Kober <kober@example.org>\n"
        "To: John Myres <myres@example.org>, evans@example.org\n"
        "Date: Sun, 16 May 1948 09:30:00 +0000",
        "The triplets are done.",
        "> Are they?\n> A.",
    ]
    assert {block.headings for block in parsed.blocks[1:]} == {("Триплеты и знаки",)}


def test_who_wrote_to_whom_and_when_is_metadata() -> None:
    assert read("a.eml", message().as_bytes()).metadata == {
        "subject": "Триплеты и знаки",
        "from": "Alice Kober <kober@example.org>",
        "to": ("John Myres <myres@example.org>", "evans@example.org"),
        "date": "1948-05-16T09:30:00+00:00",
        "message_id": "1@example.org",
    }


def test_plain_text_is_read_before_html_and_html_where_there_is_no_text() -> None:
    both = message("Plain words.")
    both.add_alternative("<p>Marked up words.</p>", subtype="html")
    assert texts(read("a.eml", both.as_bytes()))[-1] == "Plain words."
    only = message()
    only.set_content("<h2>Signs</h2><p>Marked <b>up</b> words.</p>", subtype="html")
    parsed = read("a.eml", only.as_bytes())
    assert texts(parsed)[-2:] == ["Signs", "Marked up words."]
    assert parsed.blocks[-1].headings == ("Триплеты и знаки", "Signs")


def test_attachments_are_listed_by_name() -> None:
    made = message()
    made.add_attachment("sign,count\na,1", subtype="csv", filename="знаки.csv")
    made.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="tablet.png")
    parsed = read("a.eml", made.as_bytes())
    assert texts(parsed)[-1] == "Attachments: знаки.csv, tablet.png"
    assert "sign,count" not in parsed.text


@pytest.mark.parametrize("charset", ["koi8-r", "windows-1251", "utf-8"])
def test_the_declared_charset_is_used(charset: str) -> None:
    made = message()
    made.set_content("Письмо о знаках.", charset=charset)
    assert texts(read("a.eml", made.as_bytes()))[-1] == "Письмо о знаках."


def test_seven_bit_japanese_is_no_utf8() -> None:
    head = b"Subject: x\nContent-Type: text/plain; charset=iso-2022-jp\n\n"
    assert texts(read("a.eml", head + "文字の手紙".encode("iso-2022-jp")))[-1] == "文字の手紙"


def test_a_wrong_charset_loses_no_message() -> None:
    head = b"Subject: x\nContent-Type: text/plain; charset=no-such\n\n"
    assert texts(read("a.eml", head + b"caf\xe9 and more"))[-1] == "café and more"


@pytest.mark.parametrize("subject", ["=?utf\ufffd8?q?x?=", "=?no-such?b?eA==?=", "=?utf-8?b?x?="])
def test_a_subject_encoded_wrongly_stands_as_it_is(subject: str) -> None:
    assert subject in read("a.eml", f"Subject: {subject}\n\nText.".encode()).text


def test_a_subject_that_was_not_encoded_is_read() -> None:
    assert read("a.eml", "Subject: Привет,\n мир\n\nText.".encode()).title == "Привет, мир"
    assert read("a.eml", "Subject: Café\n\nText.".encode("cp1252")).title == "Café"


def test_a_mailbox_is_its_messages_under_their_subjects() -> None:
    first, second = message("One."), message("From here on, two.")
    second.replace_header("Subject", "Second")
    box = b"".join(b"From kober Sun May 16 09:30:00 1948\n" + each.as_bytes() + b"\n" for each in (first, second))
    parsed = read("a.mbox", box)
    assert [text_of(parsed, block) for block in parsed.blocks if block.kind == "heading"] == [
        "Триплеты и знаки",
        "Second",
    ]
    assert parsed.blocks[-1].headings == ("Second",)
    assert parsed.title == "a"


def test_what_has_no_headers_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="not an e-mail"):
        read("a.eml", b"Just some text without any header.")


def test_absurdly_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "MAX_MAIL_PARTS", 10)
    data = b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 20
    with pytest.raises(InvalidDocument, match="more than 10 lines"):
        read("a.eml", data)


def test_a_message_without_text_is_its_headers_alone_and_refused_without_those() -> None:
    assert texts(read("a.eml", b"Subject: Only this\n\n")) == ["Only this"]
    with pytest.raises(InvalidDocument, match="nothing to index"):
        read("a.eml", b"X-Mailer: y\n\n")
