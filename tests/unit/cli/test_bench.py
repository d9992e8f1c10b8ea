"""`quipu bench` on a real index: the table, the choice, JSON, and wrong inputs."""

import json
from pathlib import Path
from typing import Any

import pytest

from quipu.cli.app import run
from quipu.testing.scripted.script import RequestKind
from quipu.testing.server import serving

QUESTIONS = (
    '{"question": "Where was Marco Polo born?", "answers": ["Venice"], "gold": ["polo.md"]}\n'
    '{"question": "Which moons did Galileo see?", "unanswerable": true}\n'
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with two documents in its index, and a file of questions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("QUIPU_LLM", "QUIPU_LLM_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for id_, text in (
        ("polo.md", "Marco Polo was born in Venice in 1254. Marco Polo met Kublai Khan in Shangdu."),
        ("khan.md", "Kublai Khan founded the Yuan dynasty in 1271. The capital of Kublai Khan was Dadu."),
    ):
        assert run(("add", "--text", text, "--id", id_)) == 0
    (tmp_path / "q.jsonl").write_text(QUESTIONS, encoding="utf-8")
    capsys.readouterr()
    return tmp_path


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(words) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(_printed(capsys, *words, "--json"))


@pytest.mark.usefixtures("place")
def test_the_answers_of_strategies_are_compared_and_one_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    out = _printed(capsys, "bench", "answers", "q.jsonl", "-s", "lexical,naive")
    headings = [line for line in out.splitlines() if line.startswith("strategy ")]
    assert all(any(name in line for line in headings) for name in ("R@5", "shown", "refused", "tokens"))
    assert any(line.startswith("lexical") and "100.0 [100.0, 100.0]" in line for line in out.splitlines())
    assert "Choose lexical: shown 100.0 [100.0, 100.0] on 1 question. It is the best in 50 % of resamples" in out
    assert "Not clearly worse, the difference may be chance: naive (0.0 behind)." in out
    assert "choice is surer with 30 or more" in out
    assert 'strategy = "lexical" in quipu.toml' in out
    rows = [line.split() for line in out[out.index("support needed") :].splitlines()]
    assert ["1", "100", "/", "0", "100", "/", "0"] in rows and ["separation", "100", "100"] in rows


@pytest.mark.usefixtures("place")
def test_json_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    compared = _json(capsys, "bench", "retrieval", "q.jsonl", "-s", "lexical", "--by", "MRR")
    assert (compared["metric"], compared["best"]["name"], compared["n_asked"]) == ("MRR", "lexical", 2)
    assert compared["scores"][0]["shares"]["R@5"]["value"] == 100.0
    assert "shown" not in compared["scores"][0]["shares"]


@pytest.mark.usefixtures("place")
def test_own_questions_need_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    compared = _json(capsys, "bench", "retrieval", "--own", "-n", "3", "-s", "lexical,naive")
    assert 1 <= compared["n_questions"] <= 3
    assert compared["best"]["name"] in {"lexical", "naive"}


def test_a_data_set_has_an_index_of_its_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place / "tiny"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "p", "text": "Bricks are burnt in a kiln for three days."}\n')
    (folder / "queries.jsonl").write_text('{"id": "1", "question": "How long are bricks burnt?", "gold": ["p"]}\n')
    compared = _json(capsys, "bench", "retrieval", "tiny", "-s", "lexical", "--cache", "cache")
    assert compared["scores"][0]["shares"]["R@2"]["value"] == 100.0
    assert len(list((place / "cache").iterdir())) == 1
    assert len(_json(capsys, "docs")) == 2


def test_a_run_is_kept_in_a_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("bench", "answers", "q.jsonl", "-s", "lexical", "--replies", "run.jsonl")
    first = _json(capsys, *words)
    assert len((place / "run.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    assert _json(capsys, *words) == first  # the times, too: nothing was asked again
    assert run(("bench", "retrieval", "q.jsonl", "-s", "lexical", "--replies", "run.jsonl")) == 1 + 1
    assert "holds replies of other questions" in capsys.readouterr().err


@pytest.mark.usefixtures("place")
def test_a_dry_run_tells_the_cost_and_asks_no_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bench", "answers", "q.jsonl", "-s", "lexical,naive", "--dry-run")
    assert "costs nothing" in _printed(capsys, *words)
    monkeypatch.setenv("QUIPU_LLM", "openai/gpt-4.1-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    estimate = _json(capsys, *words)
    assert (estimate["n_answers"], estimate["model"]) == (4, "openai/gpt-4.1-mini")
    assert estimate["input_tokens"] > 0 and estimate["cost"] > 0
    assert "openai/gpt-4.1-mini writes 4 answers" in _printed(capsys, *words)
    assert _json(capsys, "bench", "answers", "q.jsonl", "--no-model", "--dry-run") is None


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "Give a file of questions, a data set's folder, or --own."),
        (("q.jsonl", "--own"), "Give a file of questions, a data set's folder, or --own."),
        (("none.jsonl",), "does not exist"),
        (("q.jsonl", "-s", "lexicl"), "There is no strategy 'lexicl'"),
        (("bad.jsonl",), "bad.jsonl, line 1"),
        (("q.jsonl", "--by", "beauty"), "beauty"),
        (("--own", "-n", "0"), "0"),
    ],
)
def test_wrong_inputs_are_named(words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.jsonl").write_text("{}\n")
    assert run(("bench", "retrieval", *words)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and problem in " ".join(printed.err.split())


@pytest.mark.usefixtures("place")
def test_a_strategy_that_was_named_and_failed_makes_the_exit_code_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("bench", "retrieval", "q.jsonl", "-s", "lexical, community_global")) == 1
    assert "left out: community_global" in capsys.readouterr().out


@pytest.mark.usefixtures("place")
def test_a_judge_needs_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("bench", "answers", "q.jsonl", "--judge", "ragas")) == 2
    assert "[role.judge]" in capsys.readouterr().err


