"""Tests of counting tokens."""

from quipu.testing.scripted.tokens import PrefixMemory, count_prompt, count_tokens, first_tokens

LONG = "word " * 2000  # 2,500 tokens


def test_a_token_is_four_bytes() -> None:
    assert [count_tokens(text) for text in ("", "abcd", "abcde", "语言")] == [0, 1, 2, 2]
    assert count_prompt(["abcd", "abcd"]) == 10


def test_a_text_is_cut_between_characters() -> None:
    assert first_tokens("语言模型", 1) == "语"
    assert first_tokens("abcdefgh", 1) == "abcd"


def test_the_beginning_of_an_earlier_prompt_is_cached() -> None:
    memory = PrefixMemory()
    assert memory.count_cached([LONG, "one"]) == 0
    assert memory.count_cached([LONG, "two"]) == 2432  # whole blocks of 128


def test_a_short_or_another_beginning_is_not_cached() -> None:
    memory = PrefixMemory()
    memory.count_cached([LONG[:3000]])
    assert memory.count_cached([LONG[:3000]]) == 0
    memory.count_cached([LONG])
    assert memory.count_cached(["x" + LONG]) == 0
