"""Writing: an ontology as a file a user can edit, in YAML, with comments that say what each part does."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from quipu.model.extraction import ExtractionExample, GlossaryTerm, Ontology, RelationRule, TypeRule
from quipu.model.tuning import TuningOrigin, TypeCount
from quipu.text.formatting import format_count

_PLAIN = re.compile(r"[^\W\d_](?:[\w '’/&().-]*[\w).])?")
_WORDS_OF_YAML = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029\x85]")

_HEAD = """\
# How documents like these are to be read, worked out by {by}.
# Read it, change what you like, and name it in quipu.toml, as in: ontology = "ontology.yaml"
# What each part may hold is told in docs/extraction.md, "Ontology" and "Tuning"."""
_DOMAIN = """\
# What the documents are about, and what matters in them: one to three sentences, told to the model with every text."""
_TYPES = """\
# The types an entity may have. The words behind a type are told to the model. With ontology_mode = "strict", what has
# another type is left out; else it is kept as Other."""
_RELATIONS = """\
# Relations to prefer, by name: `from` and `to` are the types of their ends, any where they are not said."""
_NO_RELATIONS = """\
# Relations to prefer, by name, may stand here, as in
# relations:
#   works for: {from: Person, to: Organization, description: is paid by}"""
_EXAMPLES = """\
# Short texts and what is to be written down of them, told to the model with every text: they quote your documents.
# Each name must stand in the text, and each type above. Strength is from 1, mentioned in passing, to 10."""
_NO_EXAMPLES = """\
# Up to three examples of a short text, and what is to be written down of it, may stand here: docs/extraction.md."""
_GLOSSARY = """\
# Names that are known: told to the model where a text has them, and used for them."""
_SUGGESTED = """\
# Names that are frequent. Those you take out of the comment, and that line too, are told to the model where a text has
# them, and their names and types are used for them.
# glossary:"""


def file_text(
    ontology: Ontology,
    *,
    by: str,
    origin: TuningOrigin | None = None,
    counts: Sequence[TypeCount] = (),
    suggested: Sequence[GlossaryTerm] = (),
) -> str:
    """Return the file; `counts` stand beside the types they are of, `suggested` names in a comment at its end."""
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
    where = "that were named" if origin.revision is None else f"of the index at revision {origin.revision}"
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
    """Return what is said of a type behind it."""
    if count is None:
        return ""
    such_as = f", as {', '.join(map(_comment, count.examples))}" if count.examples else ""
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
    """Return a name as it is where YAML takes it for nothing else, quoted where it might."""
    return name if _PLAIN.fullmatch(name) and name.casefold() not in _WORDS_OF_YAML else _quoted(name)


def _quoted(text: str) -> str:
    """Return a text in double quotes: a string of JSON is one of YAML, where all it cannot show is escaped."""
    return _UNPRINTABLE.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\u{ord(each):04x}" for each in match[0])


def _comment(text: str) -> str:
    """Return a text that fits on the line of a comment."""
    return _UNPRINTABLE.sub(" ", " ".join(text.split()))[:80]
