"""Duplicates: which names may be one thing, which never are, and why."""

from random import Random

import pytest

from quipu.derive.duplicates import MAX_BLOCK, NamedEntity, find_duplicates, with_neighbours
from quipu.text.names import entity_key


def named(name: str, kind: str = "Other", *aliases: str) -> NamedEntity:
    """Return an entity to compare."""
    return NamedEntity(key=entity_key(name), type=kind, aliases=aliases)


def score_of(first: str, second: str, kind: str = "Other") -> float:
    """Return the score of two names, 0 if they are not proposed."""
    candidates = find_duplicates([named(first, kind), named(second, kind)])
    return candidates[0].score if candidates else 0.0


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("Rocket MQ", "RocketMQ", "equal without spaces"),
        ("Dr. Grace Hopper", "Grace Hopper", "equal without a title"),
        ("Acme Tools Inc.", "Acme Tools", "equal without the form of the company"),
        ("Siemens AG", "Siemens", "equal without the form of the company"),
        ("name server", "name servers", "singular and plural"),
        ("community", "communities", "singular and plural"),
        ("развёртывание", "развертывание", "equal but for accents or signs"),
        ("Zürich Hauptbahnhof", "Zurich Hauptbahnhof", "equal but for accents or signs"),
        ("Marco Polo", "Марко Поло", "the same name in another spelling or script"),
        ("Brokercontainer", "Brokerconainer", "one letter differs"),
        ("master slave", "master salve", "one letter differs"),
        ("G. Hopper", "Grace Hopper", "initials agree"),
        ("J. R. R. Tolkien", "John Ronald Reuel Tolkien", "initials agree"),
        ("OSHA", "Occupational Safety and Health Administration", "the letters of the acronym agree"),
    ],
)
def test_names_of_one_thing_are_proposed(first: str, second: str, reason: str) -> None:
    (candidate,) = find_duplicates([named(first), named(second)])
    assert candidate.score >= 0.5
    assert candidate.reasons[0] == reason


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("GPT-3", "GPT-4"),
        ("report of 2023", "report of 2024"),
        ("Windows 10", "Windows 11"),
        ("Elizabeth I", "Elizabeth II"),
        ("Louis XIV", "Louis XV"),
        ("Mr. Fezziwig", "Mrs. Fezziwig"),
        ("John Smith", "Jane Smith"),
        ("J. Smith", "Mary Smith"),
        ("WHO", "who"),
        ("IT", "IP"),
        ("Ada", "Ida"),
        ("Silk Road", "Silk Route"),
    ],
)
def test_different_things_are_not_proposed(first: str, second: str) -> None:
    assert score_of(first, second) == 0.0


@pytest.mark.parametrize(
    ("first", "second"),
    [("master broker", "broker master"), ("cluster A", "clusterb"), ("openai", "openapi"), ("Marley", "Mr. Marley")],
)
def test_what_is_doubtful_is_below_the_usual_score(first: str, second: str) -> None:
    assert score_of(first, second) < 0.6


def test_the_order_of_words_counts_for_persons() -> None:
    assert score_of("Lovelace, Ada", "Ada Lovelace", "Person") > 0.8 > score_of("name server", "server name")


def test_entities_of_different_specific_types_are_not_one() -> None:
    rows = [named("Rocket MQ", "Artifact"), named("RocketMQ", "Person")]
    assert find_duplicates(rows) == []
    assert len(find_duplicates([named("Rocket MQ", "Artifact"), named("RocketMQ", "Unknown")])) == 1


def test_an_initial_that_fits_several_names_is_doubtful() -> None:
    rows = [named(name) for name in ("G. Hopper", "Grace Hopper", "Greta Hopper")]
    assert {candidate.score for candidate in find_duplicates(rows)} == {0.35}


def test_a_stated_alias_is_a_reason() -> None:
    (candidate,) = find_duplicates([named("CSS", "Other", "stylesheets"), named("stylesheets")])
    assert candidate.reasons == ("one is stated to be another name of the other",)


def test_pairs_that_were_told_apart_and_others_than_asked_for_are_left_out() -> None:
    rows = [named(name) for name in ("Rocket MQ", "RocketMQ", "name server", "nameserver")]
    assert len(find_duplicates(rows)) == 2
    assert len(find_duplicates(rows, {("rocket mq", "rocketmq")})) == 1
    (candidate,) = find_duplicates(rows, of=frozenset(["nameserver"]))
    assert (candidate.first, candidate.second) == ("name server", "nameserver")


def test_the_order_of_the_entities_does_not_matter() -> None:
    names = ("Rocket MQ", "RocketMQ", "A. Lovelace", "Ada Lovelace", "OSHA", "one safety health act", "names", "name")
    rows = [named(name) for name in names]
    expected = find_duplicates(rows)
    for seed in range(5):
        Random(seed).shuffle(rows)
        assert find_duplicates(rows) == expected


def test_a_form_that_many_names_share_proposes_nothing() -> None:
    rows = [named(f"{initial}. Smith{'s' * n}") for n, initial in enumerate("AB")]
    rows += [NamedEntity(key=f"lamp{'s' if n % 2 else ''}{' ' * n}", type="Other") for n in range(MAX_BLOCK + 1)]
    assert all("lamp" not in candidate.first for candidate in find_duplicates(rows))


def test_shared_neighbours_add_certainty_but_never_all_of_it() -> None:
    (candidate,) = find_duplicates([named("Rocket MQ"), named("RocketMQ")])
    assert with_neighbours(candidate, 0) == candidate
    one, many = with_neighbours(candidate, 1), with_neighbours(candidate, 100)
    assert candidate.score < one.score < many.score < 1
    assert one.reasons[-1] == "1 shared neighbour"
