"""Question: its informative words with their weights, the kind of thing it asks for, the entities it names."""

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from quipu.answer.quotable import KnownNames, Quotable
from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.text.content_terms import content_terms
from quipu.text.names import name_forms
from quipu.text.questions import AnswerType, expected_answer_type, offers_answer
from quipu.text.words import split_words

_TYPE_ASKED = {AnswerType.PERSON: "Person", AnswerType.PLACE: "Location"}
_UNTYPED = frozenset({OTHER_TYPE, UNKNOWN_TYPE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as the passages at hand let it be read; `weights` says what each of its words tells, in order."""

    text: str
    weights: Mapping[str, float]
    asked: AnswerType
    forms: frozenset[str]
    names: KnownNames

    def share(self, terms: Container[str], *, unless: Container[str] = ()) -> float:
        """Return the share of the whole weight that the question's words among `terms`, not among `unless`, have."""
        total = sum(self.weights.values())
        held = sum(weight for term, weight in self.weights.items() if term in terms and term not in unless)
        return held / total if total else 0.0

    def is_offered_by(self, quotable: Quotable) -> bool:
        """Say whether a quote holds a thing of the kind asked for that the question does not name itself.

        A name of a type no rule could tell is taken for what is asked.
        """
        if self.asked not in (AnswerType.PERSON, AnswerType.PLACE, AnswerType.NAME):
            return offers_answer(self.asked, quotable.text, self.text)
        return any(self._is_asked_type(key) and not self.is_named(key) for key in quotable.names)

    def is_named(self, key: str) -> bool:
        """Say whether every word of an entity's name stands in the question."""
        return self.forms.issuperset(name_forms(key))

    def _is_asked_type(self, key: str) -> bool:
        wanted = _TYPE_ASKED.get(self.asked)
        found = self.names.type_by_key.get(key, UNKNOWN_TYPE)
        return wanted is None or found == wanted or found in _UNTYPED


def read_question(text: str, candidates: Sequence[Quotable], names: KnownNames) -> Question:
    """Return the question with each word weighed by its IDF among the n candidates: ln(1 + n / (1 + df)).

    The candidates were found for this question, so what they all share tells least about where the answer stands, and
    a word none of them holds weighs most.
    """
    words = split_words(text)
    df = Counter(term for candidate in candidates for term in candidate.about)
    return Question(
        text=text,
        weights={term: math.log1p(len(candidates) / (1 + df[term])) for term in content_terms(words)},
        asked=expected_answer_type(text),
        forms=frozenset(words.forms),
        names=names,
    )
