"""Report writer: the report on one community, by a language model or from sentences of the documents (extractive)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2

from quipu.derive.generation import Ask, ReplyFormat, ask_until_valid
from quipu.derive.report_inputs import ReportInputs
from quipu.model.chat import ChatRequest, PromptText, ReplyLifetime, Role
from quipu.model.cluster import ClusterReport, Finding
from quipu.prompts import report as prompt
from quipu.prompts.instructions import prompt_version
from quipu.text.model_text import parse_lenient_json
from quipu.text.names import entity_key, name_forms
from quipu.text.sentences import sentence_spans
from quipu.text.words import is_acronym, split_words

# What a report names as its model if no language model wrote it.
EXTRACTIVE_REPORT = "extractive/1"
EXTRACTIVE_AFTER_FAILURE = (
    f"{EXTRACTIVE_REPORT} in place of a model"  # the model is not asked again for the same inputs
)
EXTRACTIVE_SINGLE_ENTITY = f"{EXTRACTIVE_REPORT} of one entity"  # never written by a model: there is nothing to sum up
IMPORTED_MODEL = "recorded/1"  # the report was imported

REPORTS_IDENTITY = f"reports/2 prompt {prompt.VERSION} {EXTRACTIVE_REPORT}"

MAX_WORDS = 300  # that the prompt asks for
MAX_OUTPUT_TOKENS = 2_048
MAX_TITLE, MAX_TEXT = 200, 3_000  # characters
MAX_FINDINGS = 7  # as the prompt asks
N_TITLE_NAMES = 3
N_SUMMARY_SENTENCES = 3
MAX_SENTENCE_CHARS = 600
MAX_NAMES = 30  # that are searched in sentences


async def write_report(
    inputs: ReportInputs, ask: Ask, language: str, texts: Sequence[PromptText] = ()
) -> ClusterReport:
    """Return the model's report; `texts` are the user's own instructions.

    Raises Refused if no reply is a report, Overloaded if a reply was interrupted, and whatever `ask` raises.
    """
    rules: ReplyFormat[ClusterReport] = ReplyFormat(text="a report", parse=lambda text: parse_report(text, inputs))
    reply = await ask_until_valid(make_request(inputs, language, texts), ask, rules)
    version = prompt_version(prompt.VERSION, texts, prompt.INSTRUCTIONS)
    return replace(reply.content, model=f"{reply.completion.model} report/{version}")


def make_request(inputs: ReportInputs, language: str, texts: Sequence[PromptText] = ()) -> ChatRequest:
    """Return the request for a report; its reply is dropped when a document about the community changes."""
    notes = inputs.notes
    return ChatRequest(
        messages=prompt.render(
            notes.reports, notes.subjects, notes.connections, language=language, max_words=MAX_WORDS, texts=texts
        ),
        role=Role.REPORT,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        schema=prompt.SCHEMA,
        documents=inputs.documents,
        lifetime=ReplyLifetime.ALL_DOCUMENTS,
        revision=inputs.revision,
    )


def parse_report(text: str, inputs: ReportInputs) -> ClusterReport | None:
    """Return the report in a reply, None if it has no summary. Other missing parts come from an extractive report."""
    reply = parse_lenient_json(text)
    summary = clean_text(reply.get("summary"), MAX_TEXT) if isinstance(reply, dict) else ""
    if not isinstance(reply, dict) or not summary:
        return None
    extractive = extract_report(inputs)
    return replace(
        extractive,
        title=clean_text(reply.get("title"), MAX_TITLE) or extractive.title,
        summary=summary,
        findings=parse_findings(reply.get("findings"), MAX_FINDINGS, MAX_TEXT),
        rating=_parse_rating(reply.get("rating"), extractive.rating),
    )


def parse_findings(value: object, limit: int, max_chars: int | None = None) -> tuple[Finding, ...]:
    """Return the first findings in a list of a reply; those without text are left out."""
    findings = []
    for element in value if isinstance(value, list) else ():
        fields = element if isinstance(element, dict) else {"summary": element}
        summary, explanation = (clean_text(fields.get(name), max_chars) for name in ("summary", "explanation"))
        if summary or explanation:
            findings.append(Finding(summary=summary or explanation, explanation=explanation if summary else ""))
    return tuple(findings[:limit])


def _parse_rating(value: object, default: float) -> float:
    try:
        rating = float(value) if isinstance(value, int | float | str) else default
    except ValueError:
        return default
    return round(min(10.0, max(0.0, rating)), 1) if rating == rating else default  # noqa: PLR0124 - not a number


def clean_text(value: object, max_chars: int | None = None) -> str:
    """Return a text of a reply on one line; "" if it is no text."""
    return " ".join(value.split())[:max_chars] if isinstance(value, str) else ""


def extract_report(inputs: ReportInputs, model: str = EXTRACTIVE_REPORT) -> ClusterReport:
    """Return a report without a model: names of the main entities as title, and key sentences of the documents."""
    cluster, sentences = inputs.cluster, _key_sentences(inputs)
    return ClusterReport(
        cluster=cluster.id,
        title=", ".join(inputs.names[:N_TITLE_NAMES]) or cluster.id,
        summary=" ".join(sentences[:N_SUMMARY_SENTENCES]),
        findings=tuple(Finding(summary=sentence) for sentence in sentences[N_SUMMARY_SENTENCES:]),
        rating=rate_by_size(cluster.n_entities),
        chunks=tuple(chunk.id for chunk in inputs.chunks),
        inputs_hash=cluster.inputs_hash,
        model=model,
    )


def rate_by_size(n_entities: int) -> float:
    """Return the importance of a community of this size: 1 for a single entity, 10 for a thousand or more."""
    return min(10.0, round(log2(1 + n_entities), 1))


def _key_sentences(inputs: ReportInputs) -> list[str]:
    """Return the key sentence of each chunk, in the order of the chunks, without repetition."""
    names = inputs.names[:MAX_NAMES]
    all_names = (*names, *(name for pair in inputs.pairs for name in pair))
    pattern_by_name = {name: _NamePattern.of(name) for name in all_names}
    sentences = (_key_sentence(chunk.text, names, inputs.pairs, pattern_by_name) for chunk in inputs.chunks)
    return list(dict.fromkeys(sentence for sentence in sentences if sentence))


@dataclass(frozen=True, slots=True)
class _NamePattern:
    """A name as normalised words with a space around each; an acronym matches only words in capitals."""

    words: str
    is_acronym: bool

    @classmethod
    def of(cls, name: str) -> "_NamePattern":
        key = entity_key(name)
        return cls(_joined_words(name_forms(key)), is_acronym(key))


def _key_sentence(
    text: str, names: Sequence[str], pairs: Sequence[tuple[str, str]], pattern_by_name: Mapping[str, _NamePattern]
) -> str:
    """Return the first sentence with the highest score: 1 for each entity in it, 2 for each pair of related ones."""

    def score(sentence: str) -> int:
        present = _names_in(sentence, pattern_by_name)
        n_pairs = sum(source in present and target in present for source, target in pairs)
        return sum(name in present for name in names) + 2 * n_pairs

    sentences = [" ".join(text[start:end].split())[:MAX_SENTENCE_CHARS] for start, end in sentence_spans(text)]
    prose = [sentence for sentence in sentences if not sentence.startswith("#")]  # headings name much and say little
    return max(prose or sentences, key=score, default="")


def _names_in(sentence: str, pattern_by_name: Mapping[str, _NamePattern]) -> set[str]:
    """Return the names that occur in a sentence as whole words."""
    words = split_words(sentence)
    forms = _joined_words(words.forms)
    acronyms = _joined_words(word.form for word in words if word.is_acronym)
    return {
        name
        for name, pattern in pattern_by_name.items()
        if pattern.words in (acronyms if pattern.is_acronym else forms)
    }


def _joined_words(forms: Iterable[str]) -> str:
    return f" {' '.join(forms)} "
