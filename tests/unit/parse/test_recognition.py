"""Tests of text recognition: what scanned pages hold, how sure it is, and what happens where it cannot be read."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from quipu.errors import InvalidDocument
from quipu.model.document import Document, DocumentStatus, ParsedDocument, SourceDocument
from quipu.parse import parse, parse_in_languages, recognition
from quipu.parse.recognition import DATA_FOLDERS, Recognition, page_ranges
from quipu.parse.sandbox import SandboxFailure
from quipu.ports.ingest import ON_PAGES, OnPages
from tests.unit.parse.files import pdf, prose, text_of
from tests.unit.parse.scans import (
    character_error_rate,
    lines_of_part,
    needs_languages,
    scan,
    scanned_pdf,
    with_noise,
)


def recognised(data: bytes, ocr: str = "") -> ParsedDocument:
    """Return `data` parsed as a PDF, with the languages `ocr` named in its metadata."""
    metadata = {"ocr": ocr} if ocr else {}
    return parse(
        SourceDocument(id="a.pdf", source="a.pdf", content=data, media_type="application/pdf", metadata=metadata)
    )


def page_texts(parsed: ParsedDocument) -> dict[int | None, str]:
    """Return the text of each page."""
    texts: dict[int | None, str] = {}
    for block in parsed.blocks:
        texts[block.page] = f"{texts.get(block.page, '')} {text_of(parsed, block)}".strip()
    return texts


@needs_languages("eng", "rus", "chi_sim")
def test_scanned_pages_are_recognised_in_their_languages_even_turned_and_noisy() -> None:
    pages = [
        (scan("eng"), "eng", 0, 0.02),
        (scan("eng", 1, degrees=1), "eng", 1, 0.02),
        (scan("eng", 2, degrees=90), "eng", 2, 0.02),
        (scan("eng", 0, noise=0.02), "eng", 0, 0.1),
        (scan("rus"), "rus", 0, 0.02),
        (scan("chi_sim"), "chi_sim", 0, 0.05),
    ]
    parsed = recognised(scanned_pdf([picture for picture, *_ in pages]))
    texts = page_texts(parsed)
    for page, (_, language, part, most) in enumerate(pages, 1):
        assert character_error_rate(texts[page], "".join(lines_of_part(language, part))) <= most, texts[page]
    assert parsed.metadata["recognised_pages"] == "1-6"
    assert "(chi_sim+eng, eng, rus+eng)" in str(parsed.metadata["recognised_with"])
    assert 80 < int(str(parsed.metadata["recognition_confidence"])) <= 100
    assert "unread_pages" not in parsed.metadata


@needs_languages("eng")
def test_only_pages_without_text_of_their_own_are_recognised_and_illegible_ones_are_named() -> None:
    blank = Image.new("L", (1200, 600), 255)
    pictures = [scan("eng", dpi=200), with_noise(blank, 0.9)]
    parsed = recognised(scanned_pdf(pictures, dpi=200), ocr="eng")
    assert list(page_texts(parsed)) == [1]
    assert parsed.metadata["unread_pages"] == "2"
    assert str(parsed.metadata["unread_reason"]).startswith("They are not legible. Scan them again at 300 dpi")
    assert parsed.metadata["recognised_pages"] == "1"
    assert recognised(pdf([prose("A page with text of its own.")])).metadata == {}


@needs_languages("eng")
def test_a_blank_page_among_scanned_ones_is_named_and_the_others_are_read() -> None:
    blank = Image.new("L", (1200, 600), 255)
    parsed = recognised(scanned_pdf([scan("eng", dpi=200), blank], dpi=200), ocr="eng")
    assert "Nordhaven" in parsed.text
    assert parsed.metadata["unread_pages"] == "2"


@needs_languages("eng", "chi_sim")
def test_a_page_with_too_little_text_to_detect_its_script_is_tried_in_other_languages() -> None:
    parsed = recognised(scanned_pdf([scan("chi_sim", dpi=150)], dpi=150))
    assert character_error_rate(parsed.text, "".join(lines_of_part("chi_sim", 0))) < 0.1
    assert "chi_sim" in str(parsed.metadata["recognised_with"])


@needs_languages("eng")
def test_the_same_scan_gives_the_same_document() -> None:
    data = scanned_pdf([scan("eng", noise=0.01)])
    assert recognised(data, ocr="eng") == recognised(data, ocr="eng")


@needs_languages("eng")
def test_a_language_without_data_is_refused_with_those_installed() -> None:
    with pytest.raises(InvalidDocument, match=r"names the languages 'xyz'") as caught:
        recognised(scanned_pdf([scan("eng", dpi=100)], dpi=100), ocr="eng+xyz")
    assert "eng" in caught.value.remedy


@needs_languages("eng")
@pytest.mark.skipif("sys.platform != 'linux'", reason="the system bounds a process's memory on Linux only")
def test_a_scan_that_takes_too_much_memory_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "MAX_SCAN_BYTES", 60_000_000)
    with pytest.raises(InvalidDocument, match="it is a scan: recognition failed"):
        recognised(scanned_pdf([scan("eng", dpi=100)], dpi=100))


def test_without_tesseract_a_scan_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "find_spec", lambda name: None)
    with pytest.raises(InvalidDocument, match="it is a scan: text recognition is not installed") as caught:
        recognised(scanned_pdf([Image.new("L", (800, 400), 255)], dpi=100))
    assert "quipu-rag[ocr]" in caught.value.remedy
    assert "tesseract-ocr-eng" in caught.value.remedy


def test_recognition_can_be_turned_off() -> None:
    with pytest.raises(InvalidDocument, match="recognition is off"):
        recognised(scanned_pdf([Image.new("L", (800, 400), 255)], dpi=100), ocr="off")


def test_without_tesseract_the_pages_with_text_are_read_and_the_others_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "find_spec", lambda name: None)
    picture = b"q 500 0 0 700 40 40 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"
    parsed = recognised(pdf([prose("A page with text of its own, long enough."), picture]))
    assert parsed.metadata == {
        "unread_pages": "2",
        "unread_reason": f"Text recognition is not installed. {recognition.INSTALL}.",
    }


def fields_of(pages: Sequence[int], **changes: object) -> bytes:
    """Return what the process writes about pages of one line."""
    page = {"lines": [("Legible.", 0, 9, 9, 9, 9)], "tables": [], "confidence": 90, "languages": "eng"} | changes
    return json.dumps({"version": "5", "seconds": 8, "pages": dict.fromkeys(pages, page)}).encode()


def recognised_by(read: Callable[[Sequence[int], int], bytes], patch: pytest.MonkeyPatch, n: int) -> Recognition:
    """Return the recognition of `n` scanned pages by a process that is given pages and seconds."""

    def run(
        script: str,
        arguments: Sequence[int | str],
        content: bytes,
        *,
        max_seconds: int,
        on_pages: OnPages | None,
        **_: object,
    ) -> bytes:
        pages = [int(page) for page in str(arguments[2]).split(",")]
        if on_pages:
            for n_done in range(1, len(pages) + 1):
                on_pages(n_done, len(pages))
        return read(pages, max_seconds)

    patch.setattr(recognition, "find_spec", lambda name: True)
    patch.setattr(recognition, "run_sandboxed", run)
    return recognition.recognise(b"", range(n), "", "a.pdf")


def test_pages_of_a_process_that_fails_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[int], int]] = []

    def read(pages: Sequence[int], max_seconds: int) -> bytes:
        asked.append((list(pages), max_seconds))
        if 3 in pages:
            raise SandboxFailure("crash", -11)
        return fields_of(pages)

    recognised = recognised_by(read, monkeypatch, 10)
    assert sorted(recognised.pages) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert recognised.reason == "recognition failed (crash)"
    assert asked == [(list(range(8)), 240), *(([page], 60) for page in range(8)), ([8, 9], 240)]


def test_progress_does_not_go_back_where_pages_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(pages: Sequence[int], max_seconds: int) -> bytes:
        if len(pages) > 1:
            raise SandboxFailure("crash", -11)
        return fields_of(pages)

    progress: list[tuple[int, int]] = []
    token = ON_PAGES.set(lambda n_done, n_total: progress.append((n_done, n_total)))
    recognised_by(read, monkeypatch, 10)
    ON_PAGES.reset(token)
    assert progress == [(n_done, 10) for n_done in range(1, 11)]


def test_the_time_of_all_pages_is_limited_and_a_failure_counts_as_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "MAX_RECOGNITION_SECONDS", 300)

    def read(pages: Sequence[int], max_seconds: int) -> bytes:
        if 2 in pages:
            raise SandboxFailure("time")
        return fields_of(pages)

    recognised = recognised_by(read, monkeypatch, 100)
    assert sorted(recognised.pages) == [0, 1]  # 240 s together, 8 + 8 s alone, then 60 s
    assert recognised.reason == "recognition takes more than 300 seconds of CPU time"
    assert "Split it" in recognised.remedy


def test_no_more_pages_than_the_limit_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "MAX_SCANS", 9)
    recognised = recognised_by(lambda pages, _: fields_of(pages), monkeypatch, 11)
    assert sorted(recognised.pages) == list(range(9))
    assert recognised.reason == "more than 9 pages are scanned"


def test_the_data_for_a_script_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    recognised = recognised_by(lambda pages, _: fields_of(pages, confidence=30, lacking="chi_sim"), monkeypatch, 1)
    assert recognised.reason == "they are not legible, or in a language without data (chi_sim)"
    assert recognised.remedy.endswith("apt-get install tesseract-ocr-chi-sim")


def test_a_page_of_which_many_words_may_be_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "find_spec", lambda name: True)
    monkeypatch.setattr(recognition, "run_sandboxed", lambda *arguments, **limits: fields_of([0], confidence=84))
    metadata = recognised(scanned_pdf([Image.new("L", (800, 400), 255)], dpi=100)).metadata
    assert metadata["unsure_pages"] == "1"
    document = Document(id="a.pdf", title="", status=DocumentStatus.READY, metadata=metadata)
    assert document.warning == "Scanned pages that may be misread: 1."


@needs_languages("eng")
def test_with_no_language_but_osd_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    osd = next(path for folder in DATA_FOLDERS if (path := Path(folder) / "osd.traineddata").exists())
    (tmp_path / osd.name).symlink_to(osd)
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    with pytest.raises(InvalidDocument, match="no data of a language, only osd") as caught:
        recognised(scanned_pdf([scan("eng", dpi=100)], dpi=100))
    assert "apt-get install tesseract-ocr-eng" in caught.value.remedy


@needs_languages("eng", "rus")
def test_languages_of_the_settings_are_used_where_a_document_names_none() -> None:
    source = SourceDocument(
        id="a.pdf",
        source="a.pdf",
        content=scanned_pdf([scan("eng", dpi=150)], dpi=150),
        media_type="application/pdf",
    )
    metadata = parse_in_languages("rus+eng", source).metadata
    assert "(rus+eng)" in str(metadata["recognised_with"])
    assert "ocr" not in metadata
    own = parse_in_languages("rus", replace(source, metadata={"ocr": "eng"}))
    assert "(eng)" in str(own.metadata["recognised_with"])


def test_page_numbers_are_written_as_ranges() -> None:
    assert page_ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
    assert page_ranges([]) == ""
