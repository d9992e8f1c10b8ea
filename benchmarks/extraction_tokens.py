"""Tokens one chunk of 1,200 costs to extract, beside other systems, for the same text and the same records.

Run: python benchmarks/extraction_tokens.py [--peers DIR]

DIR holds the peers, of which only the files with their prompts are read (a peer that is not there is left out):
pip install --no-deps --target DIR lightrag-hku==1.5.7 graphrag==3.3.0 fast-graphrag==0.0.5

The text is from the demo's documents, the records are 35 of those the local extractor finds in it, written in each
system's format: what is compared is the prompt and the form of the reply. That other prompts ask for "comprehensive"
descriptions makes their replies longer than here. Tokens are counted with the tokenizer of Llama 2 in the wordllama
wheel. "again" is the second call for what was missed: LightRAG and GraphRAG make it for every chunk by default, Fast
GraphRAG never; ours is made where the reply leaves out names of the text, and how often that is is measured on the
recorded replies of GPT-3.5 (musique_train100) and GPT-4o (christmas_carol_nano), where QUIPU_DATA has them.
"""

import argparse
import ast
import asyncio
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

from tokenizers import Tokenizer

from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.ingest.llm.conversation import entity_limit
from quipu.ingest.llm.grounding import detect_names, may_miss_names
from quipu.ingest.local.extraction import extract_chunk
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.extraction import ChunkInput, ExtractedEntity, ExtractedRelation
from quipu.ports.providers import TextSink, ignore_text
from quipu.prompts.extraction import chunk_boundary, render_gleaning, render_records, render_system, render_user
from quipu.providers.local import ByteTokenizer

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "src/quipu/testing/corpora/demo"
DATA = Path(os.environ.get("QUIPU_DATA") or ROOT / "../shared/data")
CHUNK_TOKENS = 1_200
CAROL_CHARS = 5_500
N_TIMED = 200
N_ENTITIES, N_RELATIONS, MAX_CHARS = 20, 15, 120  # of records and their descriptions

Prompts = Mapping[str, str | list[str]]
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """What a system sends and gets: the prompt with the text, a reply, the second message ("" for none), its reply."""

    prompt: str
    reply: str
    again: str = ""
    end: str = ""


def main() -> None:
    """Print the table, and how often the second call is made."""
    parser = argparse.ArgumentParser(description="Tokens of one chunk.")
    parser.add_argument("--peers", type=Path, default=Path(), help="folder that holds the peers' packages")
    peers = parser.parse_args().peers
    count = _tokenizer()
    chunk = ChunkInput(text=_text(count))
    records = _records(chunk)
    n_text = count(chunk.text)
    print(f"a text of {n_text:,} tokens, {N_ENTITIES} entities, {N_RELATIONS} relations")
    heads = "".join(f"{head:>8}" for head in ("prompt", "reply", "again", "input", "output"))
    print(f"{'':<28}{heads}{'beyond the text':>17}{'of LightRAG':>13}")
    rows = [(name, _cost(dialogue, n_text, count)) for name, dialogue in _dialogues(chunk, records, peers)]
    reference = next((cost.beyond for name, cost in rows if name == "LightRAG 1.5.7"), None)
    for name, cost in rows:
        share = f"{cost.beyond / reference:.2f}" if reference else "-"
        print(
            f"{name:<28}{cost.prompt:>8,}{cost.reply:>8,}{cost.again:>8,}{cost.input:>8,}{cost.output:>8,}"
            f"{cost.beyond:>17,}{share:>13}"
        )
    print(
        f"our own work on a chunk and its reply: {asyncio.run(_own_cpu(chunk, render_records(records))):.1f} ms of CPU"
    )
    for name, replies in _recorded():
        asked = [_is_asked_again(text, names, count) for text, names in replies]
        print(f"asked again, {name}: {sum(asked)} of {len(asked)} chunks ({sum(asked) / len(asked):.0%})")


