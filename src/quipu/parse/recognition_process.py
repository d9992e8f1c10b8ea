"""Recognition process: recognises the text of scanned pages of a PDF with Tesseract; run by quipu.parse.recognition.

It reads the PDF from standard input and writes JSON. `sys.argv` gives the languages ("" to detect them), the largest
number of pixels of a page, and the pages, counted from 0. PDFium renders a page, Tesseract reads the picture, both in
this sandboxed process. One thread only: the same picture gives the same text, and threads would take address space.
"""

import json
import os
import sys
import time
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median

import pypdfium2

from quipu.parse.pdf_process import RawLine, divide
from quipu.parse.pdf_tables import PdfWord, is_ideographic
from quipu.parse.recognition import DATA_FOLDERS

os.putenv("OMP_THREAD_LIMIT", "1")

import tesserocr  # it reads the variable when it is imported

DPI = 300
_POINTS = 72  # per inch
_MIN_WORD_CONFIDENCE = 25  # percent; a word below is dirt on the paper
_MIN_ORIENTATION = 2.0  # confidence of Tesseract that a page lies on its side
_SURE = 80  # percent; below, the languages of other scripts are tried
_MAX_CANDIDATES = 4
_SIMILAR_SIZE = 0.25
_LANGUAGES_BY_SCRIPT = {
    "Cyrillic": ("rus", "ukr", "bul", "srp"),
    "Han": ("chi_sim", "chi_tra"),
    "HanS": ("chi_sim",),
    "HanT": ("chi_tra",),
    "Japanese": ("jpn",),
    "Korean": ("kor",),
    "Hangul": ("kor",),
    "Greek": ("ell",),
    "Arabic": ("ara",),
    "Hebrew": ("heb",),
    "Devanagari": ("hin",),
}


class PageRecogniser:
    """Tesseract with the language data of this computer; each combination of languages is loaded once."""

    def __init__(self, folder: Path, languages: str) -> None:
        self._folder = f"{folder}{os.sep}"
        self._installed = {path.stem for path in folder.glob("*.traineddata")}
        self._languages = languages
        self._apis: dict[str, tesserocr.PyTessBaseAPI] = {}

    def installed(self) -> list[str]:
        """Return the languages with data."""
        return sorted(self._installed - {"osd"})

    def missing(self) -> list[str]:
        """Return the named languages without data."""
        return [name for name in self._languages.split("+") if name and name not in self._installed]

    def read_page(self, page: pypdfium2.PdfPage, max_pixels: int) -> dict[str, object]:
        """Return the lines and tables of a page, the confidence in percent, and the languages."""
        width, height = page.get_size()
        scale = min(DPI / _POINTS, (max_pixels / max(1.0, width * height)) ** 0.5)
        picture = page.render(scale=scale, grayscale=True)
        script, quarter_turns = self._script(picture, scale)
        if quarter_turns:
            picture = page.render(scale=scale, grayscale=True, rotation=quarter_turns)
        words: list[tuple[PdfWord, float]] = []
        confidence, languages = -1, ""
        for candidate in [self._languages] if self._languages else self._candidates(script):
            if confidence < _SURE:
                candidate_words = self._read_words(picture, candidate, scale)
                candidate_confidence = _mean_confidence(candidate_words)
                if candidate_confidence > confidence:
                    words, confidence, languages = candidate_words, candidate_confidence, candidate
        legible = [word for word, percent in words if percent >= _MIN_WORD_CONFIDENCE]
        numbered = [replace(word, place=place) for place, word in enumerate(legible)]
        lines, tables = divide(_lines(numbered), [])
        names = _LANGUAGES_BY_SCRIPT.get(script, ())
        lacking = "" if self._languages or self._installed.intersection(names) else "".join(names[:1])
        return {
            "lines": lines,
            "tables": tables,
            "confidence": confidence,
            "languages": languages,
            "lacking": lacking,
            "turn": quarter_turns,
        }

    def _candidates(self, script: str) -> list[str]:
        """Return the languages of a script and those of others, for a page with too little text to detect one."""
        names = [name for name in _LANGUAGES_BY_SCRIPT.get(script, ()) if name in self._installed]
        known = [name for name in (*names[:1], "eng") if name in self._installed]
        detected = "+".join(known) or self.installed()[0]
        first = [
            next((name for name in names if name in self._installed), "") for names in _LANGUAGES_BY_SCRIPT.values()
        ]
        others = ["+".join([name, *({"eng"} & self._installed)]) for name in dict.fromkeys(first) if name]
        return list(dict.fromkeys([detected, *others]))[:_MAX_CANDIDATES]

    def _read_words(self, picture: pypdfium2.PdfBitmap, languages: str, scale: float) -> list[tuple[PdfWord, float]]:
        api = self._api(languages, tesserocr.PSM.AUTO)
        _show(api, picture, scale)
        api.Recognize()
        return _words(api, scale, picture.height / scale)

    def _script(self, picture: pypdfium2.PdfBitmap, scale: float) -> tuple[str, int]:
        """Return the script of a page ("" if unknown), and the degrees by which to turn it to stand upright."""
        script, turn = "", 0
        if "osd" in self._installed:
            api = self._api("osd", tesserocr.PSM.OSD_ONLY)
            _show(api, picture, scale)
            layout = api.DetectOrientationScript()
            if layout is not None:  # there is enough text
                script = layout["script_name"]
                turn = layout["orient_deg"] if layout["orient_conf"] >= _MIN_ORIENTATION else 0
        return script, (360 - turn) % 360

    def _api(self, languages: str, mode: int) -> tesserocr.PyTessBaseAPI:
        if languages not in self._apis:
            api = tesserocr.PyTessBaseAPI(path=self._folder, lang=languages, psm=mode)
            api.SetVariable("debug_file", os.devnull)
            self._apis[languages] = api
        return self._apis[languages]


