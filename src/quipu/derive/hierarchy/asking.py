"""Telling by a model: the requests for an aggregate and for what connects two, and what becomes of the replies."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from quipu.algo.ranking import n_fitting
from quipu.derive.asking import Ask, ask_for
from quipu.derive.hierarchy.planning import Between, Material, note_of
from quipu.derive.hierarchy.replying import read_reply
from quipu.model.chat import ChatRequest, Message, ReplyLifetime, Role
from quipu.model.cluster import ClusterRelation, ClusterReport
from quipu.model.graph import Entity, Relation
from quipu.ports.providers import Tokenizer
from quipu.prompts import aggregate as prompt
from quipu.text.thinking import strip_thinking

MEMBER_TOKENS, RELATION_TOKENS = 6_000, 6_000  # of a request (LeanRAG)
MAX_OUTPUT_TOKENS = 2_048
WORDS_PER_LAYER = 30  # of a relation: LeanRAG asks for (layer + 1) · 40 tokens
MAX_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What is told of the aggregates in one, or at both ends; `documents` are those whose words a text may hold."""

    below: Sequence[ClusterReport]
    documents: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Asks a model to tell of aggregates as of a `revision`; `ask` names the model in each completion."""

    ask: Ask
    tokenizer: Tokenizer
    revision: int | None = None
    language: str = ""

    async def report(self, material: Material, basis: Basis) -> ClusterReport:
        """Return the report of an aggregate.

        Raises Refused where no reply is of use, Overloaded where one broke off, and what `ask` does.
        """
        members = [(each.title, each.summary) for each in basis.below]
        entities, relations = _ordered(material)
        members += [(entity.name, entity.description) for entity in entities]
        members = self._fitting(members, MEMBER_TOKENS)
        notes = self._fitting([(note_of(relation), "") for relation in relations], RELATION_TOKENS)
        messages = prompt.render(members, [note for note, _ in notes], language=self.language)
        request = self._request(messages, basis, schema=prompt.SCHEMA)
        completion = await ask_for("a report on an aggregate", request, self.ask, _is_report)
        reply = read_reply(completion.text)
        assert reply is not None
        return ClusterReport(
            cluster=material.cluster.id,
            title=reply.name,
            summary=reply.description,
            findings=reply.findings,
            chunks=material.chunks,
            inputs_hash=material.cluster.inputs_hash,
            model=f"{completion.model} aggregate/{prompt.VERSION}",
        )

    async def relation(self, between: Between, basis: Basis) -> ClusterRelation:
        """Return the relation between two aggregates. Raises as `report`."""
        groups = [(each.title, each.summary) for each in basis.below]
        notes = list(dict.fromkeys(note_of(relation) for relation in between.relations))
        kept = self._fitting([(note, "") for note in notes], RELATION_TOKENS)
        max_words = WORDS_PER_LAYER * between.relation.level
        messages = prompt.render_relation(
            groups, [note for note, _ in kept], language=self.language, max_words=max_words
        )
        request = self._request(messages, basis)
        completion = await ask_for("a text on two aggregates", request, self.ask, _has_words)
        text = " ".join(strip_thinking(completion.text).split())[:MAX_CHARS]
        return replace(between.relation, description=text, model=f"{completion.model} aggregate/{prompt.VERSION}")

    def _fitting(self, members: list[tuple[str, str]], budget: int) -> list[tuple[str, str]]:
        """Return as many as fit, from the first on, and at least the first."""
        return members[: max(n_fitting((self.tokenizer.count(f"{a}: {b}\n") for a, b in members), budget), 1)]

    def _request(self, messages: tuple[Message, ...], basis: Basis, schema: str = "") -> ChatRequest:
        return ChatRequest(
            messages=messages,
            role=Role.REPORT,
            max_output_tokens=MAX_OUTPUT_TOKENS,
            schema=schema,
            documents=tuple(basis.documents),
            lifetime=ReplyLifetime.ALL_DOCUMENTS,
            revision=self.revision,
        )


def _ordered(material: Material) -> tuple[list[Entity], list[Relation]]:
    """Return what is in an aggregate, what the most of its relations are about first.

    Of nothing but what its hash identifies: equal hashes make equal requests, whatever else has changed.
    """
    degree = Counter(end for relation in material.relations for end in (relation.source, relation.target))
    entities = sorted(material.entities, key=lambda each: (-degree[each.key], each.key))
    return entities, sorted(material.relations, key=lambda r: (-degree[r.source] - degree[r.target], r.id))


def _is_report(text: str) -> bool:
    return read_reply(text) is not None


def _has_words(text: str) -> bool:
    return bool(strip_thinking(text).strip())
