"""Tests of quotation: which blocks of the passages answer a question."""

from dataclasses import replace

import pytest

from quipu.answer.passage_text import PassageText, read_passage
from quipu.answer.question_kind import analyse_question
from quipu.answer.quotation import Quote, choose_quotes
from tests.unit.answer.fakes import chunk, passage_text

FILLER = "The wind blew over the steppe, and nothing else was heard there for many days of that year. " * 3
CAMELS = f"""# Camels

{FILLER}

## Loading

A camel kneels before it is loaded. Tie the salt on with:

```sh
tie salt --tight
```

{FILLER}

## Prices

| kind | price |
|---|---|
| horse | 12 |
| camel | 40 |
| donkey | 3 |

{FILLER}
"""


def _quotes(question: str, *passages: PassageText) -> list[Quote]:
    analysed = analyse_question(question)
    return choose_quotes(analysed, [passages] * len(analysed.parts))


def test_a_how_to_shows_the_code_after_the_sentence() -> None:
    quote = _quotes("How do I tie salt on a camel?", passage_text(CAMELS))[0]
    assert "A camel kneels" in quote.text
    assert "tie salt --tight" in quote.text
    assert quote.text.startswith("## Loading")


def test_a_row_is_shown_with_the_header_of_its_table() -> None:
    quote = _quotes("What is the price of a camel?", passage_text(CAMELS))[0]
    assert quote.text == "| kind | price |\n| camel | 40 |"


def test_a_header_is_shown_with_rows_below_it() -> None:
    quote = _quotes("Which kind has which price?", passage_text(CAMELS))[0]
    assert quote.text == "| kind | price |\n| horse | 12 |\n| camel | 40 |\n| donkey | 3 |"
    assert "".join(piece for piece, _ in quote.shown_pieces()).splitlines()[1] == "--- | ---"


def test_a_row_of_many_columns_is_shown_with_its_long_header_too() -> None:
    header = "| animal | " + " | ".join(f"price in the year {year}" for year in range(2001, 2013)) + " |"
    row = "| camel | " + " | ".join(str(n) for n in range(40, 52)) + " |"
    table = passage_text(f"{header}\n|---|\n| horse | 1 |\n{row}")
    assert len(header) > 200
    assert (
        _quotes("What was the price of a camel in the year 2003?", table)[0].text == f"{header}\n| horse | 1 |\n{row}"
    )


def test_a_row_cut_off_its_header_is_shown_with_it_too() -> None:
    cut = replace(passage_text("horse | 12\ncamel | 40"), chunk=replace(chunk("Prices", ""), header="kind | price"))
    quote = _quotes("What is the price of a camel?", cut)[0]
    assert quote.text == "kind | price\ncamel | 40"


def test_a_heading_is_never_quoted_alone() -> None:
    last = passage_text("Intro text about salt.\n\n## Where the caravan is")
    assert [quote.text for quote in _quotes("Where is the caravan?", last)] == ["Intro text about salt."]
    below = passage_text("## Where the caravan is\n\nIn Tabriz since the spring.")
    assert _quotes("Where is the caravan?", below)[0].text.endswith("In Tabriz since the spring.")


def test_a_definition_prefers_the_sentence_that_defines() -> None:
    mentioned = passage_text(f"The yam was late again, and the yam riders slept. {FILLER}", title="Riders")
    defined = passage_text(f"{FILLER}\n\nA yam is a post station of the Mongols.", title="Stations", score=0.8)
    assert "post station" in _quotes("What is a yam?", mentioned, defined)[0].text


@pytest.mark.parametrize("picture", ["", "[Picture: A rider]\n\n"])
def test_the_first_paragraph_below_the_term_defines_it_before_one_below_more_than_the_term(picture: str) -> None:
    defined = "Fast and safe post stations of the Mongols, which had fresh horses for every rider of the khan."
    page = passage_text(f"# Yam\n\n{picture}{defined}\n\n{FILLER}", title="Yam")
    others = passage_text(f"## Yam riders\n\nThese riders may use the yam.\n\n{FILLER}", title="Yam", score=0.8)
    assert defined in _quotes("What is the yam?", others, page)[0].text


