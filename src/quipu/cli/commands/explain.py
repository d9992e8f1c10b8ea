"""`quipu explain`: show why a passage is among the evidence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from quipu.cli.asking import QuestionCommand, filter_options, keyword_options, parse_query, prepared
from quipu.cli.options import budget_option, load_settings, no_model_option, with_engine
from quipu.cli.output import emit, one_line, styled
from quipu.model.evidence import Chain, ExplainedChunk, Explanation, Seed, SupportingHit
from quipu.model.query import Filter, Query
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command(
    "explain",
    cls=QuestionCommand,
    without=("answer_tokens", "response_type", "passages_per_call", "rewrite_question"),
    examples=(
        'quipu explain "Who built on the work of Alice Kober?"',
        'quipu explain "Who built on the work of Alice Kober?" -s local --rank 2',
        'quipu explain "Who built on the work of Alice Kober?" --chunk 1f0c5d9e27b34a86',
    ),
)
@click.argument("question")
@click.option("-s", "--strategy", metavar="NAME", help="Retrieval strategy.")
@click.option("--chunk", default="", metavar="ID", help="Explain why this passage is in the evidence or not.")
@click.option("--rank", type=click.IntRange(min=1), metavar="N", help="Explain the passage of this rank.")
@keyword_options
@filter_options
@no_model_option
@budget_option
def command(
    *,
    question: str,
    chunk: str,
    rank: int | None,
    keywords: tuple[str, ...],
    themes: tuple[str, ...],
    has_no_model: bool,
    allowed: Filter,
    **setting_options: str | None,
) -> None:
    """Show why a passage is among the evidence for a question.

    Explains the passage with that id or rank, else the first three passages. It shows the seeds of the search, the
    entities and relations of the evidence that lead to the passage, with their scores, and the shortest path over
    relations. No answer is written.
    """
    if chunk and rank is not None:
        raise click.UsageError("Use --chunk or --rank, not both.")
    settings = load_settings(has_no_model=has_no_model, **setting_options)
    query = parse_query(settings, question, keywords=keywords, themes=themes, allowed=allowed)
    explanation = with_engine(lambda engine: _explain(engine, query, chunk, rank), settings)
    emit(explanation, render_explanation)


async def _explain(engine: "Quipu", query: Query, chunk: str, rank: int | None) -> Explanation:
    return await engine.explain(await prepared(engine, query), chunk=chunk, rank=rank)


_MAX_FOUND = 5
_TEXT_CELLS = 200
_DESCRIPTION_CELLS = 100
_NO_GROUND = "no entity, relation, claim or report of the evidence leads to it; the reason above says how it was found"


def render_explanation(console: Console, explanation: Explanation) -> None:
    """Draw the seeds of the search, then a tree for each passage, then the notes of the trace."""
    console.print(styled(explanation.question, "bold"))
    console.print(styled(f"{explanation.strategy}, revision {explanation.revision:,}: {_found(explanation)}", "dim"))
    console.print(_seeds(explanation))
    dropped = {chunk for hits in explanation.dropped for chunk in hits.ids}
    for chunk in explanation.chunks:
        console.print()
        console.print(styled(f"{chunk.document_id}, chunk {chunk.id}", "dim"), soft_wrap=True)
        console.print(_tree(chunk, is_dropped=chunk.id in dropped))
    if not (explanation.ranks_passages or explanation.chunks):
        console.print()
        console.print(_beside(explanation))
    for note in explanation.notes:
        console.print(styled(f"note: {note}", "dim"))


def _found(explanation: Explanation) -> str:
    beside = {"claim": explanation.n_claims, "report": explanation.n_reports, "point": explanation.n_points}
    passages = [format_count(explanation.n_chunks, "passage")] if explanation.ranks_passages else []
    return ", ".join([*passages, *(format_count(n, noun) for noun, n in beside.items() if n)]) or "nothing"


def _beside(explanation: Explanation) -> Tree:
    """Return the first points and reports of a strategy that ranks no passages."""
    if explanation.other_evidence:
        tree = Tree(styled(f"{explanation.strategy} ranks no passages; it found this instead"))
        _add_grounds(tree, explanation.other_evidence, "{}s")
        return tree
    why = (
        "ranks no passages, and found nothing else"
        if explanation.searches_index
        else "retrieves nothing, so there is no evidence"
    )
    return Tree(styled(f"{explanation.strategy} {why}"))


def _seeds(explanation: Explanation) -> Tree:
    names = dict(explanation.names)
    tree = Tree("Where the search began")
    for seed in explanation.seeds:
        tree.add(_seed(seed, names))
    if not explanation.seeds:
        began = "with no entity or passage" if explanation.searches_index else "nowhere: nothing was retrieved"
        tree.add(styled(began, "dim"))
    return tree


def _seed(seed: Seed, names: dict[str, str]) -> Text:
    matches = ", ".join(f"{names.get(match.id, match.id)} {match.score:.3f}" for match in seed.matches[:_MAX_FOUND])
    more = f" and {len(seed.matches) - _MAX_FOUND:,} more" if len(seed.matches) > _MAX_FOUND else ""
    return styled(f"{seed.text} (by {seed.kind})", "cyan").append(f" → {matches or 'nothing'}{more}")


def _tree(chunk: ExplainedChunk, *, is_dropped: bool) -> Tree:
    rank = f"#{chunk.rank}" if chunk.rank else "not found"
    tree = Tree(styled(f"{rank} {chunk.title or chunk.document_id}", "bold"))
    tree.add(styled(f"{chunk.score:.4f}: {chunk.reason}" if chunk.rank else chunk.reason))
    if is_dropped:
        tree.add(styled("left out of the answer: the token budgets have no room for it", "yellow"))
    tree.add(styled(one_line(chunk.text, _TEXT_CELLS), "dim"))
    for chain in chunk.chains:
        _add_chain(tree, chain)
    _add_grounds(tree, chunk.supporting_hits)
    if not (chunk.chains or chunk.supporting_hits):
        tree.add(styled(_NO_GROUND if chunk.rank else "no evidence of this strategy leads to it", "yellow"))
    return tree


def _add_grounds(tree: Tree, grounds: Sequence[SupportingHit], heading: str = "by {}") -> None:
    by_kind: dict[str, Tree] = {}
    for ground in grounds:
        if ground.kind not in by_kind:
            by_kind[ground.kind] = tree.add(heading.format(ground.kind))
        name = one_line(ground.name, _DESCRIPTION_CELLS)
        line = f"#{ground.rank} {name}{f' [{ground.id}]' if ground.kind == 'report' else ''}, {ground.connection}"
        reason = f" ({ground.reason})" if ground.reason else ""
        by_kind[ground.kind].add(styled(f"{line}; score {ground.score:.4f}{reason}"))


def _add_chain(tree: Tree, chain: Chain) -> None:
    begun = styled(f"{chain.seed} (by {chain.kind}, {chain.score:.3f})", "cyan")
    if not chain.start:
        tree.add(begun.append(" → matches the passage directly"))
        return
    branch = tree.add(begun.append(f" → {chain.start}{'' if chain.steps else ', which the passage mentions'}"))
    for step in chain.steps:
        description = f": {one_line(step.description, _DESCRIPTION_CELLS)}" if step.description else ""
        branch = branch.add(styled(f"{step.source} → {step.target}{description}"))
    if chain.steps:
        branch.add(styled("which the passage mentions"))
