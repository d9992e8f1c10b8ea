"""Relating: the relations a model names, as those of the ontology."""

import re
from dataclasses import replace

from quipu.model.extraction import ExtractedRelation, Ontology, RelationRule

_NOT_IN_FORM = re.compile(r"[\W_]+")


class Relating:
    """Checks relations against the rules of an ontology; without rules every relation passes."""

    def __init__(self, ontology: Ontology) -> None:
        self._is_strict = ontology.is_strict
        self._rule_by_form = {_form(alias): rule for rule in ontology.relations for alias in rule.aliases}
        self._rule_by_form |= {_form(rule.name): rule for rule in ontology.relations}

    def conform(self, relation: ExtractedRelation, source_type: str, target_type: str) -> ExtractedRelation | None:
        """Return the relation with its rule's name for first keyword and its ends in the rule's order.

        One that no rule names, or that has other ends than its rule allows, is returned as it is, or None where the
        ontology is strict. Types are "" where they are not known.
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


def _fits(rule: RelationRule, source_type: str, target_type: str) -> bool:
    return (not rule.domain or source_type in rule.domain) and (not rule.range or target_type in rule.range)


def _form(word: str) -> str:
    return _NOT_IN_FORM.sub("", word.casefold())