def test_a_question_for_a_time_prefers_the_sentence_with_one() -> None:
    text = f"The bridge was built by the guild.\n\n{FILLER}\n\n{FILLER}\n\nThe bridge was built in 1352."
    assert "1352" in _quotes("When was the bridge built?", passage_text(text))[0].text


def test_a_list_is_shown_whole_with_what_introduces_it() -> None:
    items = "\n".join(f"- {city}, where the caravan rested and bought bread and water for the way" for city in "ABCDE")
    text = f"{FILLER}\n\nThe caravan passed these cities:\n\n{items}\n\n{FILLER}"
    quote = _quotes("Which cities did the caravan pass?", passage_text(text))[0]
    assert quote.text.startswith("The caravan passed these cities:")
    assert all(f"- {city}," in quote.text for city in "ABCDE")


def test_headings_below_a_heading_are_a_list() -> None:
    text = f"# Kinds of camels\n\n## Bactrian\n\n{FILLER}\n\n## Dromedary\n\n{FILLER}\n\n## Wild camel\n\n{FILLER}"
    quote = _quotes("Which kinds of camels are there?", passage_text(text))[0]
    assert all(name in quote.text for name in ("Bactrian", "Dromedary", "Wild camel"))


def test_a_comparison_quotes_both_sides() -> None:
    camel = passage_text("A camel is an animal that drinks once a week.", title="Camels")
    horse = passage_text("A horse is an animal that drinks each day.", title="Horses")
    quotes = _quotes("What is the difference between a camel and a horse?", camel, horse)
    assert [quote.passage.chunk.title for quote in quotes[:2]] == ["Camels", "Horses"]


def test_a_comparison_quotes_what_defines_a_side_before_a_row_that_names_both() -> None:
    text = "# 骆驼\n\n## 单峰骆驼\n单峰骆驼背上只有一个驼峰，跑得快。\n\n## 双峰骆驼\n双峰骆驼耐寒，毛长，走得慢。\n\n"
    table = "| 项目 | 说明 |\n|---|---|\n| 种类 | 支持单峰骆驼和双峰骆驼 |\n| 盐 | 单峰骆驼和双峰骆驼都驮 |"
    texts = [quote.text for quote in _quotes("单峰骆驼和双峰骆驼有什么区别？", passage_text(text + table))]
    assert "跑得快" in texts[0]
    assert any("走得慢" in quoted for quoted in texts)


def test_each_part_of_a_question_is_ranked_by_its_own_words() -> None:
    both = passage_text("The wolf is eating in the great desert, where camels drink in the dry summer.", title="B")
    one = passage_text("The wolf is eating hares.", title="A")
    quotes = _quotes("What is the wolf eating, and where do camels drink in the dry summer?", both, one)
    assert [quote.text for quote in quotes] == [one.text, both.text]


def test_a_row_whose_first_cell_is_the_term_defines_it() -> None:
    rows = "| kiln bread | bread of a kiln, as the kiln leaves it |\n| kiln | an oven for bricks |"
    text = f"| word | meaning |\n|---|---|\n{rows}"
    assert _quotes("What is a kiln?", passage_text(text))[0].row == "| kiln | an oven for bricks |"


def test_equal_text_is_quoted_once() -> None:
    sentence = "The caravan left Tabriz in May."
    quotes = _quotes("When did the caravan leave Tabriz?", passage_text(sentence), passage_text(sentence, title="Copy"))
    assert [quote.text for quote in quotes] == [sentence]


def test_up_to_four_quotes_are_shown_where_they_are_as_good_as_the_first() -> None:
    texts = [f"The caravan left Tabriz in {year}." for year in (1271, 1272, 1273, 1274, 1275)]
    quotes = _quotes("When did the caravan leave Tabriz?", *(passage_text(text, title=text[-5:]) for text in texts))
    assert [quote.text for quote in quotes] == texts[:4]


def test_a_third_quote_that_is_weaker_is_left_out() -> None:
    texts = ["The caravan left Tabriz in 1271.", "The caravan left Tabriz in 1272.", "Tabriz saw a caravan in 1273."]
    quotes = _quotes("When had the caravan left Tabriz?", *(passage_text(text, title=text[-5:]) for text in texts))
    assert [quote.text for quote in quotes] == texts[:2]


