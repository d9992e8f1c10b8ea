"""Chinese words: text segmented into known words by longest match, and the suffixes that show entity types."""

import re
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from quipu.ingest.local.lexicon import word_set, words

_NUMERALS = frozenset("第一二三四五六七八九十百千万亿两零〇几数0123456789")
_NUMBER = re.compile(r"第?[一二三四五六七八九十百千万亿两零〇几数\d]+(?:多|余)?")
_MEASURES = frozenset(
    "个名位次年月日条座件艘只头匹本部台辆张家所项份种类天岁克米里度届卷首篇人万亿点分秒周倍余多层章段场批副套支根块片颗声号箱盒瓶杯袋桶盘碗轮棵株朵幅尊"
    "元吨国"
)

# The suffix of a Chinese name shows its entity type.
ORGANIZATION_SUFFIXES = words(
    """
    有限公司 有限责任公司 股份公司 公司 集团 银行 大学 学院 研究院 研究所 研究中心 科学院 委员会 协会
    学会 商会 工会 联合会 基金会 董事会 法院 检察院 医院 中学 小学 高中 幼儿园 出版社 报社 通讯社
    新华社 电视台 电台 俱乐部 交易所 事务所 政府 议会 国会 联盟 组织 中心 总局 航天局 空间局 警察局
    教育局 环保局 海关 部队 救援队 乐队 乐团 剧团 剧院 教会 工厂 制造厂 车队 商城 图书馆 博物馆
    美术馆 纪念馆 女排 男排 女足 男足 共产党 国民党 民主党 共和党 工党 保守党 联合国 欧盟 东盟 北约
    国务院 最高法院 高等法院 财政部 外交部 国防部 教育部 卫生部 商务部 书店 书局 印书馆 报馆 商行
    钱庄 票号 航空 证券 保险 汽车 物流 速运 科技 集团军 使馆 领事馆 学校 学社 书院 研究会 实验室
    工作室 医学院 商学院 法学院 理工学院 舰队 分公司 奥委会 足协 篮协
    """
)
_LOCATION_SUFFIXES = words(
    """
    特别行政区 自治区 自治州 自治县 共和国 联邦 王国 帝国 公国 汗国 半岛 群岛 山脉 高原 平原 盆地 沙漠
    草原 峡谷 瀑布 冰川 海峡 海湾 运河 水库 大桥 铁路 高铁 公路 高速 大街 大道 广场 公园 机场 车站
    火车站 东站 西站 南站 北站 港口 口岸 码头 体育场 体育馆 石窟 故居 遗址 陵墓 长城 城堡 宫殿 教堂
    清真寺 大教堂 修道院 寺院 藏经洞 之路 古城 古镇 商圈 板块 卫星发射中心 发射中心 航天中心 号线
    工业园 开发区 超级工厂
    """
)
_EVENT_SUFFIXES = words(
    """
    奥运会 冬奥会 亚运会 世博会 世界杯 锦标赛 运动会 博览会 电影节 音乐节 艺术节 战争 大战 之战 战役
    之乱 之变 之役 革命 起义 变法 新政 改革 事变 事件 政变 条约 协定 公约 和约 大会 峰会 论坛 地震
    大火 大屠杀 危机 演习 计划 工程
    """
)
_WORK_SUFFIXES = words("文学奖 和平奖 物理学奖 化学奖 医学奖 经济学奖 奖学金 宣言 宪法 法典 大典 全书")
_CONCEPT_SUFFIXES = words(
    """
    定律 定理 理论 相对论 进化论 学说 效应 方程 原理 猜想 假说 算法 主义 作用 文化 文明 学派 疗法
    引力波 神经网络 不守恒 系统 操作系统 时代 水稻
    """
)
_NATURE_SUFFIXES = words(
    """
    病毒 细菌 杆菌 球菌 蛋白 激素 二氧化碳 螺杆菌 综合征 溃疡 肺炎 肝炎 溶液 望远镜 探测器 空间站
    航天器 卫星 江豚 熊猫
    """
)
_PERSON_SUFFIXES = words(
    """
    公主 王子 皇帝 太后 皇后 天皇 可汗 大帝 女王 国王 公爵 侯爵 伯爵 男爵 爵士 将军 先生 女士 小姐
    夫人 老师 教授 博士 医生 律师 同学 同志 法师 大师 师傅 经理
    """
)

# Suffixes that are names by themselves.
COMPLETE_SUFFIXES = words(
    "新华社 联合国 欧盟 东盟 北约 国务院 国民党 共产党 外交部 国防部 教育部 财政部 商务部 引力波 二氧化碳 神经网络"
)
# Suffixes that make no name after common nouns alone.
GENERIC_SUFFIXES = words(
    """
    工厂 制造厂 公司 中心 组织 学校 医院 汽车 物流 科技 航空 保险 证券 系统 算法 理论 方程 原理 作用
    计划 工程 卫星 望远镜 探测器 细菌 病毒 激素 蛋白 条约 协定 战争 革命 危机 公路 铁路 公园 大道 大街
    机场 车站 港口 码头 政府 议会 法院 部队 乐队 商城 书店 报社 时代 文化 文明 主义 平原 高原 高速 改革
    地震 大火 论坛 峰会 大会 事件 政变 溶液 溃疡 肺炎
    """
)

