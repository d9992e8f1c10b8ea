"""The questions on manuals: their format, their baselines and their scores."""

from pathlib import Path

import pytest

from benchmarks.answers.baselines import Baseline, WindowSearch, answer_with_windows
from benchmarks.answers.check import composition, faults_of, repeated_ids, window_rates
from benchmarks.answers.documents import read_manifest
from benchmarks.answers.plain import PlainDocument, html_text
from benchmarks.answers.questions import Question, read_questions, write_questions
from benchmarks.answers.scores import AnswerRow, Asked, difference, pair, stage_table, table

FOLDER = Path(__file__).parents[3] / "benchmarks/answers"
HALVES = sorted(FOLDER.glob("*.jsonl"))
FERRY = PlainDocument("ferry.txt", "The ferry leaves at nine.\n\nIt carries forty cars.\n\n" + "Nothing else. " * 100)
PORT = PlainDocument("port.txt", "The port has two cranes.\n\n" + "Ships wait here. " * 100)
N_CARS = Question(
    id="cars",
    kind="value",
    lang="en",
    question="How many cars does the ferry carry?",
    gold_documents=("ferry.txt",),
    gold=(("forty\\s+cars",),),
    also=(("40",),),
    answer="forty",
)
NO_ANSWER = Question(
    id="captain",
    kind="unanswerable",
    lang="en",
    question="Who is the captain?",
    gold_documents=(),
    gold=(),
    answer="none",
)


@pytest.mark.parametrize("half", HALVES, ids=lambda half: half.stem)
def test_every_gold_document_of_a_half_is_in_the_manifest(half: Path) -> None:
    names = {row.name for row in read_manifest()}
    questions = read_questions(half)
    assert questions
    assert not repeated_ids(questions)
    assert {name for question in questions for name in question.gold_documents} <= names


@pytest.mark.parametrize("half", HALVES, ids=lambda half: half.stem)
def test_a_half_is_written_as_it_was_read(half: Path, tmp_path: Path) -> None:
    write_questions(read_questions(half), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text("utf-8") == half.read_text("utf-8")


def test_looser_wordings_count_only_for_a_text_that_a_model_wrote() -> None:
    assert not N_CARS.is_held_by("It takes 40.")
    assert N_CARS.is_held_by("It takes 40.", is_written=True)


def test_so_many_key_points_are_enough() -> None:
    question = Question(
        id="list",
        kind="list",
        lang="en",
        question="?",
        gold_documents=(),
        gold=(("a", "b", "c"),),
        min_match=2,
        answer="",
    )
    assert question.is_held_by("c a")
    assert not question.is_held_by("c")


def test_a_loose_gold_and_a_document_without_the_gold_are_faults() -> None:
    (rate,) = window_rates([N_CARS], [FERRY, PORT])
    assert rate is not None and 0 < rate < 1
    assert [fault.split(":")[0] for fault in faults_of(N_CARS, rate, [FERRY, PORT])] == ["too loose"]
    assert list(faults_of(N_CARS, 0.0, [PORT])) == ["no document ferry.txt", "its gold documents do not hold the gold"]
    assert not list(faults_of(NO_ANSWER, None, [PORT]))


def test_the_composition_marks_questions_across_languages() -> None:
    assert composition([N_CARS, NO_ANSWER])["lang"] == {"en": 2}


def test_the_best_window_comes_first_and_windows_do_not_overlap() -> None:
    windows = WindowSearch([FERRY, PORT], 60).best("cars on the ferry", 5)
    assert "forty cars" in windows[0].text
    starts = [window.start for window in windows if window.document_id == "ferry.txt"]
    assert all(abs(first - second) >= 60 for first in starts for second in starts if first != second)


def test_a_baseline_shows_as_many_windows_as_it_says() -> None:
    (answer,) = answer_with_windows([N_CARS], WindowSearch([FERRY, PORT], 60), Baseline(60, 1))
    assert answer.text == answer.passages[0]
    assert Asked(N_CARS, answer).is_right


def test_a_refusal_is_never_right_and_counts_in_its_columns() -> None:
    rows = [
        AnswerRow(id="cars", text="forty cars", cited=("ferry.txt",), passages=("forty cars",), refused=True),
        AnswerRow(id="captain", text="closest: two cranes", cited=(), passages=(), refused=True),
    ]
    asked = pair([N_CARS, NO_ANSWER], rows)
    assert not asked[0].is_right
    whole = next(line for line in table(asked) if line.startswith("ALL"))
    assert whole.split()[-3:-1] == ["100", "100"]


@pytest.mark.parametrize(
    ("stage", "shown", "quoted", "around", "refused"),
    [
        ("shown", "forty cars", "forty cars", "forty cars", False),
        ("cut", "It carries", "It carries forty cars.", "carries forty cars", False),
        ("other block", "It leaves", "It leaves at nine. It carries forty cars.", "It leaves", False),
        ("other passage", "two cranes", "The port has two cranes.", "has two cranes", False),
        ("refused", "forty cars", "forty cars", "forty cars", True),
    ],
)
def test_the_stage_tells_where_an_answer_was_lost(
    stage: str, shown: str, quoted: str, around: str, refused: bool
) -> None:
    row = AnswerRow(
        id="cars",
        text=shown,
        cited=(),
        passages=("forty cars",),
        refused=refused,
        quoted_passages=(quoted,),
        surroundings=(around,),
    )
    asked = Asked(N_CARS, row)
    assert asked.stage == stage
    assert "1" in list(stage_table([asked]))[-1].split()


def test_an_answer_that_no_passage_holds_was_not_retrieved() -> None:
    row = AnswerRow(id="cars", text="two cranes", cited=(), passages=("two cranes",), refused=True)
    assert Asked(N_CARS, row).stage == "not retrieved"


def test_equal_answers_differ_by_nothing() -> None:
    asked = [Asked(N_CARS, AnswerRow(id="cars", text="forty cars", cited=(), passages=(), refused=False))]
    assert difference(asked, asked) == "+0 [+0–+0]"


def test_blocks_of_a_page_are_lines_and_scripts_are_left_out() -> None:
    page = b"<body><script>x()</script><h1>Ferry</h1><table><tr><td>cars</td><td>40</td></tr></table></body>"
    assert [line.split() for line in html_text(page).splitlines() if line.strip()] == [["Ferry"], ["cars", "40"]]
