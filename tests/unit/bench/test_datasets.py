"""Reading data sets."""

from pathlib import Path

import pytest

from quipu.bench.datasets import DatasetPassage, GoldQuestion, read_dataset, read_questions
from quipu.errors import InvalidInput, NotFound

DATA = Path(__file__).resolve().parents[3] / "../shared/data"


def _write(folder: Path, corpus: str, queries: str) -> Path:
    (folder / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    return folder


def test_passages_and_questions_are_read_in_the_order_of_the_files(tmp_path: Path) -> None:
    _write(
        tmp_path,
        '{"id": 2, "title": "B", "text": "b", "extra": 1}\n{"id": "1", "text": "a"}\n',
        '{"id": "q", "question": "?", "answers": ["x"], "gold": ["2", "1"], "hops": 2}\n'
        '{"id": "g", "question": "?", "gold_groups": [["1", "2"], ["1"]]}\n{"id": "n", "question": "?", "gold": []}\n',
    )
    dataset = read_dataset(tmp_path)
    assert dataset.passages == (DatasetPassage(id="2", title="B", text="b"), DatasetPassage(id="1", title="", text="a"))
    assert dataset.questions == (
        GoldQuestion(id="q", text="?", answers=("x",), gold=(frozenset({"2"}), frozenset({"1"}))),
        GoldQuestion(id="g", text="?", answers=(), gold=(frozenset({"1", "2"}), frozenset({"1"}))),
        GoldQuestion(id="n", text="?", answers=(), gold=(), is_answerable=False),
    )


def test_questions_with_incomplete_gold_are_left_out(tmp_path: Path) -> None:
    _write(tmp_path, "", '{"id": "q", "question": "?", "all_facts_mapped": false}\n')
    assert read_dataset(tmp_path).questions == ()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"corpus\.jsonl"):
        read_dataset(tmp_path)


@pytest.mark.parametrize("line", ["{", "[1]", '{"id": "1"}'])
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    _write(tmp_path, f'{{"id": "0", "text": "a"}}\n{line}\n', "")
    with pytest.raises(InvalidInput, match=r"corpus\.jsonl, line 2"):
        read_dataset(tmp_path)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no development data in {DATA}")
def test_gold_of_the_development_sets_is_in_their_corpora() -> None:
    for name in ("musique_train100", "lihua_world"):
        dataset = read_dataset(DATA / name)
        ids = {passage.id for passage in dataset.passages}
        assert dataset.questions
        assert all(group <= ids for question in dataset.questions for group in question.gold)


IDS = ("notes/a.md", "notes/b.md", "old/b.md")


def test_questions_about_own_documents_name_them_by_id_or_by_its_end(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(
        '\ufeff{"question": " Who? ", "answers": ["Ann"], "gold": ["notes/a.md", "b.md"]}\n\n'
        '{"id": 7, "question": "What?", "unanswerable": true}\n',
        encoding="utf-8",
    )
    assert read_questions(file, IDS) == (
        GoldQuestion(
            id="1",
            text="Who?",
            answers=("Ann",),
            gold=(frozenset({"notes/a.md"}), frozenset({"notes/b.md", "old/b.md"})),
        ),
        GoldQuestion(id="7", text="What?", answers=(), gold=(), is_answerable=False),
    )


def test_a_table_separates_several_answers_and_documents_by_a_bar(tmp_path: Path) -> None:
    file = tmp_path / "q.TSV"
    file.write_text(
        "question\tanswers\tgold\tunanswerable\nWho?\tAnn | Anna\ta.md\nWhat?\t\t\ttrue\n", encoding="utf-8"
    )
    assert read_questions(file, IDS) == (
        GoldQuestion(id="2", text="Who?", answers=("Ann", "Anna"), gold=(frozenset({"notes/a.md"}),)),
        GoldQuestion(id="3", text="What?", answers=(), gold=(), is_answerable=False),
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "Invalid JSON"),
        ('{"question": "", "answers": ["x"]}', "question"),
        ('{"question": "?", "answer": ["x"]}', "answer"),
        ('{"question": "?"}', "no answers or gold"),
        ('{"question": "?", "answers": ["x"], "unanswerable": true}', "unanswerable question has answers"),
        ('{"question": "?", "gold": ["c.md"]}', "no document 'c.md'"),
        ('{"question": "?", "gold": ["d.md"]}', "no document 'd.md'"),
        ('{"id": "a", "question": "?", "answers": ["x"]}', "'a' is used twice"),
    ],
)
def test_a_question_that_cannot_be_asked_is_named_by_file_and_line(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(f'{{"id": "a", "question": "?", "answers": ["x"]}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=rf"q\.jsonl, line 2.*{problem}"):
        read_questions(file, (*IDS, "xd.md"))


def test_a_row_with_too_many_cells_is_named_by_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "q.tsv"
    file.write_text("question\tanswers\nWho?\tAnn\tmore\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"q\.tsv, line 2.*more cells than columns"):
        read_questions(file, IDS)


def test_a_file_that_is_missing_empty_or_in_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    with pytest.raises(NotFound, match=r"q\.jsonl"):
        read_questions(file, IDS)
    file.write_text("\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="holds no question"):
        read_questions(file, IDS)
    file.write_bytes('{"question": "Кто?"}'.encode("cp1251"))
    with pytest.raises(InvalidInput, match="is not UTF-8"):
        read_questions(file, IDS)