def test_a_much_weaker_second_quote_is_left_out() -> None:
    other = passage_text("Salt is white.", title="Salt", score=0.1)
    quotes = _quotes("When did the caravan leave Tabriz?", passage_text("The caravan left Tabriz in May."), other)
    assert len(quotes) == 1


def test_quotes_together_are_not_longer_than_the_limit() -> None:
    texts = [passage_text(f"The caravan left Tabriz in May. {FILLER * 3}", title=str(number)) for number in range(6)]
    assert sum(len(quote.text) for quote in _quotes("When did the caravan leave Tabriz?", *texts)) <= 1_500


def test_a_licence_is_quoted_only_where_it_is_asked_for() -> None:
    text = "Copyright 1298 Marco Polo. The travels may be copied by anyone who walks.\n\nThe travels begin in Venice."
    assert "Copyright" not in "".join(
        quote.text for quote in _quotes("Where do the travels begin?", passage_text(text))
    )
    assert "Copyright" in _quotes("Who has the copyright of the travels?", passage_text(text))[0].text


def test_a_block_that_a_chunk_cuts_is_completed_from_its_neighbour() -> None:
    first = replace(chunk("Settings", "max_camels"), id="a")
    second = replace(chunk("Settings", "How many camels go together.\n\nDefault: 40"), id="b", ordinal=1)
    second = replace(second, start=first.end + 5, end=first.end + 5 + len(second.text))
    passage = read_passage(first, 1.0, {("Settings.md", 1): second})
    quote = _quotes("What is the default of max_camels?", passage)[0]
    citations = list(passage.citations(quote.spans, 1, ""))
    assert "Default: 40" in quote.text
    assert [citation.chunk_id for citation in citations] == ["a", "b"]
    for citation, part in zip(citations, (first, second), strict=True):
        assert part.text[citation.start - part.start : citation.end - part.start] == citation.quote


def test_words_meet_in_all_their_forms_in_russian_and_chinese() -> None:
    russian = passage_text(f"{FILLER}\n\nКараваны выходили из Тебриза в мае.")
    assert "Тебриза" in _quotes("Когда караван вышел из Тебриза?", russian)[0].text
    chinese = passage_text("商队五月离开大不里士。骆驼驮着盐。")
    assert "五月" in _quotes("商队什么时候离开大不里士？", chinese)[0].text


def test_a_code_is_found_as_a_whole() -> None:
    first, second = (
        "MAX_CAMELS\n    How many go.\n    Default: 40",
        "MAX_CAMELS_NAME\n    Their name.\n    Default: Ali",
    )
    text = f"{first}\n\n{FILLER}\n\n{second}"
    assert "Ali" in _quotes("What is the default of MAX_CAMELS_NAME?", passage_text(text))[0].text


def test_of_equally_good_sentences_the_one_whose_block_says_more_of_the_question_is_quoted() -> None:
    notes = f"""Camels rest.

{FILLER}

Camels rest at wells. A camel that rests needs water, and camels that carry salt rest twice.
"""
    assert "salt" in _quotes("How do camels with salt rest?", passage_text(notes))[0].text


def test_a_sentence_that_says_what_is_called_so_is_a_definition() -> None:
    notes = f"""A caravanserai is old. The caravanserai was full.

{FILLER}

A walled inn where traders rest for a night is called a “caravanserai” in these lands.

{FILLER}

See the caravanserai.
"""
    shown = "\n".join(quote.text for quote in _quotes("What is a caravanserai?", passage_text(notes)))
    assert "walled inn" in shown


MANUAL = f"""{FILLER}

-n, --night
Walk at night. This is equivalent to --hours 20-4.

load CAMEL...
Put the salt on one or more camels, and tie it.

{FILLER}

The kneel command makes a camel sit down. Use load -n where kneel -N fails.
"""


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("What does -n do?", "-n, --night\nWalk at night."),
        ("What does the --night option do?", "-n, --night\nWalk at night."),
        ("What does caravan load do?", "load CAMEL...\nPut the salt on"),
        ("What does caravan kneel do?", "The kneel command makes a camel sit down."),
    ],
)
def test_what_an_option_or_a_command_does_is_quoted_from_its_entry(question: str, shown: str) -> None:
    examples = passage_text(
        "Examples:\n\n```sh\ncaravan load -n kneel\ncaravan -n load -n\n```", title="caravan", score=1.0
    )
    quote = _quotes(question, examples, passage_text(MANUAL, title="caravan(1)", score=0.8))[0]
    assert shown in quote.text


