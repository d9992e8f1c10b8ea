"""Reading data sets."""

from pathlib import Path

import pytest

from quipu.bench.datasets import DatasetPassage, GoldQuestion, read_dataset
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
        GoldQuestion(id="n", text="?", answers=(), gold=()),
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
