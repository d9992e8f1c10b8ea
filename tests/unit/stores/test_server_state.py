"""The state of a server beside an index: jobs and repeated replies, seen by all its processes."""

from pathlib import Path

from quipu.stores.sqlite.server_state import ServerJob, ServerState, StoredReply


def _job(id_: str, finished_at: str = "") -> ServerJob:
    return ServerJob(
        id=id_, kind="add", subjects=("a", "b"), created_at="2026-01-01T00:00:00+00:00", finished_at=finished_at
    )


def test_a_job_is_seen_by_another_process(tmp_path: Path) -> None:
    first, second = ServerState(tmp_path), ServerState(tmp_path)
    first.add_job(_job("1"))
    second.update_jobs(["1"], stage="extract", n_done=1)
    job = first.job("1")
    assert job is not None
    assert (job.stage, job.n_done, job.subjects) == ("extract", 1, ("a", "b"))
    assert first.job("2") is None


def test_the_latest_jobs_come_first_and_finished_ones_can_be_left_out(tmp_path: Path) -> None:
    state = ServerState(tmp_path)
    for job in (_job("1"), _job("2", "2026-01-02"), _job("3")):
        state.add_job(job)
    assert [job.id for job in state.jobs()] == ["3", "2", "1"]
    assert [job.id for job in state.jobs(k=1)] == ["3"]
    assert [job.id for job in state.jobs(is_unfinished=True)] == ["3", "1"]


def test_the_oldest_of_many_finished_jobs_are_forgotten(tmp_path: Path) -> None:
    state = ServerState(tmp_path)
    state.add_job(_job("waiting"))
    for n in range(1_003):
        state.add_job(_job(str(n), "2026-01-02"))
    assert state.job("waiting") is not None
    assert state.job("1") is None
    assert state.job("1002") is not None


def _reply(body: bytes, created: float, status: int = 202) -> StoredReply:
    return StoredReply(key="k", digest="d", status=status, body=body, created=created)


def test_the_first_request_with_a_key_reserves_it(tmp_path: Path) -> None:
    first, second = ServerState(tmp_path), ServerState(tmp_path)
    assert first.add_reply(_reply(b"", 10.0, status=0), since=0)
    assert not second.add_reply(_reply(b"", 11.0, status=0), since=0)
    first.update_reply(_reply(b"first", 10.0))
    reply = second.reply("k")
    assert reply is not None
    assert reply.body == b"first"


def test_a_key_is_free_again_after_a_failure_a_death_and_a_day(tmp_path: Path) -> None:
    state = ServerState(tmp_path)
    state.add_reply(_reply(b"", 10.0, status=0), since=0)
    state.remove_reply("k")
    assert state.add_reply(_reply(b"", 11.0, status=0), since=0)
    state.renew_reply("k", 70.0)
    assert not state.add_reply(_reply(b"", 75.0, status=0), since=0)
    assert state.add_reply(_reply(b"", 131.0, status=0), since=0)
    state.update_reply(_reply(b"answered", 131.0))
    assert not state.add_reply(_reply(b"", 1_000.0, status=0), since=0)
    state.renew_reply("k", 2_000.0)  # it is answered: nothing to renew
    assert state.add_reply(_reply(b"", 90_000.0, status=0), since=3_600)