def test_a_plural_is_no_verb_that_says_what_a_setting_does() -> None:
    notes = "Kneel directives come before all others.\n\nThe Kneel directive makes a camel sit down where it stands."
    quote = _quotes("What does the Kneel directive do?", passage_text(f"{notes}\n\n{FILLER}"))[0]
    assert quote.text[slice(*(place - quote.spans[0][0] for place in quote.mark))].startswith(
        "The Kneel directive makes"
    )


def test_the_default_of_a_setting_is_quoted_from_the_section_with_its_name() -> None:
    advice = "To carry one bale at a time, set max_bales to 1. The default of max_bales suits most caravans."
    manual = f"# Settings\n\n## max_camels\n\nDefault: 12.\n\n## `max_bales`\n\nDefault: 4.\n\n{FILLER}"
    quotes = _quotes("What is the default of max_bales?", passage_text(advice), passage_text(manual, score=0.9))
    assert quotes[0].text.startswith("## `max_bales`\n\nDefault: 4.")


def test_the_default_of_a_setting_is_the_line_that_states_it() -> None:
    manual = (
        f"# Settings\n\n{FILLER}\n\n### `baleLimit`\n\n+ Default: `4` (tied)\n\nHow many bales a camel accepts.\n\n"
        f"The default driver sends a bale back if the limit is passed.\n\n{FILLER}"
    )
    advice = "The limit of each driver is the default bale limit of the caravan."
    quotes = _quotes(
        "What is the default bale limit?", passage_text(advice, score=0.7), passage_text(manual, score=1.0)
    )
    assert quotes[0].text.startswith("### `baleLimit`\n\n+ Default: `4` (tied)")


@pytest.mark.parametrize(
    "heading",
    ["## `max_bales`", "## max_bales (integer)", "## Caravan.max_bales", "## max_bales=N", "max_bales\n---------"],
)
def test_what_a_setting_does_is_quoted_from_the_paragraphs_below_its_name(heading: str) -> None:
    advice = "Set max_bales with care. What max_bales does to a camel, max_bales does to a horse."
    manual = f"# Settings\n\n{FILLER}\n\n{heading}\n\nDefault: 4.\n\nA camel carries no more than this.\n\n{FILLER}"
    quotes = _quotes("What does max_bales do?", passage_text(advice), passage_text(manual, score=0.9))
    assert "carries no more than this" in quotes[0].text


@pytest.mark.parametrize(
    "sentence", ["In trade, a bale is a bundle of goods.", "A bale represents what a camel carries."]
)
def test_a_definition_may_name_its_field_or_say_what_the_term_represents(sentence: str) -> None:
    mentions = passage_text(f"A bale came. {FILLER}\n\nThe bale fell, and that bale was lost.")
    assert sentence in _quotes("What is a bale?", mentions, passage_text(f"{FILLER}\n\n{sentence}", score=0.9))[0].text


@pytest.mark.parametrize(
    ("question", "n_quotes"), [("What is a cover text?", 0), ("Which licence has a cover text?", 1)]
)
def test_the_text_of_a_licence_is_quoted_only_for_a_question_about_one(question: str, n_quotes: int) -> None:
    text = "A cover text is a passage of text on the cover. It belongs to the licence."
    passage = passage_text(text, headings=("Camels", "Appendix A. GNU Free Documentation License"))
    assert len(_quotes(question, passage)) == n_quotes
    assert _quotes("What is a cover text?", passage_text(text, headings=("Covers", "Driver License")))


def test_two_words_of_a_question_may_be_one_in_the_text() -> None:
    text = f"The caravan has its own user. {FILLER}\n\nRun `createsuperuser` to make one.\n\n{FILLER}"
    assert "createsuperuser" in _quotes("How do I create a superuser?", passage_text(text))[0].text


def test_a_definition_is_found_behind_many_sentences_with_the_term() -> None:
    mentions = [passage_text("\n\n".join(f"{FILLER} Here came camel number {n}." for n in range(40)))] * 3
    definition = passage_text(f"{FILLER}\n\nA camel is an animal that stores fat in its hump.", score=0.8)
    quotes = _quotes("What is a camel?", *mentions, definition)
    assert "stores fat" in quotes[0].text


