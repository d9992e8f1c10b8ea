"""Accuracy of encoding detection on real files that are written again in other encodings, whole and cut short.

`python -m benchmarks.encodings FOLDER` reads the text files below FOLDER, encodes each in the encodings of its language
and prints how often the encoding that is assumed gives back the text. Pieces begin at random characters.
"""

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from quipu.errors import InvalidDocument
from quipu.ingest.sources import find_sources
from quipu.model.document import SourceDocument
from quipu.parse import FILE_TYPES
from quipu.parse.decode import decode, in_utf8
from quipu.parse.encoding import assume_encoding, codec_of

CHARSETS_BY_LANGUAGE: Mapping[str, Sequence[str]] = {
    "ru": ("windows-1251", "koi8-r", "ibm866"),
    "zh": ("gb18030", "big5"),
    "ja": ("shift_jis", "euc-jp"),
    "en": ("windows-1252",),
}
SIZES = (200, 1_000, 10_000, 0)  # bytes; 0 for the whole text
N_PIECES = 3  # of each text and size
MIN_FOREIGN = 5  # characters outside ASCII in a piece


def main() -> None:
    """Print a row for each language, encoding and size."""
    if len(sys.argv) < 2:
        print("Left out: name a folder of texts.")
        return
    texts_by_language = texts_of(Path(sys.argv[1]))
    print("| language | encoding | bytes | texts | right, % | wrong but sure, % | ms |\n|---|---|---|---|---|---|---|")
    for language, charsets in CHARSETS_BY_LANGUAGE.items():
        for charset in charsets:
            for size in SIZES:
                pieces = list(_pieces(texts_by_language[language], charset, size))
                if pieces:
                    print(f"| {language} | {charset} | {size or 'whole'} | {_accuracy(pieces, charset)} |", flush=True)


def texts_of(folder: Path) -> dict[str, list[str]]:
    """Return the texts below `folder` by the language that most of their letters outside ASCII belong to."""
    texts_by_language: dict[str, list[str]] = {language: [] for language in CHARSETS_BY_LANGUAGE}
    for source in find_sources([folder], root=folder, file_types=FILE_TYPES):
        if isinstance(source, SourceDocument) and source.media_type in ("text/plain", "text/markdown", "text/x-rst"):
            try:
                text = decode(in_utf8(source)[0])
            except InvalidDocument:
                continue
            texts_by_language[_language(text)].append(text)
    return texts_by_language


def _language(text: str) -> str:
    if sum("\u3040" <= character <= "\u30ff" for character in text) > 100:
        return "ja"
    if sum("\u4e00" <= character <= "\u9fff" for character in text) > 200:
        return "zh"
    return "ru" if sum("а" <= character.lower() <= "я" for character in text) > 200 else "en"


def _pieces(texts: Sequence[str], charset: str, size: int) -> Iterator[bytes]:
    """Yield the encoded pieces; characters that the encoding lacks are left out."""
    generator = random.Random(1)
    codec = codec_of(charset)
    for text in texts:
        encodable = text.encode(codec, "ignore").decode(codec)
        if charset == "big5" and len(encodable) < 0.9 * len(text):  # it is in simplified characters
            continue
        starts = [generator.randrange(max(1, len(encodable))) for _ in range(N_PIECES)] if size else [0]
        for start in starts:
            piece = encodable[start : start + (size or len(encodable))].encode(codec)[: size or None]
            whole = piece.decode(codec, "ignore")
            if sum(not character.isascii() for character in whole) >= MIN_FOREIGN:
                yield whole.encode(codec)


def _accuracy(pieces: Sequence[bytes], charset: str) -> str:
    start = time.process_time()
    n_right = n_sure_and_wrong = 0
    for piece in pieces:
        assumed = assume_encoding(piece)
        codec = codec_of(assumed.name) or "utf-8" if assumed else "ascii"
        is_right = piece.decode(codec, "replace") == piece.decode(codec_of(charset))
        n_right += is_right
        n_sure_and_wrong += assumed is not None and assumed.is_sure and not is_right
    milliseconds = (time.process_time() - start) * 1_000 / len(pieces)
    shares = (100 * n_right / len(pieces), 100 * n_sure_and_wrong / len(pieces))
    return f"{len(pieces)} | {shares[0]:.1f} | {shares[1]:.1f} | {milliseconds:.1f}"


if __name__ == "__main__":
    main()
