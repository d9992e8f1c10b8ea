"""Occurrences folded into candidates."""

from quipu.ingest.local.candidates import Candidate, fold_occurrences, spaced_name
from quipu.ingest.local.occurrence import Cue, Occurrence


def _fold(text: str, *found: tuple[str, Cue]) -> list[Candidate]:
    occurrences = []
    position = 0
    for name, cue in found:
        start = text.index(name, position)
        position = start + 1
        occurrences.append(Occurrence(name, start, start + len(name), cue))
    return fold_occurrences(text, occurrences)


def test_places_of_one_name_are_gathered_in_order() -> None:
    (candidate,) = _fold("Rome. The Rome. ROME", ("Rome", Cue.CAPITALS), ("Rome", Cue.CAPITALS))

    assert candidate.places == ((0, 4), (10, 14))


def test_what_stands_inside_a_quoted_title_counts_for_the_title() -> None:
    text = '"Letters from Rome" sold'

    found = _fold(text, ("Letters from Rome", Cue.QUOTED), ("Rome", Cue.CAPITALS))

    assert [candidate.name for candidate in found] == ["Letters from Rome"]


def test_a_sentence_opener_that_is_lower_case_elsewhere_is_no_name() -> None:
    assert _fold("Ferns grow. The ferns", ("Ferns", Cue.STARTER)) == []
    assert [c.name for c in _fold("Zanzibar grows.", ("Zanzibar", Cue.STARTER))] == ["Zanzibar"]


def test_a_plural_that_opens_a_sentence_is_a_name_only_with_a_singular_verb() -> None:
    assert _fold("Widgets sell well.", ("Widgets", Cue.STARTER)) == []
    assert [c.name for c in _fold("Reuters is here.", ("Reuters", Cue.STARTER))] == ["Reuters"]


def test_a_surname_alone_counts_for_the_person() -> None:
    text = "We met Andy Roddick. Then Roddick left."

    (candidate,) = _fold(text, ("Andy Roddick", Cue.CAPITALS), ("Roddick left"[:7], Cue.CAPITALS))

    assert candidate.name == "Andy Roddick"
    assert len(candidate.places) == 2


def test_a_surname_two_persons_share_stays_alone() -> None:
    text = "Anna Kern and Paul Kern saw Kern"

    found = _fold(text, ("Anna Kern", Cue.CAPITALS), ("Paul Kern", Cue.CAPITALS), ("Kern", Cue.CAPITALS))

    assert [candidate.name for candidate in found] == ["Anna Kern", "Paul Kern"]


def test_a_place_does_not_swallow_its_last_word() -> None:
    text = "In East Germany and Germany"

    found = _fold(text, ("East Germany", Cue.CAPITALS), ("Germany", Cue.CAPITALS))

    assert [candidate.name for candidate in found] == ["East Germany"]


def test_a_screen_name_is_spaced_where_it_is_made_of_names() -> None:
    assert spaced_name("AdamSmith") == "Adam Smith"
    assert spaced_name("NASA") == spaced_name("Adam") == spaced_name("iPhone") == ""
