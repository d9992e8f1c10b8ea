"""Character error rates of text recognition on scans made from known text: three languages, clean, turned and noisy.

`python -m benchmarks.recognition` needs the extra `ocr`, Tesseract's languages eng, rus, chi_sim and osd, and the fonts
DejaVu and WenQuanYi. The rate is the edit distance without spaces, by the length of the text.
"""

import resource

from quipu.errors import InvalidDocument
from quipu.model.document import SourceDocument
from quipu.parse import parse
from tests.unit.parse.scans import TEXTS, character_error_rate, lines_of_part, scan, scanned_pdf

VARIANTS = {
    "clean": {},
    "turned by 1 degree": {"degrees": 1.0},
    "lying on its side": {"degrees": 90.0},
    "2 % noise": {"noise": 0.02},
    "10 % noise": {"noise": 0.1},
}


def main() -> None:
    """Print a row for each language, resolution and variant."""
    print("| language | dpi | scan | characters wrong, % | confidence, % | CPU s |\n|---|---|---|---|---|---|")
    for language, lines in TEXTS.items():
        for dpi in (300, 150):
            for name, options in VARIANTS.items():
                n_parts = max(1, len(lines) // 4)
                before = _child_seconds()
                pictures = [scan(language, part, dpi=dpi, **options) for part in range(n_parts)]
                rate, confidence = _measure(scanned_pdf(pictures, dpi), language, n_parts)
                seconds = _child_seconds() - before
                print(f"| {language} | {dpi} | {name} | {rate} | {confidence} | {seconds / n_parts:.1f} |", flush=True)


def _measure(content: bytes, language: str, n_parts: int) -> tuple[str, object]:
    expected = "".join("".join(lines_of_part(language, part)) for part in range(n_parts))
    source = SourceDocument(id="a.pdf", source="a.pdf", content=content, media_type="application/pdf")
    try:
        parsed = parse(source)
    except InvalidDocument as error:
        return f"refused: {error}", "-"
    return f"{100 * character_error_rate(parsed.text, expected):.1f}", parsed.metadata["recognition_confidence"]


def _child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
