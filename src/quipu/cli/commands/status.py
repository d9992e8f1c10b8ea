"""`quipu status`: what the index holds, what waits, what is stale."""

from collections.abc import Iterator

import click
from rich.console import Console

from quipu.cli.derivations import render_states
from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit, styled
from quipu.cli.readers import history
from quipu.cli.session import command_line, with_engine
from quipu.cli.work import work_in_words
from quipu.model.document import DocumentStatus
from quipu.model.results import IndexStatus
from quipu.text.formatting import format_count


@click.command("status", cls=QuipuCommand, examples=("quipu status", "quipu --index ./kb status --json"))
def command() -> None:
    """Show what the index holds and what waits.

    The table is of what is derived: what every index keeps, and what is made on demand, by `quipu refresh NAME`.
    """
    emit(with_engine(lambda engine: engine.status()), _render)


def _render(console: Console, status: IndexStatus) -> None:
    console.print(styled(f"Index {status.path}, revision {status.revision:,}, {status.n_bytes / 1e6:,.1f} MB", "bold"))
    console.print(f"  {format_count(status.n_documents, 'document')} in {format_count(status.n_chunks, 'chunk')}")
    console.print(
        f"  {format_count(status.n_entities, 'entity')} and {format_count(status.n_relations, 'relation')}"
        f" from {format_count(status.n_mentions, 'mention')} and {format_count(status.n_links, 'link')}"
    )
    console.print(f"  {format_count(status.n_vectors, 'vector')} of {status.dimension} numbers by {status.embedder}")
    if status.other_embedder:
        remedy = f"`{command_line('reembed')}` computes the vectors anew; until then only words are searched for"
        console.print(styled(f"  the embedder that is set is another, {status.other_embedder}: {remedy}", "yellow"))
    console.print(styled(f"  {history(status.extractors, status.extractor)}"))
    console.print(f"  {format_count(status.n_replies, 'reply')} kept; schema {status.schema}")
    for models in _models(status):
        console.print(styled(f"  {models}"))
    n_failed = dict(status.jobs).get(DocumentStatus.FAILED, 0)
    if n_failed:
        console.print(
            f"  {format_count(n_failed, 'document')} failed: `{command_line('docs', '--status', 'failed')}`",
            style="red",
        )
    for stale in status.stale:
        console.print(styled(f"  {stale}", "yellow"))
    if status.derivations:
        console.print()
        render_states(console, status.derivations)


def _models(status: IndexStatus) -> Iterator[str]:
    """Yield each language model with the work it does."""
    roles_by_model: dict[str, list[str]] = {}
    for role, model in status.models:
        roles_by_model.setdefault(model, []).append(role)
    for model, roles in roles_by_model.items():
        yield f"language model {model} for {work_in_words(roles)}"
