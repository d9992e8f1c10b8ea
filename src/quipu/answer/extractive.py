"""Extractive: an answer without a model, the few sentences of the passages that say most about the question.

Greedy, one quote after the other, as in maximal marginal relevance (Carbonell and Goldstein 1998): what an earlier
quote says already counts no more. A quote is worth the share of the question's informative words that it and its title
hold, more where it offers the kind of thing asked for, where its passage is ranked high, and where it is about
something that the quote of another passage named: the bridge of a question of two hops.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quipu.answer.pack import Passage
from quipu.answer.question import Question, read_question
from quipu.answer.quotable import Quotable, known_names, quotables
from quipu.model.graph import EntityMention

MAX_QUOTES = 4

# Weights beside the share of the question's words, which is at most 1. Set on the development questions of musique,
# hotpot, 2wiki and lihua together, where each can be halved or doubled for less than three points.
OFFER_WEIGHT = 0.2  # a thing of the kind asked for
RANK_WEIGHT = 0.15  # the first passage; the sixth has half of it
HALF_RANK = 5
BRIDGE_WEIGHT = 0.3  # a passage about something another passage brought in

# Below these the passages are about something else: the best quote must hold a quarter of what the question's words
# tell, all quotes together half of it, and one quote two of the words, for one alone may stand anywhere. A word that no
# passage holds weighs most.
MIN_BEST_SHARE = 0.25
MIN_TOTAL_SHARE = 0.5
MIN_WORDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The quotes that say most about a question, best first, and whether they are about it at all.

    `best_share` is the share of the question's informative words that the best sentence holds, `total_share` that of
    all quotes together.
    """

    quotes: tuple[Quotable, ...] = ()
    best_share: float = 0.0
    total_share: float = 0.0
    is_supported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What the quotes chosen so far hold; `names` are things they bring in that the question does not name."""

    passages: frozenset[int] = frozenset()
    terms: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def and_also(self, quote: Quotable, question: Question) -> "_Said":
        return _Said(
            passages=self.passages | {quote.passage.number},
            terms=self.terms | quote.about,
            names=self.names | {key for key in (*quote.names, quote.subject) if key and not question.is_named(key)},
        )


def extract(text: str, passages: Sequence[Passage], mentions: Iterable[EntityMention]) -> Extract:
    """Return up to `MAX_QUOTES` quotes for the question `text`; `mentions` say what is a name, and of which type.

    Equal quotes are taken in the order of the passages and of their text.
    """
    names = known_names(mentions)
    ranks = {number: rank for rank, number in enumerate(dict.fromkeys(passage.number for passage in passages))}
    candidates = quotables(passages, names)
    question = read_question(text, candidates, names)
    merits = [_merit(candidate, question, ranks) for candidate in candidates]
    left = list(range(len(candidates)))
    chosen: list[Quotable] = []
    said = _Said()
    while left and len(chosen) < MAX_QUOTES:
        best = max(left, key=lambda i: (round(merits[i] + _news(candidates[i], said, question), 6), -i))
        if chosen and not _adds(candidates[best], said, question):
            break
        left.remove(best)
        chosen.append(candidates[best])
        said = said.and_also(candidates[best], question)
    best_share = max((question.share(c.about) for c in candidates), default=0.0)
    total_share = question.share(said.terms)
    return Extract(
        quotes=tuple(chosen),
        best_share=best_share,
        total_share=total_share,
        is_supported=best_share >= MIN_BEST_SHARE and total_share >= MIN_TOTAL_SHARE and _meet(chosen, question),
    )


def _adds(quotable: Quotable, said: _Said, question: Question) -> bool:
    """Say whether a quote is worth adding: it says something new, or is about something the question names."""
    return _news(quotable, said, question) > 0 or (quotable.subject != "" and question.is_named(quotable.subject))


def _meet(quotes: Sequence[Quotable], question: Question) -> bool:
    """Say whether one of the quotes holds `MIN_WORDS` of the question's words, or all where it has fewer."""
    needed = min(MIN_WORDS, len(question.weights))
    return any(len(quote.terms & question.weights.keys()) >= needed for quote in quotes)


def _merit(quotable: Quotable, question: Question, ranks: Mapping[int, int]) -> float:
    """Return what a quote is worth whatever was said before; `ranks` are those of the numbers of passages, from 0."""
    rank = ranks[quotable.passage.number]
    return RANK_WEIGHT / (1 + rank / HALF_RANK) + OFFER_WEIGHT * question.is_offered_by(quotable)


def _news(quotable: Quotable, said: _Said, question: Question) -> float:
    """Return what a quote adds to what was said."""
    is_bridge = quotable.subject in said.names and quotable.passage.number not in said.passages
    return question.share(quotable.about, unless=said.terms) + BRIDGE_WEIGHT * is_bridge
