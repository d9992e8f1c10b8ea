"""`quipu ask`: answer a question from the index, with citations."""

from contextlib import aclosing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quipu.cli.answers import AnsweredQuestion, render_answers, render_raw
from quipu.cli.asking import Option, QuestionCommand, filter_options, keyword_options, parse_query, prepared
from quipu.cli.inputs import read_history, text_or_file
from quipu.cli.options import budget_option, no_model_option, shared
from quipu.cli.output import stdout, write_json
from quipu.cli.progress import Watcher, watching
from quipu.cli.session import load_settings, with_engine
from quipu.model.answer import Answer, AnswerPiece
from quipu.model.chat import Role
from quipu.model.query import Filter, Query

if TYPE_CHECKING:
    from quipu.engine import Quipu


def _prompt_option(name: str, description: str) -> Option:
    return click.option(name, default="", metavar="TEXT|@FILE", callback=text_or_file, help=description)


@click.command(
    "ask",
    cls=QuestionCommand,
    examples=(
        'quipu ask "Which caliph supported the House of Wisdom?"',
        'quipu ask "Who printed the Apostol?" -s naive -s mix --trace',
        'quipu ask "Which roads led west?" --where region=Asia --before 1500',
        'quipu ask "Who was Alice Kober?" --context > context.md',
        'quipu ask "And where did she teach?" --history talk.json --language German',
        'quipu ask "Who was Alice Kober?" --system-prompt @style.txt --no-model',
        'quipu ask "What are these letters about?" -s community_global --auto-refresh',
    ),
)
@click.argument("question")
@click.option(
    "-s",
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Retrieval strategy; repeat it to see several side by side.",
)
@click.option("--language", help="Language of a model's answer; by default the language of the question.")
@keyword_options
@filter_options
@_prompt_option("--system-prompt", "Role and style of the model that answers.")
@_prompt_option("--user-prompt", "Further instructions for the model that answers.")
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    help="Earlier turns: a JSON list with role and text.",
)
@no_model_option
@budget_option
@click.option("--context", "output", flag_value="context", help="Print the packed context instead of an answer.")
@click.option("--prompt", "output", flag_value="prompt", help="Print the prompt that a model would get.")
@click.option("--trace", "has_trace", is_flag=True, help="Show seeds, scores, reasons, dropped evidence and timings.")
def command(
    *,
    question: str,
    strategies: tuple[str, ...],
    keywords: tuple[str, ...],
    themes: tuple[str, ...],
    system_prompt: str,
    user_prompt: str,
    history: Path | None,
    has_no_model: bool,
    output: str | None,
    has_trace: bool,
    allowed: Filter,
    **setting_options: str | None,
) -> None:
    """Answer a question, with citations.

    If a language model is set, it writes the answer, and a terminal shows the text while it is written. A sentence that
    no cited passage supports is marked. Without a model, or with --no-model, the answer is extractive: it quotes
    your documents. A prompt is a text or @FILE; it does not replace the rules about evidence and
    citations.
    """
    settings = load_settings(has_no_model=has_no_model, **setting_options)
    query = replace(
        parse_query(settings, question, keywords=keywords, themes=themes, allowed=allowed),
        system_prompt=system_prompt,
        user_prompt=user_prompt,
        history=read_history(history) if history else (),
        with_answer=not output or shared().as_json,
    )
    queries = [replace(query, strategy=name) for name in _checked(strategies or (query.strategy,))]
    is_whole = bool(output) or shared().as_json or not settings.model_of(Role.ANSWER)
    with nullcontext() if is_whole else watching(stdout()) as watcher:
        answers = with_engine(lambda engine: _ask(engine, queries, watcher), settings)
    _print(AnsweredQuestion(question=question, answers=tuple(answers)), output, has_trace=has_trace)


def _checked(strategies: tuple[str, ...]) -> tuple[str, ...]:
    """Return the strategies, each once; raises NotFound before any is run if one does not exist."""
    from quipu.retrieve import strategy_named

    return tuple(dict.fromkeys(strategy_named(name).name for name in strategies))


async def _ask(engine: "Quipu", queries: list[Query], watcher: Watcher | None) -> list[Answer]:
    """Ask one after the other: the timings of each are its own."""
    for query in queries:
        await prepared(engine, query)
    if watcher is None:
        return [await engine.query(query) for query in queries]
    return [await _watched(engine, query, watcher) for query in queries]


async def _watched(engine: "Quipu", query: Query, watcher: Watcher) -> Answer:
    answers: list[Answer] = []
    watcher(query.strategy, AnswerPiece())
    async with aclosing(engine.stream(query)) as pieces:
        async for piece in pieces:
            watcher(query.strategy, piece)
            answers += [piece.answer] if piece.answer else []
    return answers[-1]


def _print(question: AnsweredQuestion, output: str | None, *, has_trace: bool) -> None:
    if shared().as_json:
        write_json(replace(question, answers=tuple(_lean(answer, output) for answer in question.answers)))
    elif output:
        render_raw(stdout(), question, is_prompt=output == "prompt")
    else:
        render_answers(stdout(), question, has_trace=has_trace)


def _lean(answer: Answer, output: str | None) -> Answer:
    """Return the answer with its context and prompt only where they were asked for: they are long."""
    return replace(
        answer,
        context=answer.context if output == "context" else "",
        prompt=answer.prompt if output == "prompt" else "",
    )
