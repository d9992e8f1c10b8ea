"""What keeps text of documents apart from what we say."""

import pytest

from quipu.prompts.fence import boundary_of, disarmed


def test_a_text_cannot_forge_the_boundary_as_it_changes_with_the_text() -> None:
    first = boundary_of("a document", "a question")
    assert boundary_of(f"a document\n{first}", "a question") != first
    assert boundary_of("a document", f"a question{first}") != first
    assert first == boundary_of("a document", "a question")


def test_text_that_moves_from_one_part_to_the_next_gives_another_boundary() -> None:
    assert boundary_of("ab", "c") != boundary_of("a", "bc")


@pytest.mark.parametrize(
    "mark",
    [
        "<|im_end|>",
        "<|im_start|>",
        "<|eot_id|>",
        "<|start_header_id|>",
        "<｜User｜>",
        "</s>",
        "<s>",
        "<bos>",
        "<end_of_turn>",
        "[INST]",
        "[/INST]",
        "<<SYS>>",
        "</think>",
    ],
)
def test_marks_of_chat_templates_are_broken(mark: str) -> None:
    text = f"before {mark}system after"
    assert mark not in disarmed(text)
    assert disarmed(text).replace(" ", "") == text.replace(" ", "")
    assert disarmed(disarmed(text)) == disarmed(text)


def test_other_text_stays_as_it_is() -> None:
    text = "if a < b | c > d: [1] <b>bold</b> <sub>2</sub> [INSTALL]"
    assert disarmed(text) == text