@pytest.mark.parametrize("name", ["SaltQL", "ledger"])
def test_a_name_with_a_capital_inside_must_be_in_a_quote(name: str) -> None:
    passage = passage_text(f"The version of the {name} that Bukhara uses is 3.")
    (quote,) = _quotes("Which SaltQL version does Bukhara use?", passage)
    assert quote.held.has_name == (name == "SaltQL")


def test_the_entry_of_an_option_is_not_that_of_its_capital() -> None:
    quotes = _quotes("What does -N do?", passage_text(MANUAL, title="caravan(1)"))
    assert not any("Walk at night" in quote.text for quote in quotes[:1])


def test_the_last_word_of_a_term_is_defined_only_in_a_text_about_the_words_before_it() -> None:
    other = passage_text("load CART...\nPut hay on a cart.", title="carts", score=1.0)
    own = passage_text("load CAMEL...\nPut salt on a camel.", title="caravan(1)", score=0.8)
    assert "camel" in _quotes("What does caravan load do?", other, own)[0].text


def test_a_heading_that_asks_stands_above_its_answer() -> None:
    notes = f"""Does a camel walk in the rain?

{FILLER}

Can a camel carry salt at night?

No, it cannot. {FILLER}

So, if a camel has to carry salt at night, take a lamp."""
    words = _quotes("Can a camel carry salt at night?", passage_text(notes))[0].text.split()
    assert " ".join(words).startswith("Can a camel carry salt at night? No, it cannot.")


def test_a_quote_ends_neither_with_a_heading_nor_with_the_head_of_a_table() -> None:
    rows = "\n".join(f"market {n} | {'dear ' * 60}" for n in range(3))
    notes = f"A camel kneels before it is loaded with salt.\n\nprice | where\n{rows}\n\n{FILLER}"
    quote = _quotes("How is a camel loaded with salt?", passage_text(notes))[0]
    assert quote.text == "A camel kneels before it is loaded with salt."


def test_a_block_that_is_almost_whole_is_shown_to_its_end() -> None:
    steps = " ".join(f"Step {n} is to pull the {word} rope." for n, word in enumerate(["left", "right"] * 6))
    notes = f"{FILLER}\n\nLoading a camel with salt takes twelve steps. {steps}\n\n{FILLER}"
    assert 360 < len(steps) < 440
    assert "Step 11 is" in _quotes("How do I load a camel with salt?", passage_text(notes))[0].text


def test_a_how_to_shows_the_example_below_a_paragraph_whole() -> None:
    code = "\n".join(f"rope --pull {n} --tight --knots {n}" for n in range(15))
    notes = f"# Loading\n\n{FILLER}\n\nSalt is tied on a camel with a rope.\n\n```sh\n{code}\n```\n\n{FILLER}"
    assert 360 < len(code) < 700
    shown = _quotes("How do I tie salt on a camel?", passage_text(notes))[0].text
    assert shown.startswith("# Loading\nSalt is tied on a camel")
    assert code in shown
    assert code not in _quotes("What is tied on a camel with a rope?", passage_text(notes))[0].text


def test_long_code_is_cut() -> None:
    code = "\n".join(f"rope --pull {n} --tight --knots {n}" for n in range(200))
    notes = f"{FILLER}\n\nSalt is tied on a camel with a rope.\n\n```sh\n{code}\n```\n\n{FILLER}"
    quotes = _quotes("How do I tie salt on a camel?", passage_text(notes))
    assert 700 < len(quotes[0].text) <= 1_100


def test_a_passage_without_the_name_of_the_document_that_is_asked_about_is_quoted_last() -> None:
    text = "Drop old backups and get the space of the disk back. Nobody has to wait for it in the evening."
    others = [
        passage_text(text, title="Dnsmasq"),
        passage_text(f"Restic can drop old backups. {FILLER}", title="Restic"),
    ]
    quotes = _quotes("How do I drop old restic backups?", *others)
    assert [quote.passage.chunk.title for quote in quotes] == ["Restic", "Dnsmasq"]
    quotes = _quotes("How do I drop old backups and get space?", *others)
    assert [quote.passage.chunk.title for quote in quotes] == ["Dnsmasq", "Restic"]


