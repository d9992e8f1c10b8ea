"""Scans for tests and benchmarks: pictures of known text as pages of a PDF, turned, noisy, at several resolutions."""

import random
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from quipu.parse.recognition import DATA_FOLDERS

FONTS = {
    "eng": "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf",
    "rus": "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf",
    "chi_sim": "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
}
TEXTS = {
    "eng": (
        "The harbour office of Nordhaven counted 1,204 crates of glass in 1947.",
        "They came by ferry from the north, and nobody knew where the second",
        "ledger had gone that year. The customs officer wrote a letter to the",
        "ministry and asked for a copy of the list.",
        "The answer came in April: no list had ever been made, it said, since",
        "the crates belonged to a company that had been dissolved before the",
        "war. Its last director, a Mr. Halvorsen, lived in a house behind the",
        "fish market and refused to receive visitors.",
        "Seven years later a student found 38 pages of accounts in the attic",
        "of the town hall; prices, names and dates were written in blue ink.",
        "She copied them by hand, compared the sums with the tax rolls, and",
        "showed that only 960 crates had been paid for.",
    ),
    "rus": (
        "Договор поставки от 3 марта 2021 года подписан в Москве. Поставщик",
        "передаёт покупателю сорок тонн ячменя, а покупатель оплачивает товар",
        "в течение десяти дней после получения.",
    ),
    "chi_sim": (
        "港务局在去年春天统计了一千二百箱玻璃，这些货物由渡轮从北方运来。",
        "海关官员给部里写信，要求得到名单的副本，但是没有人知道账本在哪里。",
    ),
}
_POINTS = 11
_WIDTH, _HEIGHT = 8.27, 3.0  # inches: short pages are read faster


def needs_languages(*languages: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where Tesseract, the data of a language or a font is missing."""
    missing = [] if find_spec("tesserocr") else ["tesserocr (pip install 'quipu-rag[ocr]')"]
    for name in (*languages, "osd"):
        if not any((Path(folder) / f"{name}.traineddata").exists() for folder in DATA_FOLDERS):
            missing.append(f"tesseract-ocr-{name.replace('_', '-')}")
    missing += [FONTS[name] for name in languages if not Path(FONTS[name]).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def scan(language: str, part: int = 0, *, dpi: int = 300, degrees: float = 0, noise: float = 0) -> Image.Image:
    """Return a part of the text of a language as a scanned page, turned, with noise in a share of its pixels."""
    picture = Image.new("L", (int(_WIDTH * dpi), int(_HEIGHT * dpi)), 255)
    draw = ImageDraw.Draw(picture)
    size = round(_POINTS / 72 * dpi)
    font = ImageFont.truetype(FONTS[language], size)
    for index, line in enumerate(lines_of_part(language, part)):
        draw.text((0.9 * dpi, 0.9 * dpi + 1.5 * size * index), line, font=font, fill=20)
    if degrees:
        picture = picture.rotate(degrees, resample=Image.Resampling.BICUBIC, fillcolor=255, expand=degrees % 90 == 0)
    return with_noise(picture, noise) if noise else picture


def with_noise(picture: Image.Image, share: float) -> Image.Image:
    """Return the picture with a share of its pixels in random grey; the same pixels each time."""
    chosen = random.Random(7)
    pixels = bytearray(picture.tobytes())
    for index in chosen.sample(range(len(pixels)), int(share * len(pixels))):
        pixels[index] = chosen.randrange(256)
    return Image.frombytes("L", picture.size, bytes(pixels))


def scanned_pdf(pictures: Sequence[Image.Image], dpi: int = 300) -> bytes:
    """Return a PDF with a picture on each page."""
    stream = BytesIO()
    pictures[0].save(stream, "PDF", resolution=dpi, save_all=True, append_images=pictures[1:])
    return stream.getvalue()


def lines_of_part(language: str, part: int) -> Sequence[str]:
    """Return four lines of the text of a language."""
    return TEXTS[language][4 * part : 4 * part + 4]


def character_error_rate(text: str, expected: str) -> float:
    """Return the edit distance of two texts without spaces, by the length of the expected one."""
    first, second = "".join(text.split()), "".join(expected.split())
    row = list(range(len(second) + 1))
    for index, letter in enumerate(first, 1):
        above = row
        row = [index]
        for column, other in enumerate(second, 1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != other)))
    return row[-1] / max(1, len(second))