def test_a_judge_is_counted_before_it_is_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        config = f'[role.judge]\nllm = "custom/judge"\nllm_base_url = "{server.base_url}"\n'
        (place / "quipu.toml").write_text(config, encoding="utf-8")
        command = ("bench", "answers", "q.jsonl", "-s", "naive,lexical", "--judge", "ragas", "--judge", "pairs")
        assert run((*command, "--dry-run")) == 0
        assert "custom/judge is asked 20 times: about" in capsys.readouterr().out
        assert server.settled().total(RequestKind.JUDGE).n_completed == 0
        assert run((*command, "--json")) == 0
        first, second = json.loads(capsys.readouterr().out)["scores"]
        assert first["shares"]["faithful"]["value"] == 100.0
        assert "overall wins" in second["shares"].keys() - first["shares"].keys()


def test_own_questions_are_written_by_the_model_of_the_judge(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        config = f'[role.judge]\nllm = "custom/judge"\nllm_base_url = "{server.base_url}"\n'
        (place / "quipu.toml").write_text(config, encoding="utf-8")
        command = ("bench", "retrieval", "--own", "-n", "3", "-s", "lexical")
        n_drafts = _json(capsys, *command, "--no-model")["n_questions"]
        estimate = _json(capsys, *command, "--dry-run")
        assert (estimate["n_judgements"], estimate["judge"]) == (n_drafts, "custom/judge")
        assert server.settled().total(RequestKind.JUDGE).n_completed == 0
        for _ in range(2):  # the second time the replies are kept
            assert run((*command, "--json")) == 0
            printed = capsys.readouterr()
            assert f"custom/judge is asked {n_drafts} times" in printed.err
            assert json.loads(printed.out)["n_questions"] == n_drafts
            assert server.settled().total(RequestKind.JUDGE).n_completed == n_drafts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four documents of one chunk of 2 kB, and a file that cannot be read."""
    for number in range(4):
        text = f"Ada Kern{number} met Bo Dahl in Port Mery. Bo Dahl sold {number} ships to Ada Kern{number} of Oslo. "
        (tmp_path / f"{number}.md").write_text(22 * text, encoding="utf-8")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (tmp_path / ".git").mkdir()  # hidden, as for `quipu add`
    (tmp_path / ".git" / "hidden.md").write_text(100 * "Ada Kern met Bo Dahl in Port Mery. ", encoding="utf-8")
    return tmp_path


def test_speed_is_measured_at_each_size(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = _json(capsys, "bench", "speed", str(folder), "--size", "3", "--size", "1", "-s", "lexical,weave")
    assert [(size["n_chunks"], size["n_documents"]) for size in report["sizes"]] == [(1, 1), (3, 3)]
    assert report["note"] == "" and report["failed"] == []
    for size in report["sizes"]:
        assert [question["strategy"] for question in size["questions"]] == ["lexical", "weave"]
        assert min(size[name] for name in ("add_ms", "one_more_ms", "remove_ms", "open_ms", "n_bytes")) > 0
        assert all(0 < question["median_ms"] <= question["p95_ms"] for question in size["questions"])
    assert sorted(path.name for path in folder.iterdir()) == [".git", "0.md", "1.md", "2.md", "3.md", "broken.pdf"]


def test_speed_says_which_strategy_failed_and_which_size_was_not_reached(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("bench", "speed", str(folder), "--size", "2", "--size", "9", "-s", "naive,community_global")) == 1
    out = capsys.readouterr().out
    assert "left out: community_global. " in out and "quipu refresh reports" in out
    assert "The documents have only 4 chunks." in out
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["2", "4"]


def test_a_folder_without_documents_has_no_speed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("bench", "speed", str(tmp_path))) == 1
    assert "There is no document that can be read." in capsys.readouterr().out