def test_what_a_line_announces_follows_it_across_a_rule() -> None:
    code = "\n".join(f"$ fasten --rope {n} --tight --knots {n} --wet" for n in range(12))
    notes = f"Tie the salt on a camel with this command:\n\n------------\n\n{code}\n\n------------\n\n{FILLER}"
    assert "--rope 0" in _quotes("How do I tie salt on a camel?", passage_text(notes))[0].text


def _shown(quote: Quote) -> str:
    return "".join(piece for piece, _ in quote.shown_pieces())


def test_a_row_is_shown_as_a_table_of_markdown() -> None:
    quote = _quotes("What is the price of a camel?", passage_text(CAMELS))[0]
    assert _shown(quote) == "| kind | price |\n--- | ---\n| camel | 40 |"
    cut = replace(passage_text("horse | 12\ncamel | 40"), chunk=replace(chunk("Prices", ""), header="kind | price"))
    assert _shown(_quotes("What is the price of a camel?", cut)[0]) == "kind | price\n--- | ---\ncamel | 40"


def test_a_row_that_says_less_than_another_row_of_its_table_is_not_quoted() -> None:
    rows = "\n".join(f"| {town} | {n} |" for n, town in enumerate(("Aleppo", "Basra", "Cairo", "Damascus"), 10))
    table = passage_text(f"| town | gates |\n|---|---|\n{rows}")
    assert [quote.row for quote in _quotes("How many gates has Cairo?", table)] == ["| Cairo | 12 |"]
    both = _quotes("How many gates have Cairo and Basra?", table)
    assert len(both) == 1
    assert all(row in both[0].text for row in ("| Cairo | 12 |", "| Basra | 11 |"))


def test_a_row_that_holds_few_words_of_the_question_is_shown_with_the_rows_around_it() -> None:
    cells = ("Owner | Ann Lee", "Breed | Kalmyk", "Colour | dun", *(f"Trait {n} | long" for n in range(30)))
    table = passage_text("| Field | Value |\n|---|---|\n" + "\n".join(f"| {cell} |" for cell in cells))
    asked = _quotes("Which animal was sold to Ann Lee last spring?", table)[0].text
    assert "| Colour | dun |" in asked
    assert len(asked) <= 300
    assert _quotes("Who is the owner, Ann Lee?", table)[0].text == "| Field | Value |\n| Owner | Ann Lee |"


def test_code_that_is_cut_is_shown_between_fences() -> None:
    lines = "\n".join(f"caravan.load(salt_{n}, on=camel_{n})  # and tie it on with a long rope" for n in range(40))
    quote = _quotes("How do I load salt_30 on camel_30?", passage_text(f"# Loading\n\n```python\n{lines}\n```"))[0]
    shown = _shown(quote)
    assert "salt_30" in shown
    assert shown.count("```python\n") == 1
    assert shown.endswith("\n```")
    assert shown.count("```") == 2


def test_a_fence_that_closes_code_of_an_earlier_chunk_opens_no_code() -> None:
    text = "camel.load(salt)\n```\n\nThe camel kneels before salt is loaded.\n\n```python\ncamel.kneel()\n```"
    quote = _quotes("When does the camel kneel?", passage_text(text))[0]
    assert "The camel kneels before salt is loaded." in _shown(quote)
    assert _shown(quote).startswith("```\ncamel.load(salt)\n```\n")
    assert _shown(quote).count("```") % 2 == 0


def test_text_before_a_diagram_is_no_code() -> None:
    text = "The camel kneels before salt is loaded.\n\n```mermaid\ngraph TD\nA-->B\n```\n\nThe desert is wide."
    shown = _shown(_quotes("When does the camel kneel?", passage_text(text))[0])
    assert shown.startswith("The camel kneels before salt is loaded.")
    assert shown.count("```") in (0, 2)


def test_what_is_left_out_between_items_is_marked() -> None:
    items = "\n".join(
        f"- {city}: {'the caravan rested and bought bread and water there ' * (9 * (city == 'B') + 1)}"
        for city in "ABCD"
    )
    text = f"{FILLER}\n\nThe caravan passed these cities:\n\n{items}\n\n{FILLER}"
    shown = _shown(_quotes("Which cities did the caravan pass?", passage_text(text))[0])
    assert "…\n- C" in shown
    assert shown.count("…") == 1