class _Ready:
    """A model whose reply is there already."""

    identity = "ready"

    def __init__(self, reply: str) -> None:
        self._reply = reply

    async def complete(self, _request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply."""
        on_text(self._reply)
        return Completion(text=self._reply, finish=FinishReason.STOP, tokens=TokenCount())


async def _own_cpu(chunk: ChunkInput, reply: str) -> float:
    """Return the milliseconds of CPU from a chunk to its extraction, all but the model's."""
    extractor = LlmExtractor(_Ready(reply), ByteTokenizer(), ExtractionOptions(max_gleaning=0))
    start = time.process_time()
    n = sum([1 async for _ in extractor.extract([chunk] * N_TIMED)])
    return (time.process_time() - start) / n * 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Tokens of one chunk; `beyond` is all input and output but for one copy of the text."""

    prompt: int
    reply: int
    again: int
    input: int
    output: int
    beyond: int


def _cost(dialogue: Dialogue, n_text: int, count: Count) -> Cost:
    prompt, reply = count(dialogue.prompt), count(dialogue.reply)
    again = count(dialogue.again)
    sent = prompt + (prompt + reply + again if again else 0)
    output = reply + count(dialogue.end)
    return Cost(
        prompt=prompt - n_text, reply=reply, again=again, input=sent, output=output, beyond=sent + output - n_text
    )


def _dialogues(
    chunk: ChunkInput, records: Sequence[ExtractedEntity | ExtractedRelation], peers: Path
) -> Iterator[tuple[str, Dialogue]]:
    """Yield each system's dialogue; that of a peer only where its prompts are there."""
    for format_, name in (("lines", "Quipu"), ("json", "Quipu, JSON")):
        options = ExtractionOptions(format="json" if format_ == "json" else "lines")
        limit = entity_limit(CHUNK_TOKENS)
        prompt = render_system(options.guidance) + render_user(chunk, limit)
        reply = render_records(records, options.format)
        missed = list(detect_names(chunk.text).name_by_key.values())[:8]
        again = render_gleaning(chunk_boundary(chunk), missed, options.format)
        yield f"{name}, once", Dialogue(prompt=prompt, reply=reply)
        yield (
            f"{name}, again",
            Dialogue(prompt=prompt, reply=reply, again=again, end=render_records([], options.format)),
        )
    for name, file, make in (
        ("LightRAG 1.5.7", "lightrag/prompt.py", _lightrag),
        ("GraphRAG 3.3.0", "graphrag/prompts/index/extract_graph.py", _graphrag),
        ("Fast GraphRAG 0.0.5", "fast_graphrag/_prompt.py", _fast_graphrag),
    ):
        if (peers / file).is_file():
            yield name, make(_constants(peers / file), chunk, records)


def _lightrag(prompts: Prompts, chunk: ChunkInput, records: Sequence[ExtractedEntity | ExtractedRelation]) -> Dialogue:
    marks = {
        "tuple_delimiter": _one(prompts["DEFAULT_TUPLE_DELIMITER"]),
        "completion_delimiter": _one(prompts["DEFAULT_COMPLETION_DELIMITER"]),
    }
    fields = {
        **marks,
        "entity_types_guidance": _one(prompts["default_entity_types_guidance"]),
        "examples": "\n".join(prompts["entity_extraction_examples"]).format(**marks),
        "language": "English",
        "max_total_records": 100,
        "max_entity_records": 40,
        "heading_context_block": "",
        "input_text": chunk.text,
    }
    system = _one(prompts["entity_extraction_system_prompt"]).format(**fields)
    user = _one(prompts["entity_extraction_user_prompt"]).format(**fields)
    again = _one(prompts["entity_continue_extraction_user_prompt"]).format(**fields)
    lines = [
        ("entity", record.name, record.type, record.description)
        if isinstance(record, ExtractedEntity)
        else ("relation", record.source, record.target, ",".join(record.keywords), record.description)
        for record in records
    ]
    end = marks["completion_delimiter"]
    reply = "\n".join([*map(marks["tuple_delimiter"].join, lines), end])
    return Dialogue(prompt=f"{system}\n{user}", reply=reply, again=again, end=end)


def _graphrag(prompts: Prompts, chunk: ChunkInput, records: Sequence[ExtractedEntity | ExtractedRelation]) -> Dialogue:
    prompt = _one(prompts["GRAPH_EXTRACTION_PROMPT"]).format(
        entity_types="organization,person,geo,event", input_text=chunk.text
    )
    lines = [
        f'("entity"<|>{record.name.upper()}<|>{record.type.upper()}<|>{record.description})'
        if isinstance(record, ExtractedEntity)
        else f'("relationship"<|>{record.source.upper()}<|>{record.target.upper()}<|>{record.description}<|>5)'
        for record in records
    ]
    end = "<|COMPLETE|>"
    return Dialogue(prompt=prompt, reply="\n##\n".join(lines) + end, again=_one(prompts["CONTINUE_PROMPT"]), end=end)


def _fast_graphrag(
    prompts: Prompts, chunk: ChunkInput, records: Sequence[ExtractedEntity | ExtractedRelation]
) -> Dialogue:
    """Its client adds a schema of the reply, not counted; domain and questions are a user's, here a line each."""
    types = "[person, organization, location, event, concept, method, content, data, artifact]"
    system = _one(prompts["entity_relationship_extraction_text"]).format(
        domain="History of writing, printing and travel.", example_queries="- Who deciphered Linear B?"
    )
    user = _one(prompts["entity_relationship_extraction_prompt"]).format(entity_types=types, input_text=chunk.text)
    entities = [
        {"name": record.name.upper(), "type": record.type, "desc": record.description}
        for record in records
        if isinstance(record, ExtractedEntity)
    ]
    relations = [
        {"source": record.source.upper(), "target": record.target.upper(), "desc": record.description}
        for record in records
        if isinstance(record, ExtractedRelation)
    ]
    reply = json.dumps({"entities": entities, "relationships": relations, "other_relationships": []})
    return Dialogue(prompt=f"{system}\n{user}", reply=reply)


def _constants(path: Path) -> Prompts:
    """Return the texts a module assigns to names or to keys of a dictionary, without running it."""
    found: dict[str, str | list[str]] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            key = target.slice if isinstance(target, ast.Subscript) else target
            name = key.value if isinstance(key, ast.Constant) else getattr(key, "id", "")
            try:
                found[str(name)] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def _one(prompt: str | list[str]) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(prompt)


def _text(count: Count) -> str:
    """Return paragraphs of the demo's documents that come to about 1,200 tokens."""
    text = ""
    for path in sorted(DEMO.glob("*.md")):
        for paragraph in path.read_text("utf-8").split("\n\n"):
            if paragraph.isascii() and len(paragraph) > 200 and count(text + paragraph) < CHUNK_TOKENS:
                text += f"{paragraph}\n\n"
    return text.strip()


def _records(chunk: ChunkInput) -> list[ExtractedEntity | ExtractedRelation]:
    found = extract_chunk(chunk)
    entities = [
        replace(each, description=shorten(each.description, MAX_CHARS)) for each in found.entities if each.description
    ]
    relations = [replace(each, description=shorten(each.description, MAX_CHARS)) for each in found.relations]
    return [*entities[:N_ENTITIES], *relations[:N_RELATIONS]]


def _recorded() -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield recorded replies: the text of each chunk and the names a model found in it."""
    musique, carol = DATA / "musique_train100", DATA / "christmas_carol_nano"
    if musique.is_dir():
        texts = {row["id"]: row["text"] for row in _rows(musique / "corpus.jsonl")}
        rows = _rows(musique / "extraction.jsonl")
        yield "GPT-3.5, short passages", [(texts[row["passage_id"]], row["entities"]) for row in rows]
    if carol.is_dir():
        book = "\n".join(row["text"] for row in _rows(carol / "corpus.jsonl"))
        replies = [
            (
                book[row["approx_char_span"][0] : row["approx_char_span"][0] + CAROL_CHARS],
                [entity["name"] for entity in row["entities"]],
            )
            for row in _rows(carol / "extraction.jsonl")
            if row["name_coverage"] > 0.9
        ]
        yield "GPT-4o, chunks of a novel", replies


def _is_asked_again(text: str, names: list[str], count: Count) -> bool:
    if len(names) >= entity_limit(count(text)) or not may_miss_names(text, names):
        return False
    named = detect_names(text)
    return named.is_mostly(named.missed_by(names))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _tokenizer() -> Count:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise SystemExit("wordllama is not installed.")
    folder = Path(spec.origin).parent / "tokenizers"
    tokenizer = Tokenizer.from_file(str(folder / "l2_supercat_tokenizer_config.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


if __name__ == "__main__":
    main()
