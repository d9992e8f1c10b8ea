"""Telling without a model: an aggregate by its most related members and the key sentences on them."""

from collections.abc import Iterator
from dataclasses import replace

from quipu.algo.ranking import n_fitting
from quipu.derive.hierarchy.planning import CUT, EXTRACTIVE, Between, Material, note_of
from quipu.model.cluster import ClusterRelation, ClusterReport, Finding
from quipu.ports.providers import Tokenizer
from quipu.text.sentences import sentence_spans

NAMES_IN_TITLE = 3
MAX_SENTENCES = 5
MAX_FINDINGS = 5
TOKENS_PER_LAYER = 80  # LeanRAG: that a relation of the highest layer may have


def told(material: Material) -> ClusterReport:
    """Return the report of an aggregate made of names and sentences of its entities, the same for the same material.

    Its name is that of the entities with the most relations. The first sentences on them make the description; the
    strongest relations that no aggregate in it holds are its findings.
    """
    names = list(dict.fromkeys(entity.name for entity in material.tops))
    title = ", ".join(names[:NAMES_IN_TITLE]) + (" …" if len(names) > NAMES_IN_TITLE else "")
    sentences = list(dict.fromkeys(_first_sentences(material)))[:MAX_SENTENCES]
    notes = dict.fromkeys(note_of(relation) for relation in material.relations)
    findings = [note for note in notes if note not in sentences][:MAX_FINDINGS]
    return ClusterReport(
        cluster=material.cluster.id,
        title=title,
        summary=" ".join(sentences) or ", ".join(names),
        findings=tuple(Finding(summary=note) for note in findings),
        chunks=material.chunks,
        inputs_hash=material.cluster.inputs_hash,
        model=EXTRACTIVE,
    )


def _notes_between(between: Between, tokenizer: Tokenizer) -> tuple[tuple[str, ...], bool]:
    """Return what is said of the strongest relations between two aggregates, and whether the allowance holds all.

    LeanRAG allows a relation (depth - layer) · 80 tokens, layers counted from 0: the higher, the less raw text.
    """
    notes = tuple(dict.fromkeys(note_of(relation) for relation in between.relations))
    costs = [tokenizer.count(f"{note}\n") for note in notes]
    allowance = (between.depth - between.relation.level + 1) * TOKENS_PER_LAYER
    n_fit = n_fitting(costs, allowance)
    is_all = n_fit == len(notes) and between.relation.n_relations == len(between.relations)
    return notes[: max(n_fit, 1)], is_all


def told_between(between: Between, tokenizer: Tokenizer) -> ClusterRelation:
    """Return the relation between two aggregates as the allowance holds it: what is said, strongest first."""
    notes, is_all = _notes_between(between, tokenizer)
    return replace(between.relation, description="\n".join(notes), model=EXTRACTIVE if is_all else CUT)


def _first_sentences(material: Material) -> Iterator[str]:
    for entity in material.tops:
        spans = sentence_spans(entity.description)
        if spans:
            start, end = spans[0]
            yield " ".join(entity.description[start:end].split())
