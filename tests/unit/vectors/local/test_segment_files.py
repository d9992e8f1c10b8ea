"""Manifests read back as written, and nothing else reads as one."""

import dataclasses
import zlib

import pytest

from quipu.vectors.local.segment_files import Manifest, SegmentFile, parse_manifest, render_manifest

MANIFEST = Manifest(
    dimension=70,
    revision=12,
    segments=(
        SegmentFile(name="chunk-00000001.segment", n_rows=900, checksum=17),
        SegmentFile(name="chunk-00000004.segment", n_rows=80, checksum=4_000_000_000),
    ),
    deleted=(5, 3, 901),
)


def checked(body: str) -> str:
    return f"{zlib.crc32(body.encode())}\n{body}\n"


def test_a_manifest_reads_back_as_written() -> None:
    assert parse_manifest(render_manifest(MANIFEST)) == MANIFEST
    assert MANIFEST.n_rows == 980


def test_every_changed_character_is_noticed() -> None:
    text = render_manifest(MANIFEST)
    for at in range(len(text)):
        with pytest.raises(ValueError):
            parse_manifest(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])


def test_every_shortened_text_is_noticed() -> None:
    text = render_manifest(MANIFEST)
    for end in range(len(text)):
        with pytest.raises(ValueError):
            parse_manifest(text[:end])


def test_another_format_is_refused() -> None:
    body = render_manifest(MANIFEST).split("\n")[1].replace('"format":1', '"format":2')
    with pytest.raises(ValueError, match="format"):
        parse_manifest(checked(body))


def test_a_name_that_leaves_the_folder_is_refused() -> None:
    outside = dataclasses.replace(MANIFEST.segments[0], name="../chunk-00000001.segment")
    with pytest.raises(ValueError, match="name"):
        parse_manifest(render_manifest(dataclasses.replace(MANIFEST, segments=(outside,))))
