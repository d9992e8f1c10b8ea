"""`quipu ask`: answer a question from the index, with citations."""

import json
from contextlib import aclosing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quipu.cli.asking import (
    AnsweredQuestion,
    Option,
    QuestionCommand,
    filter_options,
    keyword_options,
    parse_query,
    prepared,
    render_answers,
    render_raw,
)
from quipu.cli.options import budget_option, load_settings, no_model_option, shared, with_engine
from quipu.cli.output import stdout, write_json
from quipu.cli.progress import Watcher, watching
from quipu.errors import InvalidInput
from quipu.model.answer import Answer, AnswerPiece
from quipu.model.chat import Role
from quipu.model.query import Filter, Query, Turn

if TYPE_CHECKING:
    from quipu.engine import Quipu


MAX_BYTES = 1_000_000  # a longer file is not a prompt or a history, or it never ends
_REMEDY = 'Write a JSON list, as in [{"role": "user", "text": "Who was Alice Kober?"}].'


def text_or_file(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the text of an option, or the content of the file named behind an @; a callback for click."""
    if not value.startswith("@"):
        return value
    try:
        return read_text(Path(value[1:]).expanduser()).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.BadParameter(f"{value[1:]} cannot be read ({reason}).", ctx, parameter) from None


def read_text(file: Path) -> str:
    """Return the text of a file. Raises OSError; ValueError with the reason where it is too long or is not text."""
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES:,} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


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
    """Return the strategies, each once; raises InvalidInput before any is run if one does not exist."""
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


def read_history(file: Path) -> tuple[Turn, ...]:
    """Return the turns in a JSON file: a list of objects with role (user or assistant) and text (or content)."""
    try:
        turns = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The history {file} cannot be read: {error}.", remedy=_REMEDY) from None
    if not isinstance(turns, list):
        raise InvalidInput(f"The history {file} is not a list.", remedy=_REMEDY)
    return tuple(_turn(turn, number, file) for number, turn in enumerate(turns, 1))


def _turn(turn: object, number: int, file: Path) -> Turn:
    if isinstance(turn, dict):
        role, text = turn.get("role"), turn.get("text", turn.get("content"))
        if isinstance(text, str):
            if role == "user":
                return Turn(role="user", text=text)
            if role == "assistant":
                return Turn(role="assistant", text=text)
    raise InvalidInput(f"Turn {number} of {file} has no role (user or assistant) or no text.", remedy=_REMEDY)
