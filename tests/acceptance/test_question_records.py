"""Records of questions and answers: a question in other words leads to the record whose question is like it."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu import sync
from quipu.model.ids import sentence_place

RECORDS = (
    ("How do I reset my password?", "Open Settings, choose Security and press Change password."),
    ("Can I get my money back?", "Within 30 days of the purchase we refund the full price."),
    ("Which payment methods do you accept?", "Visa, Mastercard, PayPal and bank transfer."),
    ("How long does shipping take?", "Parcels inside the EU arrive in three to five working days."),
    ("How do I cancel my subscription?", "In Billing, press End plan. It stays active until the end of the month."),
    ("Where can I see my invoices?", "They are in Billing under Documents, as PDF files."),
    ("What is the maximum upload size?", "Files of up to 2 GB can be uploaded."),
    ("How do I invite a colleague?", "Owners open Members and enter the address."),
    ("Can I use the product offline?", "The desktop client keeps a local copy."),
    ("How do I contact support?", "Write to the help desk; the answer comes on working days."),
)
# Each shares no word with the record that it asks for, or no more than with another one.
PARAPHRASES = (
    ("I forgot my login credentials, what now?", 0),
    ("What is your refund policy?", 1),
    ("Where do I find receipts?", 5),
    ("Is it possible to work without internet?", 8),
)


def _as_lines(folder: Path) -> Path:
    file = folder / "faq.txt"
    file.write_text("\n\n".join(f"Q: {question}\nA: {answer}" for question, answer in RECORDS), encoding="utf-8")
    return file


def _as_headings(folder: Path) -> Path:
    file = folder / "faq.md"
    sections = "\n\n".join(f"## {question}\n\n{answer}" for question, answer in RECORDS)
    file.write_text(f"# Help\n\n{sections}\n", encoding="utf-8")
    return file


def _as_table(folder: Path) -> Path:
    file = folder / "faq.csv"
    with file.open("w", newline="", encoding="utf-8") as output:
        csv.writer(output).writerows([("Question", "Answer"), *RECORDS])
    return file


@pytest.mark.parametrize("write", [_as_lines, _as_headings, _as_table])
def test_a_question_in_other_words_leads_to_its_record(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    with sync.open(tmp_path / "index") as index:
        index.add(write(tmp_path))
        for text, place in PARAPHRASES:
            answer = index.query(text)
            question, reply = RECORDS[place]
            assert question in answer.text, text
            assert reply[:20] in answer.text, text
            (seed,) = (seed for seed in answer.trace.evidence.seeds if seed.kind == "question")
            assert sentence_place(seed.matches[0].id)[1] == place, text


def test_no_record_is_close_where_several_are_equally_near(tmp_path: Path) -> None:
    """Short questions in Russian are all alike to the default embedder, so a high cosine alone means nothing."""
    file = tmp_path / "faq.txt"
    file.write_text(
        "Вопрос: Как вернуть деньги за билет?\nОтвет: Подайте заявление в кассу.\n\n"
        "Вопрос: Можно ли провозить собаку?\nОтвет: Да, в наморднике.\n\n"
        "Вопрос: Где посмотреть расписание?\nОтвет: На сайте вокзала.\n",
        encoding="utf-8",
    )
    with sync.open(tmp_path / "index") as index:
        index.add(file)
        answer = index.query("Кто написал эту книгу?")
        (seed,) = (seed for seed in answer.trace.evidence.seeds if seed.kind == "question")
        assert seed.matches[0].score > 0.5
        assert "Ответ" not in answer.text
        assert "Можно ли провозить собаку?" in index.query("Можно ли ехать с кошкой?").text


def test_a_question_about_something_else_is_refused(tmp_path: Path) -> None:
    with sync.open(tmp_path / "index") as index:
        index.add(_as_lines(tmp_path))
        for text in ("Who painted the Mona Lisa?", "Do you ship to Brazil?", "How do I reset my router?"):
            assert not index.query(text).is_supported, text


def test_a_record_that_asks_something_else_about_a_term_does_not_define_it(tmp_path: Path) -> None:
    page = "# Yam\n\nYam is a chain of post stations.\n\n## Why Yam?\n\nFresh horses wait there.\n"
    (tmp_path / "yam.md").write_text(page, encoding="utf-8")
    with sync.open(tmp_path / "kb") as kb:
        kb.add(tmp_path / "yam.md")
        assert "post stations" in kb.query("What is Yam?").text.split("[1]")[0]
        assert "Fresh horses" in kb.query("Why Yam?").text.split("[1]")[0]


def test_a_record_in_other_words_may_say_what_a_term_is(tmp_path: Path) -> None:
    page = "# Shop\n\n## Can I get my money back?\n\nYes, within 30 days.\n\n## Where are you?\n\nIn Bergen.\n"
    (tmp_path / "shop.md").write_text(page, encoding="utf-8")
    with sync.open(tmp_path / "kb") as kb:
        kb.add(tmp_path / "shop.md")
        assert "within 30 days" in kb.query("What is the refund policy?").text


def test_a_record_about_another_term_does_not_define_one(tmp_path: Path) -> None:
    roads = "# Дороги\n\n## Что такое git mapping?\n\nОн определяет, какие файлы попадут в груз.\n"
    salt = "# Соль\n\nРезультатом развертывания является *релиз* — совокупность развернутых ресурсов.\n"
    with sync.open(tmp_path / "index") as kb:
        kb.add_text(roads, id="roads.md")
        kb.add_text(salt, id="salt.md")
        assert "совокупность" in kb.query("Что такое релиз?").text.split("[1]")[0]
        assert "попадут в груз" in kb.query("Что такое git mapping?").text.split("[1]")[0]


def test_a_record_that_shares_only_the_name_of_a_product_does_not_answer_what_passages_say(tmp_path: Path) -> None:
    """It is the only question of all documents, so no other one is nearer; but passages are."""
    record = (
        "# Winter\n\n#### Should you use the Yam server in a snowy climate?\n\nThe best place is a heated cellar.\n"
    )
    close = "# Closing\n\nWhen the Yam server closes, it runs the hooks in the order in which they were added.\n"
    with sync.open(tmp_path / "index") as kb:
        kb.add_text(record, id="winter.md")
        kb.add_text(close, id="close.md")
        answer = kb.query("In which order does the Yam server run hooks?")
        assert "in which they were added" in answer.text and "heated cellar" not in answer.text
        assert "heated cellar" in kb.query("Should you use the Yam server in a snowy climate?").text.split("[1]")[0]
