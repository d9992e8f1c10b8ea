"""How many names a chunk keeps, and which."""

from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.occurrence import Cue
from quipu.ingest.local.salience import entity_limit, most_salient


def _candidate(name: str, cue: Cue, n_places: int = 1) -> Candidate:
    places = tuple((i, i + 1) for i in range(n_places))
    return Candidate(key=name, name=name, cue=cue, kind="", places=places, shown=(0, 1))


def test_the_limit_rises_from_fourteen_to_forty_with_the_length() -> None:
    assert [entity_limit("x" * n) for n in (0, 800, 2_800, 4_800, 50_000)] == [14, 14, 27, 40, 40]


def test_the_least_salient_are_left_out_and_the_order_is_kept() -> None:
    candidates = [
        _candidate("a", Cue.TERM),
        _candidate("b", Cue.CAPITALS),
        _candidate("c", Cue.TITLE),
        _candidate("d", Cue.CAPITALS, n_places=3),
    ]

    assert [candidate.name for candidate in most_salient(candidates, 2)] == ["c", "d"]


def test_of_equals_the_earlier_stay() -> None:
    candidates = [_candidate(name, Cue.CAPITALS) for name in "abc"]

    assert [candidate.name for candidate in most_salient(candidates, 2)] == ["a", "b"]
