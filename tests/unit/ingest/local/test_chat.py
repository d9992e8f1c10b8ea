"""Speakers in conversations."""

import pytest

from quipu.ingest.local.chat import find_speakers


def _speakers(text: str) -> list[str]:
    return [occurrence.name for occurrence in find_speakers(text)]


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("Time: 20260105_11:00\nLiHua: Hey!\nWolfgangSchulz: Awesome!", ["LiHua", "WolfgangSchulz"]),
        ("小明：你好！\n王老师：下周五之前发到我的邮箱。", ["小明", "王老师"]),
        ("Аня: Привет, как дела?", ["Аня"]),
    ],
)
def test_labels_of_speech_are_speakers(text: str, speakers: list[str]) -> None:
    assert _speakers(text) == speakers


@pytest.mark.parametrize(
    "text", ["Note: read this first.", "Paris: a guide to the city.", "Address: 5 Main Street\nPhone: 42"]
)
def test_other_labels_are_not(text: str) -> None:
    assert _speakers(text) == []