def main() -> None:
    """Read the pages; write their lines, or {"error": ...} if Tesseract or a language is missing."""
    languages, max_pixels, pages = sys.argv[1], int(sys.argv[2]), [int(page) for page in sys.argv[3].split(",")]
    json.dump(_read(languages, max_pixels, pages), sys.stdout)


def _read(languages: str, max_pixels: int, pages: list[int]) -> dict[str, object]:
    folders = [Path(folder) for folder in (tesserocr.get_languages()[0], *DATA_FOLDERS)]
    folder = next((folder for folder in folders if any(folder.glob("*.traineddata"))), None)
    if folder is None:
        return {"error": "data", "lacks": "Tesseract has no language data"}
    recogniser = PageRecogniser(folder, languages)
    if not recogniser.installed():
        return {"error": "data", "lacks": f"Tesseract has no data of a language, only osd, in {folder}"}
    if missing := recogniser.missing():
        return {"error": "languages", "missing": missing, "installed": recogniser.installed()}
    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    version = tesserocr.tesseract_version().split("\n")[0].strip()
    read = {}
    for page in pages:
        read[page] = recogniser.read_page(document[page], max_pixels)
        sys.stderr.write(f"{len(read)}/{len(pages)}\n")
    return {"version": version, "pages": read, "seconds": time.process_time()}


def _mean_confidence(words: list[tuple[PdfWord, float]]) -> int:
    """Return the mean confidence of the words in percent, each as often as it has letters."""
    n_letters = sum(len(word.text) for word, _ in words)
    return int(sum(len(word.text) * percent for word, percent in words) / n_letters) if n_letters else 0


def _show(api: tesserocr.PyTessBaseAPI, picture: pypdfium2.PdfBitmap, scale: float) -> None:
    """Give a picture to Tesseract."""
    api.SetImageBytes(bytes(picture.buffer), picture.width, picture.height, picture.n_channels, picture.stride)
    api.SetSourceResolution(round(scale * _POINTS))


def _words(api: tesserocr.PyTessBaseAPI, scale: float, height: float) -> list[tuple[PdfWord, float]]:
    """Return the words of a page with their confidence in percent, illegible ones too, in Tesseract's reading order.

    All words of a line have the baseline of its beginning, because a scan may be turned by a degree. `height` is that
    of the page in points.
    """
    words: list[tuple[PdfWord, float]] = []
    baseline = size = 0.0
    for result in tesserocr.iterate_level(api.GetIterator(), tesserocr.RIL.WORD):
        if result.Empty(tesserocr.RIL.WORD):  # the one result of a blank page
            continue
        if result.IsAtBeginningOf(tesserocr.RIL.TEXTLINE):
            start, _ = result.Baseline(tesserocr.RIL.TEXTLINE) or ((0, 0), (0, 0))
            baseline = round(height - start[1] / scale, 2)
            size = round(result.RowAttributes()["row_height"] / scale, 2)
        confidence = result.Confidence(tesserocr.RIL.WORD)
        text = "".join((result.GetUTF8Text(tesserocr.RIL.WORD) or "").split())
        if text:
            left, _, right, _ = result.BoundingBox(tesserocr.RIL.WORD)
            place = len(words)
            word = PdfWord(text, round(left / scale, 2), round(right / scale, 2), baseline, size or 1.0, place)
            words.append((word, confidence))
    usual = median(word.size for word, _ in words) if words else 0.0
    return [(replace(word, size=usual) if _is_similar(word.size, usual) else word, percent) for word, percent in words]


def _is_similar(size: float, usual: float) -> bool:
    """Return whether a size is that of the text of the page: what Tesseract measures differs from line to line."""
    return abs(size - usual) <= _SIMILAR_SIZE * usual


def _lines(words: list[PdfWord]) -> list[tuple[RawLine, list[PdfWord]]]:
    """Return the words by line."""
    lines = []
    for _, group in groupby(words, key=lambda word: word.baseline):
        line = list(group)
        text = _text(line)
        lines.append(((text, line[0].left, line[-1].right, line[0].baseline, line[0].baseline, line[0].size), line))
    return lines


def _text(words: list[PdfWord]) -> str:
    """Return the words of a line as text. Tesseract makes a word of one or a few Chinese characters: no space then."""
    text = words[0].text
    for before, word in pairwise(words):
        is_wide = is_ideographic(before.text[-1]) and is_ideographic(word.text[0])
        text += word.text if is_wide else f" {word.text}"
    return text


if __name__ == "__main__":
    main()
