"""Validation: turns a model's records into an Extraction that keeps only what the text and the ontology support."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from quipu.ingest.llm.grounding import GroundingText
from quipu.model.extraction import (
    ExtractedAlias,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelation,
    Extraction,
    Ontology,
    RelationRule,
    TypeRule,
)
from quipu.model.graph import OTHER_TYPE
from quipu.prompts.extraction import EXAMPLE_NAMES
from quipu.text.extraction_records import ExtractionRecord
from quipu.text.names import entity_key

MAX_ENTITIES = 300
MAX_RELATIONS = 600

_TYPE_SEPARATOR = re.compile(r"[/,|;、，(（]| or ")
_CONTROLS = re.compile("[\0\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOT_IN_FORM = re.compile(r"[\W_]+")

# Other words that models use for the default types, in the form of `_form`.
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


@dataclass(slots=True)
class DropCounts:
    """How many records were dropped: names that the text does not contain, and what a strict ontology excludes."""

    n_ungrounded: int = 0
    n_outside_ontology: int = 0

    @property
    def total(self) -> int:
        """All dropped records."""
        return self.n_ungrounded + self.n_outside_ontology


class RecordValidator:
    """Turns the records of a model into extractions. `dropped` counts over all chunks."""

    def __init__(self, types: "EntityTypeMatcher", ontology: Ontology) -> None:
        self._types = types
        self._is_strict = ontology.is_strict
        self._relations = RelationMatcher(ontology)
        self._term_by_key = {entity_key(alias): term for term in ontology.glossary for alias in term.aliases}
        self._term_by_key |= {entity_key(term.name): term for term in ontology.glossary}
        self._example_keys = frozenset(map(entity_key, EXAMPLE_NAMES))
        self.dropped = DropCounts()

    def validate(self, records: Collection[ExtractionRecord], text: GroundingText) -> Extraction:
        """Return the records that the text and the ontology support, without duplicates, in their order."""
        draft = _ExtractionDraft(text)
        records = [_plain(record) for record in records]
        for record in records:
            if isinstance(record, ExtractedAlias):
                draft.stated_aliases_by_key.setdefault(entity_key(record.name), []).append(record.alias)
        for record in records:
            if isinstance(record, ExtractedEntity):
                self._add_entity(record, draft)
        for record in records:
            if isinstance(record, ExtractedRelation):
                self._add_relation(record, draft)
            elif isinstance(record, ExtractedAlias):
                self._add_alias(record, draft)
            elif isinstance(record, ExtractedClaim):
                self._add_claim(record, draft)
        self._drop_aliases_outside(draft)
        return Extraction(
            entities=tuple(draft.entity_by_key.values())[:MAX_ENTITIES],
            relations=tuple(draft.relations.values())[:MAX_RELATIONS],
            aliases=tuple(draft.aliases.values()),
            claims=tuple(dict.fromkeys(draft.claims)),
        )

    def has_grounded_name(self, records: Iterable[ExtractionRecord], text: GroundingText) -> bool:
        """Return whether the text contains any name in the records."""
        draft = _ExtractionDraft(text)
        return any(self._is_grounded(name, draft) for record in records for name in names_in_record(record))

    def _add_entity(self, entity: ExtractedEntity, draft: "_ExtractionDraft") -> None:
        name = self._grounded_name(entity.name, draft)
        if not name:
            return
        type_ = self._entity_type(name, entity.type)
        if type_ is None:
            self.dropped.n_outside_ontology += 1
            return
        key = entity_key(name)
        earlier = draft.entity_by_key.get(key)
        if earlier is None:
            names = (entity.name, name, *self._other_names(key, draft))
            start, end = draft.text.place(names)
            draft.entity_by_key[key] = replace(entity, name=name, type=type_, start=start, end=end)
        else:
            draft.entity_by_key[key] = replace(
                earlier,
                type=type_ if earlier.type == OTHER_TYPE else earlier.type,
                description=earlier.description or entity.description,
            )

    def _add_relation(self, relation: ExtractedRelation, draft: "_ExtractionDraft") -> None:
        source, target = self._grounded_name(relation.source, draft), self._grounded_name(relation.target, draft)
        keys = entity_key(source), entity_key(target)
        if not source or not target or keys[0] == keys[1]:
            return
        types = draft.type_of(keys[0]), draft.type_of(keys[1])
        matched = self._relations.match(replace(relation, source=source, target=target), *types)
        if matched is None or (self._is_strict and "" in types):
            self.dropped.n_outside_ontology += 1
            return
        draft.relations.setdefault((*sorted(keys), relation.description), matched)

    def _add_alias(self, alias: ExtractedAlias, draft: "_ExtractionDraft") -> None:
        name = self._grounded_name(alias.name, draft)
        if name and draft.text.may_contain(alias.alias) and entity_key(name) != entity_key(alias.alias):
            draft.add_alias(name, alias.alias)

    def _drop_aliases_outside(self, draft: "_ExtractionDraft") -> None:
        """Drop aliases of entities that a strict ontology excludes: they would bring these back, without a type."""
        outside = [keys for keys in draft.aliases if self._is_strict and not draft.type_of(keys[0])]
        for keys in outside:
            del draft.aliases[keys]
        self.dropped.n_outside_ontology += len(outside)

    def _add_claim(self, claim: ExtractedClaim, draft: "_ExtractionDraft") -> None:
        subject = self._grounded_name(claim.subject, draft)
        object_ = self._grounded_name(claim.object, draft) if claim.object else ""
        if not subject or (claim.object and not object_):
            return
        if self._is_strict and not all(draft.type_of(entity_key(name)) for name in (subject, object_) if name):
            self.dropped.n_outside_ontology += 1
        else:
            draft.claims.append(replace(claim, subject=subject, object=object_))

    def _grounded_name(self, name: str, draft: "_ExtractionDraft") -> str:
        """Return the name to store for a name in a record, spelled as in the glossary; "" if it is not grounded."""
        key = entity_key(name)
        if not key or not self._is_grounded(name, draft):
            self.dropped.n_ungrounded += 1
            return ""
        term = self._term_by_key.get(key)
        if term is None:
            return name
        if entity_key(term.name) != key:
            draft.add_alias(term.name, name)
        return term.name

    def _is_grounded(self, name: str, draft: "_ExtractionDraft") -> bool:
        """Return whether the text contains a name or its alias; names of the prompt's example must match exactly."""
        key = entity_key(name)
        if key in self._example_keys:
            return draft.text.contains_exactly(name)
        return draft.text.may_contain(name) or any(map(draft.text.contains_exactly, self._other_names(key, draft)))

    def _other_names(self, key: str, draft: "_ExtractionDraft") -> Sequence[str]:
        term = self._term_by_key.get(key)
        return (*draft.stated_aliases_by_key.get(key, ()), *(term.aliases if term else ()))

    def _entity_type(self, name: str, stated_type: str) -> str | None:
        """Return the type in the glossary, else the stated one; None if a strict ontology has no such type."""
        term = self._term_by_key.get(entity_key(name))
        if term is not None and term.type:
            return term.type
        return self._types.find(stated_type) or (None if self._is_strict else OTHER_TYPE)


