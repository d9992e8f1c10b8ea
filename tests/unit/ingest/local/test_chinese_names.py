"""Chinese names without a segmenter."""

import pytest

from quipu.ingest.local.chinese_words import WordClass, segment
from quipu.ingest.local.script_rules import find_chinese_names


def _names(text: str) -> list[str]:
    return [occurrence.name for occurrence in find_chinese_names(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("他来到云南的洱海。", ["云南", "洱海"]),
        ("国家发展和改革委员会批准了建设。", ["国家发展和改革委员会"]),
        ("北京大学和清华大学举行比赛", ["北京大学", "清华大学"]),
        ("爱德华·蒙克出生在挪威。", ["爱德华·蒙克", "挪威"]),
        ("总统默克尔访问了斯特拉斯堡。", ["默克尔", "斯特拉斯堡"]),
        ("华为发布了产品，郑和率领船队", ["华为", "郑和"]),
        ("搭载天玑8100X芯片", ["天玑8100X"]),
    ],
)
def test_names_are_found_between_common_words(text: str, names: list[str]) -> None:
    assert _names(text) == names


def test_common_words_numbers_and_dates_alone_give_nothing() -> None:
    assert _names("我们今天上午开会讨论了三个问题，1842年他已经离开。") == []


def test_a_name_that_begins_several_stretches_is_cut_out_of_them() -> None:
    assert set(_names("毕昇用泥。毕昇懂火。毕昇胶泥做好了。")) == {"毕昇"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("水渠的图纸是工匠崔守正画的。崔守正在洛阳学过测量。", ["崔守正", "崔守正"]),
        ("刘志成就在洛阳。刘志成，河南人。", ["刘志成", "刘志成"]),
        ("陈守信奉命去了扬州。农民为陈守信立了石碑。", ["陈守信", "陈守信"]),
        ("崔守正在洛阳。崔守，河南人。", ["崔守", "崔守"]),
        ("李明正在开会。李明说他很忙。工人张三丰正在家里。", ["李明", "李明", "张三丰"]),
        ("李明正在开会。", ["李明"]),
        ("李明接到任务。李明接着出发去上海。", ["李明", "李明"]),
        ("王伟听到消息以后很高兴。王伟听说公司要搬走。", ["王伟", "王伟"]),
        ("李明现在住在北京。李明现有三个孩子。", ["李明", "李明"]),
        ("王芳正在开会。王芳正是负责人。", ["王芳", "王芳"]),
        ("张丽成为教师。张丽成就很高。", ["张丽", "张丽"]),
        ("张丽成为教师。张丽成就很高。张丽成，河南人。", ["张丽成", "张丽成", "张丽成"]),
    ],
)
def test_a_name_has_the_character_it_is_never_seen_without(text: str, names: list[str]) -> None:
    """Where a common word that follows may give its first character to the name, other places decide."""
    found = [name.name for name in find_chinese_names(text)]
    assert [name for name in found if name[0] in "崔刘陈李张王"] == names


def test_a_place_before_a_person_is_a_name_of_its_own() -> None:
    assert _names("法国总统马克龙") == ["法国", "马克龙"]


def test_words_are_cut_by_longest_match_and_unknown_characters_stand_alone() -> None:
    text = "委员会骞"

    assert [(word.text, word.word_class) for word in segment(text, 0, len(text))] == [
        ("委员会", WordClass.SUFFIX),
        ("骞", WordClass.UNKNOWN),
    ]


def test_a_number_takes_its_measure_word() -> None:
    text = "第十七届"

    assert [(word.text, word.word_class) for word in segment(text, 0, len(text))] == [("第十七届", WordClass.NUMBER)]
