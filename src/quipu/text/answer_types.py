"""Answer types: which of the types of entities there are a question asks for, by its words; no model.

Source: Y. Fan et al., "MiniRAG" (2025), section 3.2, where a small language model is asked.
"""

from collections.abc import Iterable

from quipu.text.questions import Asked, asked_for


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PERSON = _words("person people character persona 人物 人 персона человек")
_BODY = _words("organization organisation company institution group 组织 机构 公司 организация компания")
_PLACE = _words("location place geo city country facility 地点 城市 国家 место локация город страна")
_EVENT = _words("event 事件 событие")
_TIME = _words("date time year data period 日期 时间 数据 дата время данные")
_TYPES = {
    Asked.PERSON: _PERSON | _BODY,
    Asked.PLACE: _PLACE,
    Asked.TIME: _EVENT | _TIME,
    Asked.NUMBER: _TIME | _words("quantity number money 数字 число количество"),
}


def answer_types(question: str, types: Iterable[str]) -> tuple[str, ...]:
    """Return those of `types` the answer may have, in their order; none where the question's words do not tell.

    A type the question itself names, as "organization" in "which organization", is one.
    """
    asked, said = _TYPES.get(asked_for(question), frozenset()), question.casefold()
    return tuple(each for each in types if each.casefold() in asked or _is_named(each.casefold(), said))


def _is_named(kind: str, question: str) -> bool:
    return len(kind) > 1 and kind in _NAMED and kind in question


_NAMED = _PERSON | _BODY | _PLACE | _EVENT
