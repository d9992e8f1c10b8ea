"""Where names and quotes stand among the chunks of a document: the same as reading each for each, in less work."""

import sys
from random import Random

import pytest

from quipu.ingest.recorded.places import Places, pattern_of

WORDS = ("Alice", "Kober", "AID", "said", "Linear-B", "C++", "l'aire", "İzmir", "维基", "百科", "naïve", "हिन्दी", "...")


def first_of(places: list[set[int]]) -> int:
    """Return the first place of all of them, else of one, else 0."""
    return min(set.intersection(*places) or set.union(*places), default=0)


def test_names_and_quotes_stand_where_reading_every_text_finds_them() -> None:
    random = Random(7)

    def said(n: int) -> str:
        return "".join(random.choice(WORDS) + random.choice((" ", "  ", "", ", ", "\n")) for _ in range(n))

    for _ in range(150):
        texts = [said(random.randint(0, 9)) for _ in range(random.randint(1, 5))]
        names = [said(random.randint(1, 3)).strip() for _ in range(8)]
        places = Places(texts)
        standing = {
            name: {n for n, text in enumerate(texts) if pattern_of(name).search(text.casefold())} for name in names
        }
        assert {name: set(places.of(name)) for name in names} == standing
        ends = random.sample(names, 2)
        assert places.first_naming(ends) == first_of([standing[end] for end in ends])
        quote = random.choice([random.choice(texts)[2:40], said(4)])
        folded = " ".join(quote.casefold().split())
        quoting = [n for n, text in enumerate(texts) if folded and folded in " ".join(text.casefold().split())]
        assert places.first_quoting(quote) == (quoting[0] if quoting else None)


@pytest.mark.parametrize(("ends", "place"), [(("Ann", ""), 1), (("", ""), 0), (("Ann", "Bo"), 2), (("Cy", "Bo"), 2)])
def test_an_end_that_is_not_there_counts_for_nothing(ends: tuple[str, str], place: int) -> None:
    assert Places(["One.", "Ann.", "Bo, Ann."]).first_naming(ends) == place


@pytest.mark.parametrize(("name", "text"), [("维基 Kober", "在维基 Kober 里"), ("Kober 维基", "在 Kober 维基百科")])
def test_a_name_without_spaces_may_stand_within_what_looks_like_a_word(name: str, text: str) -> None:
    assert Places([text, "Kober"]).of(name) == (0,)


def n_calls(n: int) -> int:
    """Return how many calls it takes to place a relation and a claim of each of n chunks, with names of their own."""
    names = [(f"Name {n} {i}", f"Other{n}-{i}") for i in range(n)]
    places = Places([f"{one} met {other} in town." for one, other in names])
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        for one, other in names:
            places.first_naming((one, other))
            places.first_quoting(f"{one}  met {other} in")
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_grows_with_what_is_recorded_and_not_with_its_square() -> None:
    assert n_calls(400) < 5 * n_calls(100)