def _plain(record: ExtractionRecord) -> ExtractionRecord:
    """Return a record whose texts hold no NUL and no character that changes the direction of the text around it."""
    value_by_name = {field.name: getattr(record, field.name) for field in fields(record)}
    return replace(record, **{name: _without_controls(value) for name, value in value_by_name.items()})


def _without_controls(value: object) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_controls, value))
    return _CONTROLS.sub("", value) if isinstance(value, str) else value


class EntityTypeMatcher:
    """Finds the entity type that a model meant, by its name, an alias or a common synonym.

    `words` are all casefolded ASCII words for a type, and the casefolded names of the types.
    """

    def __init__(self, rules: Sequence[TypeRule]) -> None:
        names = {rule.name for rule in rules}
        self._name_by_form = {
            form: name for name, forms in _SYNONYMS.items() if name in names for form in (_form(name), *forms.split())
        }
        self._name_by_form |= {_form(alias): rule.name for rule in rules for alias in rule.aliases}
        self._name_by_form |= {_form(rule.name): rule.name for rule in rules}
        self.words = frozenset(
            {rule.name.casefold() for rule in rules} | {form for form in self._name_by_form if form.isascii()}
        )

    def find(self, stated_type: str) -> str | None:
        """Return the name of the type, None if it matches none of the types."""
        for piece in (stated_type, *_TYPE_SEPARATOR.split(stated_type)):
            form = _form(piece)
            for singular in (form, form.removesuffix("s"), f"{form.removesuffix('ies')}y"):
                if singular in self._name_by_form:
                    return self._name_by_form[singular]
        return None


class RelationMatcher:
    """Matches relations with the relation rules of an ontology; without rules every relation passes."""

    def __init__(self, ontology: Ontology) -> None:
        self._is_strict = ontology.is_strict
        self._rule_by_form = {_form(alias): rule for rule in ontology.relations for alias in rule.aliases}
        self._rule_by_form |= {_form(rule.name): rule for rule in ontology.relations}

    def match(self, relation: ExtractedRelation, source_type: str, target_type: str) -> ExtractedRelation | None:
        """Return the relation with the name of its rule as first keyword, and with its ends in the rule's order.

        A relation without a rule, or with ends that its rule does not allow, is returned unchanged; None if the
        ontology is strict. An unknown type is "".
        """
        if not self._rule_by_form:
            return relation
        rule = next((rule for word in relation.keywords if (rule := self._rule_by_form.get(_form(word)))), None)
        if rule is not None and not _fits(rule, source_type, target_type) and _fits(rule, target_type, source_type):
            relation = replace(relation, source=relation.target, target=relation.source)
        elif rule is None or not _fits(rule, source_type, target_type):
            return None if self._is_strict else relation
        others = (word for word in relation.keywords if self._rule_by_form.get(_form(word)) is not rule)
        return replace(relation, keywords=(rule.name, *others))


def names_in_record(record: ExtractionRecord) -> tuple[str, ...]:
    """Return the names of the entities that a record is about."""
    if isinstance(record, ExtractedRelation):
        return record.source, record.target
    return (record.subject,) if isinstance(record, ExtractedClaim) else (record.name,)


@dataclass(slots=True)
class _ExtractionDraft:
    """The valid records of one chunk so far."""

    text: GroundingText
    stated_aliases_by_key: dict[str, list[str]] = field(default_factory=dict)
    entity_by_key: dict[str, ExtractedEntity] = field(default_factory=dict)
    relations: dict[tuple[str, ...], ExtractedRelation] = field(default_factory=dict)
    aliases: dict[tuple[str, str], ExtractedAlias] = field(default_factory=dict)
    claims: list[ExtractedClaim] = field(default_factory=list)

    def type_of(self, key: str) -> str:
        return self.entity_by_key[key].type if key in self.entity_by_key else ""

    def add_alias(self, name: str, alias: str) -> None:
        self.aliases.setdefault((entity_key(name), entity_key(alias)), ExtractedAlias(name=name, alias=alias))


def _fits(rule: RelationRule, source_type: str, target_type: str) -> bool:
    return (not rule.domain or source_type in rule.domain) and (not rule.range or target_type in rule.range)


def _form(name: str) -> str:
    return _NOT_IN_FORM.sub("", name.casefold())