def test_sentences_are_quoted_before_an_index_of_the_same_words() -> None:
    names = (
        "load of a camel",
        "camel load",
        "camel, saddle, load",
        "camel saddle",
        "saddle of a camel",
        "saddle, load",
    )
    index = "\n".join(f"- {name} - camel.html#{n}" for n, name in enumerate(names))
    text = "A camel kneels before the salt is put on its saddle, and the load is tied with a rope."
    quotes = _quotes(
        "Where is the load on the saddle of a camel?", passage_text(index), passage_text(text, title="Ropes")
    )
    assert _shown(quotes[0]) == text


def test_a_how_to_whose_best_quote_has_no_code_also_gets_one_with_code() -> None:
    about = passage_text("A camel is loaded with salt by loading the salt on, and every camel driver loads salt well.")
    other = passage_text("A camel whose salt is loaded badly is a danger to all who walk on the road.", title="Rain")
    code = "Salt is put on a camel, as its load, with:\n\n```sh\nrope --tight\n```"
    tells = passage_text(code, title="Ropes", score=0.5)
    shown = [_shown(quote) for quote in _quotes("How do I load salt on a camel?", about, other, tells)]
    assert "```" not in shown[0]
    assert "rope --tight" in shown[1]


def test_a_fence_before_a_blank_line_closes_code_that_nothing_opens() -> None:
    text = "camel.load(salt)\n```\n\nThe camel kneels before salt is loaded."
    assert _shown(_quotes("When does the camel kneel?", passage_text(text))[0]) == (
        "```\ncamel.load(salt)\n```\n\nThe camel kneels before salt is loaded."
    )


def test_what_introduces_a_list_begins_with_a_sentence() -> None:
    lead = f"{FILLER}{FILLER}A caravan takes good care of its water. The caravan stops and rests at these cities:"
    text = f"{lead}\n\n- Aleppo\n- Basra\n- Cairo\n\n{FILLER}"
    shown = _shown(_quotes("Which cities did the caravan pass?", passage_text(text))[0])
    assert shown.startswith(("The wind", "A caravan"))
    assert "- Aleppo\n- Basra\n- Cairo" in shown


def test_who_did_something_is_a_name_before_the_word_for_it() -> None:
    text = f"The wells are dug every year.\n\n{FILLER}\n\nNobody knew why. Dara dug the wells by hand."
    quote = _quotes("Who dug the wells?", passage_text(text))[0]
    assert quote.passage.text[slice(*quote.mark)] == "Dara dug the wells by hand."


def test_of_questions_with_their_answers_only_those_that_match_are_quoted() -> None:
    records = passage_text(
        "# Caravans\n\nQ: What does a camel drink?\nA: Water, a hundred litres at once.\n\n"
        "Q: How do I tie the salt?\nA: Twice around the saddle.\nQ: May I sleep on the way?\nA: Only at the wells."
    )
    quotes = _quotes("How is the salt tied?", records)
    assert [quote.text for quote in quotes] == ["# Caravans\nQ: How do I tie the salt?\nA: Twice around the saddle."]


def test_a_quote_below_a_heading_names_the_section_and_not_the_subject_before() -> None:
    text = f"## Loading\n\n### Which animals kneel?\n\n{FILLER}\n\n### How much salt does a camel carry?\n\nTwo slabs."
    quote = _quotes("How much salt can a camel carry?", passage_text(text))[0]
    assert quote.text == "## Loading\n### How much salt does a camel carry?\n\nTwo slabs."


def test_release_notes_are_quoted_first_only_where_changes_are_asked_for() -> None:
    notes = passage_text("Fixed: the proxy that the caravan uses for camels.", title="Changelog", score=1.0)
    manual = passage_text("A proxy for camels is used, if one is set.", title="Caravan", score=0.8)
    assert "is set" in _quotes("Which proxy does the caravan use for camels?", notes, manual)[0].text
    assert "Fixed" in _quotes("In which version was the proxy for camels fixed?", notes, manual)[0].text


