"""Reports without a model: the names of the chief entities, and the sentences that say most of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from quipu.derive.report_material import Material
from quipu.model.cluster import ClusterReport, Finding
from quipu.text.names import entity_key, name_forms
from quipu.text.sentences import sentence_spans
from quipu.text.words import is_acronym, split_words

QUOTED = "extractive/1"  # in place of a model's name
QUOTED_AFTER_FAILURE = f"{QUOTED} in place of a model"  # which is not asked again for the same
QUOTED_ALONE = f"{QUOTED} of one entity"  # of which there is nothing to sum up

N_TITLE = 3  # names
N_SUMMARY = 3  # sentences
MAX_CHARS = 600  # of a sentence
MAX_NAMES = 30  # looked for


def quoted(material: Material, model: str = QUOTED) -> ClusterReport:
    """Return a report that quotes: nothing in it is by anybody but the documents."""
    cluster, sentences = material.cluster, _key_sentences(material)
    title = ", ".join(material.names[:N_TITLE])
    return ClusterReport(
        cluster=cluster.id,
        title=title or cluster.id,
        summary=" ".join(sentences[:N_SUMMARY]),
        findings=tuple(Finding(summary=each) for each in sentences[N_SUMMARY:]),
        rating=rating_of(cluster.n_entities),
        chunks=tuple(chunk.id for chunk in material.chunks),
        inputs_hash=cluster.inputs_hash,
        model=model,
    )


def rating_of(n_entities: int) -> float:
    """Return how much a community matters by its size alone: 1 for a single entity, 10 for a thousand or more."""
    return min(10.0, round(log2(1 + n_entities), 1))


def _key_sentences(material: Material) -> list[str]:
    """Return the most telling sentence of each chunk, in the order of the chunks, none twice."""
    names = material.names[:MAX_NAMES]
    known = {name: _Name.of(name) for name in (*names, *(name for pair in material.pairs for name in pair))}
    chosen = (_key_sentence(chunk.text, names, material.pairs, known) for chunk in material.chunks)
    return list(dict.fromkeys(each for each in chosen if each))


@dataclass(frozen=True, slots=True)
class _Name:
    """A name as whole words in a row, each with a space on either side; an acronym counts in capitals alone."""

    words: str
    is_acronym: bool

    @classmethod
    def of(cls, name: str) -> "_Name":
        key = entity_key(name)
        return cls(_spaced(name_forms(key)), is_acronym(key))


def _key_sentence(text: str, names: Sequence[str], pairs: Sequence[tuple[str, str]], known: Mapping[str, _Name]) -> str:
    """Return the sentence that names most entities, and most related pairs; the first of equal ones."""

    def telling(sentence: str) -> int:
        said = _named(sentence, known)
        return sum(name in said for name in names) + 2 * sum(a in said and b in said for a, b in pairs)

    sentences = [" ".join(text[start:end].split())[:MAX_CHARS] for start, end in sentence_spans(text)]
    prose = [each for each in sentences if not each.startswith("#")]  # a heading names much and says little
    return max(prose or sentences, key=telling, default="")


def _named(sentence: str, known: Mapping[str, _Name]) -> set[str]:
    """Return which names stand in a sentence, not within other words."""
    words = split_words(sentence)
    forms = _spaced(words.forms)
    acronyms = _spaced(word.form for word in words if word.is_acronym)
    return {name for name, each in known.items() if each.words in (acronyms if each.is_acronym else forms)}


def _spaced(forms: Iterable[str]) -> str:
    return f" {' '.join(forms)} "
