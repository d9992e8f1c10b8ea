"""Ontology writer: an ontology as a YAML file for users to edit, with comments that explain each part."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from quipu.model.extraction import ExtractionExample, GlossaryTerm, Ontology, RelationRule, TypeRule
from quipu.model.tuning import TuningOrigin, TypeCount
from quipu.text.formatting import format_count

_PLAIN = re.compile(r"[^\W\d_](?:[\w '’/&().-]*[\w).])?")
_YAML_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029\x85]")

_HEAD = """\
# Ontology for documents like these, suggested by {by}.
# Read it, edit it, and set it in quipu.toml: ontology = "ontology.yaml"
# docs/extraction.md, "Ontology" and "Tuning", explains what each part may contain."""
_DOMAIN = """\
# What the documents are about, and what matters in them, in one to three sentences. Every prompt contains it."""
_TYPES = """\
# The entity types. Every prompt contains them with their descriptions. With ontology_mode = "strict", entities of other
# types are dropped; otherwise they are kept with the type Other."""
_RELATIONS = """\
# Preferred relations, by name. `from` and `to` are the types of their ends; without them, any type is allowed."""
_NO_RELATIONS = """\
# Preferred relations, by name, can be added here, for example:
# relations:
#   works for: {from: Person, to: Organization, description: is paid by}"""
_EXAMPLES = """\
# Short texts and what to extract from them. Every prompt contains them: they quote your documents.
# Each name must occur in the text, and each type above. Strength ranges from 1, mentioned in passing, to 10."""
_NO_EXAMPLES = """\
# Up to three examples, each a short text and what to extract from it, can be added here: see docs/extraction.md."""
_GLOSSARY = """\
# Known names. If a text contains one, the prompt contains it too, and its name and type are used."""
_SUGGESTED = """\
# Frequent names. To use some as a glossary, remove the "# " before them and before the line "glossary:". If a text
# contains one, the prompt contains it too, and its name and type are used.
# glossary:"""


def ontology_file(
    ontology: Ontology,
    *,
    by: str,
    origin: TuningOrigin | None = None,
    counts: Sequence[TypeCount] = (),
    suggested: Sequence[GlossaryTerm] = (),
) -> str:
    """Return the text of the file, with `counts` beside their types and `suggested` terms in a comment at its end."""
    parts = [
        [_HEAD.format(by=_comment(by))],
        *([list(_origin_lines(origin))] if origin else []),
        [_DOMAIN, f"domain: {_quoted(ontology.domain)}"],
        [_TYPES, "types:", *_type_lines(ontology.types, counts)],
        [_RELATIONS, "relations:", *_relation_lines(ontology.relations)] if ontology.relations else [_NO_RELATIONS],
        [_EXAMPLES, "examples:", *_example_lines(ontology.examples)] if ontology.examples else [_NO_EXAMPLES],
    ]
    if ontology.glossary:
        parts.append([_GLOSSARY, "glossary:", *_term_lines(ontology.glossary)])
    if suggested and not ontology.glossary:
        parts.append([_SUGGESTED, *(f"# {line}" for line in _term_lines(suggested))])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _origin_lines(origin: TuningOrigin) -> Iterator[str]:
    where = "in the given paths" if origin.revision is None else f"of the index at revision {origin.revision}"
    yield f"# Made from {format_count(origin.n_documents, 'document')} {where}, sample {origin.sample}."
    yield from (f"# {name} = {_comment(value)}" for name, value in origin.settings)


def _type_lines(types: Iterable[TypeRule], counts: Iterable[TypeCount]) -> Iterator[str]:
    count_by_name = {count.name: count for count in counts}
    for rule in types:
        beside = _count(count_by_name.get(rule.name))
        if rule.aliases:
            yield f"  {_key(rule.name)}:{beside}"
            yield f"    description: {_quoted(rule.description)}"
            yield f"    aliases: {_list(rule.aliases)}"
        else:
            yield f"  {_key(rule.name)}:{f' {_quoted(rule.description)}' if rule.description else ''}{beside}"


def _count(count: TypeCount | None) -> str:
    """Return the comment behind a type."""
    if count is None:
        return ""
    such_as = f", such as {', '.join(map(_comment, count.examples))}" if count.examples else ""
    return f"  # found {format_count(count.n, 'time')} by rules{such_as}"


def _relation_lines(relations: Iterable[RelationRule]) -> Iterator[str]:
    for rule in relations:
        yield f"  {_key(rule.name)}:"
        yield f"    description: {_quoted(rule.description)}"
        for field, names in (("from", rule.domain), ("to", rule.range), ("aliases", rule.aliases)):
            if names:
                yield f"    {field}: {_list(names)}"


def _term_lines(terms: Iterable[GlossaryTerm]) -> Iterator[str]:
    for term in terms:
        yield f"  {_key(term.name)}:"
        yield f"    definition: {_quoted(term.definition)}"
        if term.type:
            yield f"    type: {_key(term.type)}"
        if term.aliases:
            yield f"    aliases: {_list(term.aliases)}"


def _example_lines(examples: Iterable[ExtractionExample]) -> Iterator[str]:
    for example in examples:
        yield f"  - text: {_quoted(example.text)}"
        yield "    entities:"
        for entity in example.entities:
            yield f"      - name: {_quoted(entity.name)}"
            yield f"        type: {_key(entity.type)}"
            yield f"        description: {_quoted(entity.description)}"
        yield "    relations:" if example.relations else "    relations: []"
        for relation in example.relations:
            yield f"      - source: {_quoted(relation.source)}"
            yield f"        target: {_quoted(relation.target)}"
            yield f"        keywords: {_list(relation.keywords)}"
            yield f"        description: {_quoted(relation.description)}"
            yield f"        strength: {min(10.0, max(1.0, round(relation.weight * 10, 2))):g}"


def _list(names: Iterable[str]) -> str:
    return f"[{', '.join(map(_key, names))}]"


def _key(name: str) -> str:
    """Return a name as a YAML key, quoted if YAML might take it for something else."""
    return name if _PLAIN.fullmatch(name) and name.casefold() not in _YAML_WORDS else _quoted(name)


def _quoted(text: str) -> str:
    """Return a text in double quotes: a JSON string is a YAML string if unprintable characters are escaped."""
    return _UNPRINTABLE.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in match[0])


def _comment(text: str) -> str:
    """Return a text that fits on one line of a comment."""
    return _UNPRINTABLE.sub(" ", " ".join(text.split()))[:80]