@pytest.mark.parametrize(
    ("question", "answering"),
    [
        ("How many camels per caravan are allowed by default?", "Default: 40"),
        ("What is the default of the camel speed?", "Default: 4"),
    ],
)
def test_a_setting_is_found_by_words_that_are_its_name(question: str, answering: str) -> None:
    advice = "By default the camels of a caravan walk in a line, at the speed of the slowest."
    manual = f"CAMELS_PER_CARAVAN\n------------------\n\nDefault: 40\n\n## camel-speed\n\nDefault: 4\n\n{FILLER}"
    quotes = _quotes(question, passage_text(advice), passage_text(manual, score=0.8))
    assert answering in quotes[0].text


def test_what_a_paragraph_says_that_something_is_outweighs_its_options_and_remarks() -> None:
    options = passage_text(f"## AUTOLOAD_DEBUG\n\nShow each step of AutoLoad.\n\n{FILLER}", title="AutoLoad", score=1.0)
    text = f"# AutoLoad extension\n\nWarning: AutoLoad is slow.\n\nThis is an extension that loads camels.\n\n{FILLER}"
    quotes = _quotes("What is AutoLoad?", options, passage_text(text, title="AutoLoad extension", score=0.9))
    assert "This is an extension" in quotes[0].text


def test_what_something_is_outweighs_what_it_offers() -> None:
    offers = passage_text("Caravel provides a way to count camels. Caravel allows more.", score=1.0)
    front = passage_text("Caravel is:\n\n* a queue of camels\n* written in sand\n", score=0.8)
    assert "a queue of camels" in _quotes("What is Caravel?", offers, front)[0].text


def test_the_section_with_the_name_of_a_term_defines_it_in_a_comparison() -> None:
    example = (
        f"## CamelRider example\n\nLet us look at a CamelRider with rules:\n\n```py\nCamelRider()\n```\n\n{FILLER}"
    )
    sections = f"## CamelRider\n\nThis is for long ways.\n\n## HorseRider\n\nThis is for haste.\n\n{FILLER}"
    quotes = _quotes(
        "What is the difference between CamelRider and HorseRider?",
        passage_text(example, score=1.0),
        passage_text(sections, score=0.9),
    )
    shown = "".join(quote.text for quote in quotes)
    assert "for long ways" in shown
    assert "for haste" in shown


@pytest.mark.parametrize("question", ["Under which license is Caravel distributed?", "Какая лицензия у Caravel?"])
def test_a_question_about_a_licence_is_answered_by_the_line_with_it(question: str) -> None:
    text = "Caravel counts camels.\n\nCaravel is licensed under MIT. Лицензия Caravel - MIT.\n\nCaravel is fast."
    assert "MIT" in _quotes(question, passage_text(text))[0].text


@pytest.mark.parametrize("question", ["什么是封装？", "封装是什么？", "什么是多音字？"])
def test_a_short_chinese_term_is_found_whole(question: str) -> None:
    text = "封装 是可以放置在电路板上的元件。\n\n多音字 是有几个读音的汉字。"
    quote = _quotes(question, passage_text(text, title="说明"))[0]
    assert quote.held.share == 1.0


def test_an_entry_of_an_index_defines_nothing() -> None:
    index = passage_text(
        "- WAL mode - wal.html\n- WAL reset - walformat.html\n- wal-index - walformat.html#shm", score=1.0
    )
    manual = passage_text("Changes are appended to another file in WAL mode, and stay there for a while.", score=0.8)
    assert "appended" in _quotes("What is WAL mode?", index, manual)[0].text
    entry = passage_text("- WAL mode - changes are appended to another file", score=0.8)
    assert "appended" in _quotes("What is WAL mode?", index, entry)[0].text


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("Caravel has created a road, and whoever walks it is created anew.", False),
        ("The roads were created by Ada Kern.", True),
        ("Ada Kern created the roads of Caravel.", True),
        ("Caravel was reported by CVEs. It created roads.", False),
    ],
)
def test_a_question_for_an_author_is_answered_only_where_somebody_is_named(text: str, is_named: bool) -> None:
    quote = _quotes("Who created Caravel?", passage_text(text, title="The Roads Of Caravel"))[0]
    assert quote.held.only_subject is not is_named
