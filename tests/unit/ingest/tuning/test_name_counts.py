"""What rules find in a sample, without a model."""

from quipu.ingest.tuning.name_counts import count_names
from quipu.model.extraction import TypeRule
from tests.unit.ingest.tuning.world import chunk

ENGLISH = [
    chunk("Marco Polo travelled from Venice to Persia with his father.", "a.md", title="The Book of Marco Polo"),
    chunk("In Venice the merchants asked Marco Polo about silk and silver.", "b.md", title="Venice"),
    chunk("The International Telegraph Union (ITU) met in Paris. Silk and silver were taxed.", "c.md", title="Cables"),
]


def test_types_are_counted_with_names_that_have_them() -> None:
    found = count_names(ENGLISH)
    by_name = {each.name: each for each in found.types}
    assert "Other" not in by_name
    assert by_name["Location"].n >= 3 and "Venice" in by_name["Location"].examples
    assert [each.n for each in found.types] == sorted((each.n for each in found.types), reverse=True)


def test_types_keep_how_they_are_described_now() -> None:
    rules = count_names(ENGLISH).type_rules(
        [TypeRule(name="Location", description="where things are"), TypeRule(name="Gene")]
    )
    assert TypeRule(name="Location", description="where things are") in rules
    assert "Gene" not in {rule.name for rule in rules}


def test_names_that_several_chunks_have_are_suggested_for_the_glossary() -> None:
    by_name = {term.name: term for term in count_names(ENGLISH).glossary}
    assert {"Marco Polo", "Venice"} <= by_name.keys()
    assert by_name["Venice"].type == "Location"
    assert "Paris" not in by_name


def test_the_domain_is_drafted_from_titles_and_telling_words() -> None:
    domain = count_names(ENGLISH).domain
    assert domain.startswith("Documents such as “The Book of Marco Polo”, “Venice”, “Cables”.")
    assert "silver" in domain and "the" not in domain.partition("speak of")[2].split()


def test_chinese_and_russian_are_counted_too() -> None:
    russian = [chunk(f"Иван Фёдоров напечатал книгу в Москве. Часть {n}.", f"{n}.md") for n in range(2)]
    chinese = [chunk(f"毕昇是北宋的工匠。沈括写了《梦溪笔谈》。第{n}部。", f"z{n}.md") for n in range(2)]
    for chunks, name in ((russian, "Иван Фёдоров"), (chinese, "梦溪笔谈")):
        found = count_names(chunks)
        assert name in {term.name for term in found.glossary}
        assert found.types and name in found.domain


def test_the_order_of_chunks_does_not_matter() -> None:
    one, other = count_names(ENGLISH), count_names(ENGLISH[::-1])
    assert (one.types, one.glossary) == (other.types, other.glossary)


def test_of_nothing_nothing_is_said() -> None:
    found = count_names([])
    assert (found.domain, found.types, found.glossary) == ("", (), ())
