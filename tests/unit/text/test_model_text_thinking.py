"""What a model thinks aloud before its reply."""

import pytest

from quipu.text.model_text import has_thinking, strip_thinking, strip_thinking_tags


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Yes.", "Yes."),
        ("<think>Hm.</think>Yes.", "Yes."),
        ("<think>\nHm.\n</think>\n\nYes.", "\n\nYes."),
        ("  <Thinking>Hm.</Thinking> Yes.", "   Yes."),
        ("<think>a</think>Yes.\n<think>b</think>No.", "Yes.\nNo."),
        ("<think>a <think> b</think>Yes.", "Yes."),
        ("Hm.\n</think>\nYes.", "\nYes."),
        ("Hm.</think>Yes.", "Yes."),
        ("Yes.\n</think>\n", "Yes.\n\n"),
        ("<think>Hm. Then the tokens ran", ""),
        ("<seed:think>Hm.</seed:think>Yes.", "Yes."),
        ("[THINK]Hm.[/THINK]Yes.", "Yes."),
        ("◁think▷Hm.◁/think▷Yes.", "Yes."),
        ("<|begin_of_thought|>Hm.<|end_of_thought|>Yes.", "Yes."),
        ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "Yes."),
        (
            "The tag <think> opens a thought, and </think> closes it.",
            "The tag <think> opens a thought, and </think> closes it.",
        ),
        ("It writes `</think>`. Yes.", "It writes `</think>`. Yes."),
        ("<think>a</think>It writes\n</think> too.", "It writes\n too."),
    ],
)
def test_what_is_thought_goes_and_what_is_said_stays(text: str, rest: str) -> None:
    assert strip_thinking(text) == rest


def test_tags_are_noticed_and_can_go_alone() -> None:
    assert has_thinking("a <THINK> b")
    assert not has_thinking("I think. <b>Yes</b>")
    assert strip_thinking_tags("<think>\na\n</think>b") == "\na\nb"