TYPE_BY_SUFFIX: dict[str, str] = {
    **dict.fromkeys(_NATURE_SUFFIXES, "NaturalObject"),
    **dict.fromkeys(_CONCEPT_SUFFIXES, "Concept"),
    **dict.fromkeys(_WORK_SUFFIXES, "Content"),
    **dict.fromkeys(_EVENT_SUFFIXES, "Event"),
    **dict.fromkeys(_LOCATION_SUFFIXES, "Location"),
    **dict.fromkeys(ORGANIZATION_SUFFIXES, "Organization"),
    **dict.fromkeys(_PERSON_SUFFIXES, "Person"),
}
# Suffixes of one character. They count only after characters of no known word.
TYPE_BY_LAST_CHARACTER: dict[str, str] = {
    **dict.fromkeys("省市县州区国镇村乡岛山河江湖海洋湾峡岭峰寺庙宫殿塔城关陵园楼路街巷", "Location"),
    **dict.fromkeys("站港桥洞窟泉谷溪堡郡坡坊门", "Location"),
    **dict.fromkeys("馆校社党军队部局厅署院厂店", "Organization"),
    **dict.fromkeys("帝皇王后侯宗祖公妃汗", "Person"),
    **dict.fromkeys("奖节朝代", "Event"),
    **dict.fromkeys("教语族", "Concept"),
    **dict.fromkeys("症病炎素酸菌酶", "NaturalObject"),
    **dict.fromkeys("号", "Artifact"),
}


class WordClass(IntEnum):
    """The role of a word in the search for names. Classes below NUMBER can be part of a name."""

    UNKNOWN = 0  # a character of no known word
    NOUN_IN_NAMES = 1  # a noun that occurs inside many names
    VERB_IN_NAMES = 2  # a verb that also occurs inside names of organizations
    SUFFIX = 3
    PLACE = 4
    NUMBER = 5
    ROLE = 6
    COMMON = 7


class ChineseWord(NamedTuple):
    """A word of Chinese text at [start, end). It is a tuple because there is one for almost every character."""

    text: str
    start: int
    end: int
    word_class: WordClass


@cache
def _class_by_word() -> dict[str, WordClass]:
    return {
        **dict.fromkeys(word_set("zh_function"), WordClass.COMMON),
        **dict.fromkeys(word_set("zh_common"), WordClass.COMMON),
        **dict.fromkeys(word_set("zh_nouns_in_names"), WordClass.NOUN_IN_NAMES),
        **dict.fromkeys(word_set("zh_verbs_in_names"), WordClass.VERB_IN_NAMES),
        **dict.fromkeys(word_set("zh_roles"), WordClass.ROLE),
        **dict.fromkeys(TYPE_BY_SUFFIX, WordClass.SUFFIX),
        **dict.fromkeys(word_set("zh_places"), WordClass.PLACE),
    }


def class_of(word: str) -> WordClass | None:
    """Return the class of a word, None if the word is not known."""
    return _class_by_word().get(word)


@cache
def _max_length_by_first() -> dict[str, int]:
    """Return, by first character, the length of the longest word that it begins."""
    longest: dict[str, int] = {}
    for word in _class_by_word():
        longest[word[0]] = max(longest.get(word[0], 0), len(word))
    return longest


def segment(text: str, start: int, end: int) -> list[ChineseWord]:
    """Return the words of the Chinese run [start, end) of `text` by longest match.

    A character of no known word is a word of its own.
    """
    classes, longest = _class_by_word(), _max_length_by_first()
    segments: list[ChineseWord] = []
    while start < end:
        word_class, length = WordClass.UNKNOWN, 1
        if text[start] in _NUMERALS and (size := _number_length(text, start, end)):
            word_class, length = WordClass.NUMBER, size
        else:
            for size in range(min(longest.get(text[start], 0), end - start), 0, -1):
                match = classes.get(text[start : start + size])
                if match is not None:
                    word_class, length = match, size
                    break
        segments.append(ChineseWord(text[start : start + length], start, start + length, word_class))
        start += length
    return segments


def _number_length(text: str, start: int, end: int) -> int:
    """Return the length of a number and its measure word at `start`, 0 if there is none."""
    match = _NUMBER.match(text, start, end)
    if not match:
        return 0
    stop = match.end()
    if stop < end and text[stop] in _MEASURES:
        return stop + 1 - start
    return stop - start if stop - start > 1 else 0
