"""Options: what a user may set about extraction by a model; all of it is part of the extractor's identity."""

from dataclasses import dataclass, field

from quipu.model.extraction import Ontology, TypeRule
from quipu.model.graph import ENTITY_TYPES, OTHER_TYPE
from quipu.prompts.extraction import Format, Guidance, PromptExample, render_records


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOptions:
    """How a model is asked.

    `entity_types` guide it where the ontology names none. After the first reply up to `max_gleaning` more calls ask for
    what it missed: where the text holds names it leaves out, or always. `language` is that of descriptions, "" for the
    text's own. `max_output_tokens` is how far the limit on a reply may be raised.
    """

    format: Format = "lines"
    entity_types: tuple[str, ...] = ENTITY_TYPES
    language: str = ""
    max_gleaning: int = 1
    always_glean: bool = False
    with_claims: bool = False
    max_output_tokens: int = 32_768
    ontology: Ontology = field(default_factory=Ontology)

    @property
    def types(self) -> tuple[TypeRule, ...]:
        """The types asked for; unless the ontology is strict, `Other` is among them."""
        rules = self.ontology.types or tuple(TypeRule(name=name) for name in self.entity_types)
        if self.ontology.is_strict or OTHER_TYPE in (rule.name for rule in rules):
            return rules
        return (*rules, TypeRule(name=OTHER_TYPE))

    @property
    def guidance(self) -> Guidance:
        """What the prompt says of all this."""
        return Guidance(
            format=self.format,
            types=self.types,
            relations=self.ontology.relations,
            is_strict=self.ontology.is_strict,
            language=self.language,
            with_claims=self.with_claims,
            domain=self.ontology.domain,
            examples=tuple(
                PromptExample(text=each.text, reply=render_records((*each.entities, *each.relations), self.format))
                for each in self.ontology.examples
            ),
        )
