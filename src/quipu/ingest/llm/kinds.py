"""Kinds: the type a model gives an entity, as one of the types it was asked for."""

import re
from collections.abc import Sequence

from quipu.model.extraction import TypeRule

_PIECE = re.compile(r"[/,|;、，(（]| or ")
_NOT_IN_FORM = re.compile(r"[\W_]+")

# What models call the default types, in normal form.
_SYNONYMS = {
    "Person": "people human individual character role politician author writer scientist artist athlete persona "
    "fictionalcharacter 人物 人 人名 персона человек личность персонаж persönlichkeit personne personaje",
    "Creature": "animal species organism plant deity god monster mythicalcreature 动物 生物 животное существо",
    "Organization": "organisation org company corporation business institution institute agency group team party "
    "band government school university publisher newspaper military nonprofit 组织 机构 公司 организация компания "
    "учреждение organización organisationseinheit unternehmen entreprise",
    "Location": "place geo gpe loc city town country state region area district continent facility building address "
    "site river lake mountain sea island street geography 地点 地名 国家 城市 место страна город локация ort lieu "
    "lugar",
    "Event": "war battle meeting incident holiday election festival conference 事件 событие ereignis événement evento",
    "Concept": "idea theory term topic field discipline subject law belief principle language emotion 概念 术语 "
    "понятие концепция begriff",
    "Method": "technique procedure process algorithm workflow approach 方法 技术 метод",
    "Content": "work book film movie song album document report article paper publication creativework workofart "
    "media title 作品 书 произведение документ книга",
    "Data": "date time quantity number statistic measure measurement money percent metric dataset duration 数据 "
    "日期 数字 данные дата",
    "Artifact": "product tool device software system vehicle weapon object item thing technology machine program "
    "产品 物品 工具 软件 продукт предмет изделие",
    "NaturalObject": "substance chemical material element mineral star planet celestialbody 自然物 物质 вещество",
    "Other": "misc miscellaneous unknown none 其他 другое",
}


class Kinds:
    """Finds the type meant by what a model wrote, by its name, an alias, or a common synonym."""

    def __init__(self, rules: Sequence[TypeRule]) -> None:
        asked = {rule.name for rule in rules}
        self._by_form = {
            form: name for name, forms in _SYNONYMS.items() if name in asked for form in (_form(name), *forms.split())
        }
        self._by_form |= {_form(alias): rule.name for rule in rules for alias in rule.aliases}
        self._by_form |= {_form(rule.name): rule.name for rule in rules}
        self.words = frozenset(
            {rule.name.casefold() for rule in rules} | {form for form in self._by_form if form.isascii()}
        )

    def find(self, said: str) -> str | None:
        """Return the type, None where what was said is none of those asked for."""
        for piece in (said, *_PIECE.split(said)):
            form = _form(piece)
            for each in (form, form.removesuffix("s"), f"{form.removesuffix('ies')}y"):
                if each in self._by_form:
                    return self._by_form[each]
        return None


def _form(name: str) -> str:
    return _NOT_IN_FORM.sub("", name.casefold())
