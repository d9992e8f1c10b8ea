"""Occurrences folded into candidates."""

import pytest

from quipu.ingest.local.candidates import Candidate, entity_limit, fold_occurrences, most_salient, split_screen_name
from quipu.ingest.local.occurrences import Cue, Occurrence


def _at(text: str, name: str, cue: Cue = Cue.CAPITALS, *, last: bool = False) -> Occurrence:
    start = text.rindex(name) if last else text.index(name)
    return Occurrence(name, start, start + len(name), cue)


def _names(candidates: list[Candidate]) -> list[str]:
    return [candidate.name for candidate in candidates]


def test_places_of_one_name_are_gathered_in_order() -> None:
    text = "Rome. The Rome. ROME"

    (candidate,) = fold_occurrences(text, [_at(text, "Rome", last=True), _at(text, "Rome")])

    assert candidate.spans == ((0, 4), (10, 14))


def test_what_stands_inside_a_quoted_title_counts_for_the_title() -> None:
    text = '"Letters from Rome" sold'

    found = fold_occurrences(text, [_at(text, "Rome"), _at(text, "Letters from Rome", Cue.QUOTED)])

    assert _names(found) == ["Letters from Rome"]


def test_a_title_stands_beside_the_longer_names_that_hold_it() -> None:
    text = "Iran Air flies."

    found = fold_occurrences(text, [_at(text, "Iran Air"), _at(text, "Iran", Cue.TITLE)])

    assert _names(found) == ["Iran", "Iran Air"]


def test_a_sentence_opener_that_is_lower_case_elsewhere_is_no_name() -> None:
    text = "Ferns grow. Zanzibar was rich. The ferns"

    found = fold_occurrences(text, [_at(text, "Ferns", Cue.SENTENCE_START), _at(text, "Zanzibar", Cue.SENTENCE_START)])

    assert _names(found) == ["Zanzibar"]


def test_a_plural_that_opens_a_sentence_is_a_name_only_with_a_singular_verb() -> None:
    text = "Widgets sell well. Reuters is here."

    found = fold_occurrences(text, [_at(text, "Widgets", Cue.SENTENCE_START), _at(text, "Reuters", Cue.SENTENCE_START)])

    assert _names(found) == ["Reuters"]


def test_a_surname_alone_counts_for_the_person() -> None:
    text = "We met Andy Roddick. Then Roddick left."

    (candidate,) = fold_occurrences(text, [_at(text, "Andy Roddick"), _at(text, "Roddick", last=True)])

    assert candidate.name == "Andy Roddick"
    assert candidate.spans == ((7, 19), (26, 33))


def test_a_surname_two_persons_share_stays_alone() -> None:
    text = "Anna Kern and Paul Kern saw Kern"

    found = fold_occurrences(text, [_at(text, "Anna Kern"), _at(text, "Paul Kern"), _at(text, "Kern", last=True)])

    assert _names(found) == ["Anna Kern", "Paul Kern", "Kern"]


def test_a_place_does_not_swallow_its_last_word() -> None:
    text = "In East Germany and Germany"

    found = fold_occurrences(text, [_at(text, "East Germany"), _at(text, "Germany", last=True)])

    assert _names(found) == ["East Germany", "Germany"]


def test_a_screen_name_is_spaced_where_it_is_made_of_names() -> None:
    assert split_screen_name("AdamSmith") == "Adam Smith"
    assert split_screen_name("NASA") == split_screen_name("Adam") == split_screen_name("iPhone") == ""


def _candidate(name: str, cue: Cue, n_spans: int = 1) -> Candidate:
    spans = tuple((i, i + 1) for i in range(n_spans))
    return Candidate(key=name, name=name, cue=cue, type="", spans=spans, name_span=(0, 1))


def test_the_limit_rises_from_fourteen_to_forty_with_the_length() -> None:
    assert [entity_limit("x" * n) for n in (0, 800, 2_800, 4_800, 50_000)] == [14, 14, 27, 40, 40]


def test_the_least_salient_are_left_out_and_the_order_is_kept() -> None:
    candidates = [
        _candidate("a", Cue.TERM),
        _candidate("b", Cue.CAPITALS),
        _candidate("c", Cue.TITLE),
        _candidate("d", Cue.CAPITALS, n_spans=3),
    ]

    assert [candidate.name for candidate in most_salient(candidates, 2)] == ["c", "d"]


def test_of_equals_the_earlier_stay() -> None:
    candidates = [_candidate(name, Cue.CAPITALS) for name in "abc"]

    assert [candidate.name for candidate in most_salient(candidates, 2)] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        ("Nefertiti ruled Egypt.", True),
        ("Zanzibar, Pemba and Mafia are islands.", True),
        ("Starlette's router is small.", True),
        ("Ozon закрыл склад.", True),
        ("Магнит покупает сеть.", True),
        ("Tweak the skipws flag.", False),
        ("Foggier yet, and colder!", False),
        ("Процедура должна запускаться.", False),
        ("Указывается путь.", False),
    ],
)
def test_a_word_that_starts_a_sentence_is_a_name_if_the_words_after_it_fit_one(text: str, is_name: bool) -> None:
    word = text.split(maxsplit=1)[0].rstrip(",").removesuffix("'s")

    found = fold_occurrences(text, [_at(text, word, Cue.SENTENCE_START)])

    assert _names(found) == [word] * is_name
