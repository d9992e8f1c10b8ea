"""Duplicates: which names may be one thing, which never are, and why."""

from random import Random

import pytest

from quipu.derive.duplicate_index import DuplicateIndex
from quipu.derive.duplicates import MAX_BLOCK, Likeness, are_compatible, likeness_of_cosine, with_neighbours
from quipu.model.edit import DuplicateCandidate
from quipu.text.names import entity_key

NAMES = (
    "Rocket MQ",
    "RocketMQ",
    "A. Lovelace",
    "Ada Lovelace",
    "Lovelace",
    "OSHA",
    "one safety health act",
    "names",
    "name",
)


def likenesses(*names: str) -> dict[frozenset[str], Likeness]:
    """Return how alike names are, by their keys."""
    index = DuplicateIndex(dict(enumerate(map(entity_key, names))))
    key = index.key_by_number
    return {frozenset((key[a], key[b])): likeness for (a, b), likeness in index.likeness_by_pair.items()}


def score_of(first: str, second: str) -> float:
    """Return the score of two names, 0 if they are not alike."""
    likeness = likenesses(first, second).get(frozenset(map(entity_key, (first, second))))
    return likeness.score if likeness else 0.0


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
        ("Marco Polo", "Марко Поло", "the same name in another script"),
        ("Brokercontainer", "Brokerconainer", "one letter differs"),
        ("master slave", "master salve", "one letter differs"),
        ("G. Hopper", "Grace Hopper", "initials agree"),
        ("J. R. R. Tolkien", "John Ronald Reuel Tolkien", "initials agree"),
        ("OSHA", "Occupational Safety and Health Administration", "the letters of the acronym agree"),
    ],
)
def test_names_of_one_thing_are_proposed(first: str, second: str, reason: str) -> None:
    (likeness,) = likenesses(first, second).values()
    assert likeness.score >= 0.5
    assert likeness.reasons[0] == reason


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
        ("LX Legislature", "LXI Legislature"),
        ("1900", "1900s"),
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


def test_the_order_of_words_and_parts_of_names_count_for_persons() -> None:
    (likeness,) = likenesses("Lovelace, Ada", "Ada Lovelace").values()
    assert likeness.of_persons > 0.8 > likeness.score
    (likeness,) = likenesses("Ebenezer Scrooge", "Scrooge").values()
    assert likeness.of_persons == 2 * likeness.score
    (likeness,) = likenesses("The Boy", "Boys").values()
    assert likeness.of_persons < 0.6 < likeness.score
    assert likenesses("John T. Doe", "John Doe")[frozenset(("john t doe", "john doe"))].of_persons > 0.6


def test_entities_of_different_specific_types_are_not_one() -> None:
    assert not are_compatible("Artifact", "Person")
    assert are_compatible("Artifact", "Unknown")


def test_a_short_name_that_fits_several_is_doubtful() -> None:
    by_pair = likenesses("G. Hopper", "Grace Hopper", "Greta Hopper")
    assert {likeness.score for likeness in by_pair.values()} == {0.35}
    by_pair = likenesses("Cratchit", "Bob Cratchit", "Martha Cratchit")
    assert {likeness.of_persons for likeness in by_pair.values()} == {0.2}


def test_a_form_that_many_names_share_proposes_nothing() -> None:
    many = {n: f"lamp{'s' if n % 2 else ''}{' ' * n}" for n in range(MAX_BLOCK + 1)}
    assert not DuplicateIndex(many).likeness_by_pair


def test_the_order_of_the_names_does_not_matter() -> None:
    expected = likenesses(*NAMES)
    names = list(NAMES)
    for seed in range(5):
        Random(seed).shuffle(names)
        assert likenesses(*names) == expected


def test_changed_names_are_compared_as_if_all_were_new() -> None:
    words = ("ada", "a", "grace", "lovelace", "hopper", "hoper", "who", "WHO", "world", "health", "organization", "of")
    random = Random(3)

    def name() -> str:
        return " ".join(random.choice(words) for _ in range(random.randint(1, 4)))

    keys = dict(enumerate(sorted({name() for _ in range(300)})))
    index = DuplicateIndex(keys)
    for _ in range(20):
        taken = set(keys.values())
        changed = random.sample(sorted(keys), 12)
        new = {number: text for number in changed if (text := name()) not in taken and random.random() < 0.7}
        new = {number: text for number, text in new.items() if list(new.values()).count(text) == 1}
        keys = {number: key for number, key in keys.items() if number not in changed} | new
        index.update(changed, new)
        assert dict(index.likeness_by_pair) == dict(DuplicateIndex(keys).likeness_by_pair)
        keys |= {number: text for number in changed if number not in keys and (text := f"x{number}")}
        index.update(changed, keys)


def test_vectors_count_the_more_the_more_similar_they_are() -> None:
    assert likeness_of_cosine(0.85).score < likeness_of_cosine(0.95).score < likeness_of_cosine(1.0).score == 1
    assert likeness_of_cosine(0.2).score == 0


def test_shared_neighbours_add_certainty_but_never_all_of_it() -> None:
    candidate = DuplicateCandidate(first="a", second="b", score=0.5, reasons=("initials agree",))
    assert with_neighbours(candidate, 0) == candidate
    one, many = with_neighbours(candidate, 1), with_neighbours(candidate, 100)
    assert candidate.score < one.score < many.score < 1
    assert one.reasons[-1] == "1 shared neighbour"
