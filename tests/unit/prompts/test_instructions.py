"""Instructions: users replace their text; placeholders, title and fence stay."""

import re

import pytest

from quipu.errors import InvalidInput
from quipu.model.chat import PromptText
from quipu.prompts.catalog import PROMPTS
from quipu.prompts.instructions import Instructions, prompt_version

REPORT = PROMPTS["report"]
OWN = PromptText(prompt="report", text='Be brief. Keys as in {"a": 1}. {format} {language} {max_words}')
SMALL = Instructions(name="small", purpose="nothing", text="Reply {format}.", title="T", fence=" End.")


def test_a_replacement_keeps_title_placeholders_and_fence() -> None:
    text = REPORT.render([PromptText(prompt="answer", text="no"), OWN], language="In Latin.", max_words="9")
    assert text.startswith(f'{REPORT.title}\n\nBe brief. Keys as in {{"a": 1}}. {REPORT.fixed["format"]} In Latin. 9')
    assert text.endswith(REPORT.fence)
    assert "You are given notes" not in text


def test_a_placeholder_in_a_value_is_not_filled_in() -> None:
    assert SMALL.render(format="{format}") == "T\n\nReply {format}. End."


@pytest.mark.parametrize("name", list(PROMPTS))
def test_a_text_that_lacks_a_placeholder_is_refused_by_name(name: str) -> None:
    instructions = PROMPTS[name]
    assert instructions.name == name
    assert instructions.purpose
    instructions.check(instructions.text)
    for placeholder in instructions.placeholders:
        with pytest.raises(InvalidInput, match=rf"prompt {name} lacks {{{placeholder}}}.*quipu config --prompt {name}"):
            instructions.check(instructions.text.replace(f"{{{placeholder}}}", ""))


def test_an_empty_text_and_an_unknown_placeholder_are_refused() -> None:
    with pytest.raises(InvalidInput, match="prompt small is empty"):
        SMALL.check(" \n")
    with pytest.raises(InvalidInput, match=re.escape("has no placeholder {formt}. It has {format}")):
        SMALL.check("{format} {formt}")


def test_a_version_changes_with_the_texts_of_its_own_prompts_only() -> None:
    assert prompt_version("1", [], REPORT) == "1" == prompt_version("1", [OWN], SMALL)
    changed = prompt_version("1", [OWN], REPORT)
    assert re.fullmatch(r"1\+[0-9a-f]{8}", changed)
    assert prompt_version("1", [PromptText(prompt="report", text="Other.")], REPORT) != changed
