"""Aggregate writer: reports on aggregates and relations between them, by a model or from names and sentences.

Source: Y. Zhang et al., "LeanRAG" (2025), generation of aggregated entities and of aggregated relations.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quipu.algo.similarity import n_fitting
from quipu.derive.aggregate_inputs import (
    EXTRACTIVE,
    EXTRACTIVE_CUT,
    AggregateInputs,
    ClusterRelationInputs,
    relation_note,
)
from quipu.derive.generation import Ask, ReplyFormat, ask_until_valid
from quipu.derive.report_writer import clean_text, parse_findings
from quipu.model.chat import ChatRequest, Completion, Message, PromptText, ReplyLifetime, Role
from quipu.model.cluster import ClusterRelation, ClusterReport, Finding
from quipu.model.graph import Entity, Relation
from quipu.ports.providers import Tokenizer
from quipu.prompts import aggregate as prompt
from quipu.prompts.instructions import Instructions, prompt_version
from quipu.text.model_text import parse_lenient_json, strip_thinking
from quipu.text.sentences import sentence_spans

MEMBER_TOKENS, RELATION_TOKENS = 6_000, 6_000  # of a request (LeanRAG)
MAX_OUTPUT_TOKENS = 2_048
TOKENS_PER_LAYER = (
    80  # of notes that a relation keeps as they are, for each layer from its own to the highest (LeanRAG)
)
WORDS_PER_LAYER = 30  # of a relation between aggregates; LeanRAG asks for (layer + 1) · 40 tokens
MAX_RELATION_CHARS = 4_000
MAX_FINDINGS = 10  # of a model; LeanRAG asks for five to ten

# Without a model.
N_TITLE_NAMES = 3
MAX_SENTENCES = 5
MAX_EXTRACTIVE_FINDINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerReports:
    """The reports a text builds on: of child aggregates, or of both ends; `documents` are those the text may quote."""

    reports: Sequence[ClusterReport]
    documents: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateWriter:
    """Writes texts with a model, as of a `revision`; `ask` must name the model in each completion.

    `prompts` are the user's own instructions.
    """

    ask: Ask
    tokenizer: Tokenizer
    revision: int | None = None
    language: str = ""
    prompts: tuple[PromptText, ...] = ()

    async def write_report(self, inputs: AggregateInputs, lower: LowerReports) -> ClusterReport:
        """Return the report on an aggregate.

        Raises Refused if no reply is valid, Overloaded if a reply was interrupted, and whatever `ask` raises.
        """
        entities, relations = _most_related_first(inputs)
        members = [(report.title, report.summary) for report in lower.reports]
        members += [(entity.name, entity.description) for entity in entities]
        members = members[: self._n_fitting([f"{name}: {text}\n" for name, text in members], MEMBER_TOKENS)]
        notes = self._fitting_notes([relation_note(relation) for relation in relations])
        messages = prompt.render(members, notes, language=self.language, texts=self.prompts)
        request = self._request(messages, lower, schema=prompt.SCHEMA)
        rules: ReplyFormat[ClusterReport] = ReplyFormat(
            text="a report on an aggregate", parse=lambda text: parse_aggregate_report(text, inputs)
        )
        reply = await ask_until_valid(request, self.ask, rules)
        return replace(reply.content, model=self._model(reply.completion, prompt.INSTRUCTIONS))

    async def write_relation(self, inputs: ClusterRelationInputs, lower: LowerReports) -> ClusterRelation:
        """Return the relation between two aggregates. Raises the same errors as `write_report`."""
        groups = [(report.title, report.summary) for report in lower.reports]
        notes = list(dict.fromkeys(map(relation_note, inputs.relations)))
        max_words = WORDS_PER_LAYER * inputs.relation.level
        messages = prompt.render_relation(
            groups, self._fitting_notes(notes), language=self.language, max_words=max_words, texts=self.prompts
        )
        reply = await ask_until_valid(self._request(messages, lower), self.ask, _RELATION_FORMAT)
        model = self._model(reply.completion, prompt.RELATION_INSTRUCTIONS)
        return replace(inputs.relation, description=reply.content, model=model)

    def _model(self, completion: Completion, instructions: Instructions) -> str:
        return f"{completion.model} aggregate/{prompt_version(prompt.VERSION, self.prompts, instructions)}"

    def _fitting_notes(self, notes: list[str]) -> list[str]:
        return notes[: self._n_fitting([f"{note}: \n" for note in notes], RELATION_TOKENS)]

    def _n_fitting(self, lines: Sequence[str], budget: int) -> int:
        """Return how many of the first lines fit into a budget of tokens, at least 1."""
        return max(n_fitting(map(self.tokenizer.count, lines), budget), 1)

    def _request(self, messages: tuple[Message, ...], lower: LowerReports, schema: str = "") -> ChatRequest:
        return ChatRequest(
            messages=messages,
            role=Role.REPORT,
            max_output_tokens=MAX_OUTPUT_TOKENS,
            schema=schema,
            documents=tuple(lower.documents),
            lifetime=ReplyLifetime.ALL_DOCUMENTS,
            revision=self.revision,
        )


def _most_related_first(inputs: AggregateInputs) -> tuple[list[Entity], list[Relation]]:
    """Return entities and relations, ordered by the number of relations of the entities.

    The order depends on nothing outside the input hash: equal hashes give equal requests.
    """
    degree = Counter(end for relation in inputs.relations for end in (relation.source, relation.target))
    entities = sorted(inputs.entities, key=lambda entity: (-degree[entity.key], entity.key))
    return entities, sorted(inputs.relations, key=lambda r: (-degree[r.source] - degree[r.target], r.id))


def parse_aggregate_report(text: str, inputs: AggregateInputs) -> ClusterReport | None:
    """Return the report in a reply, None if it has no name or no description; malformed findings are left out."""
    reply = parse_lenient_json(text)
    if not isinstance(reply, dict):
        return None
    name, description = clean_text(reply.get("name")), clean_text(reply.get("description"))
    if not name or not description:
        return None
    return ClusterReport(
        cluster=inputs.cluster.id,
        title=name,
        summary=description,
        findings=parse_findings(reply.get("findings"), MAX_FINDINGS),
        chunks=inputs.chunks,
        inputs_hash=inputs.cluster.inputs_hash,
    )


_RELATION_FORMAT: ReplyFormat[str] = ReplyFormat(
    text="a text on two aggregates",
    parse=lambda text: clean_text(strip_thinking(text), MAX_RELATION_CHARS) or None,
)


def extract_aggregate_report(inputs: AggregateInputs) -> ClusterReport:
    """Return the report on an aggregate without a model.

    The title lists the entities with most relations, the summary the first sentence of each of their descriptions. The
    findings are the strongest relations that no child aggregate contains.
    """
    names = list(dict.fromkeys(entity.name for entity in inputs.top_entities))
    title = ", ".join(names[:N_TITLE_NAMES]) + (" …" if len(names) > N_TITLE_NAMES else "")
    sentences = list(dict.fromkeys(_first_sentences(inputs)))[:MAX_SENTENCES]
    notes = dict.fromkeys(map(relation_note, inputs.relations))
    findings = [note for note in notes if note not in sentences][:MAX_EXTRACTIVE_FINDINGS]
    return ClusterReport(
        cluster=inputs.cluster.id,
        title=title,
        summary=" ".join(sentences) or ", ".join(names),
        findings=tuple(Finding(summary=note) for note in findings),
        chunks=inputs.chunks,
        inputs_hash=inputs.cluster.inputs_hash,
        model=EXTRACTIVE,
    )


def _first_sentences(inputs: AggregateInputs) -> Iterator[str]:
    for entity in inputs.top_entities:
        spans = sentence_spans(entity.description)
        if spans:
            start, end = spans[0]
            yield " ".join(entity.description[start:end].split())


def extract_cluster_relation(inputs: ClusterRelationInputs, tokenizer: Tokenizer) -> ClusterRelation:
    """Return the relation between two aggregates without a model: as many notes as fit, the strongest first.

    LeanRAG allows (depth - layer) · 80 tokens, with layers counted from 0: less text in higher layers. If a note does
    not fit, the relation's model is EXTRACTIVE_CUT.
    """
    notes = tuple(dict.fromkeys(map(relation_note, inputs.relations)))
    budget = (inputs.depth - inputs.relation.level + 1) * TOKENS_PER_LAYER
    n_fit = n_fitting([tokenizer.count(f"{note}\n") for note in notes], budget)
    is_complete = n_fit == len(notes) and inputs.relation.n_relations == len(inputs.relations)
    description = "\n".join(notes[: max(n_fit, 1)])
    return replace(inputs.relation, description=description, model=EXTRACTIVE if is_complete else EXTRACTIVE_CUT)
