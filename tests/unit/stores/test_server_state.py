"""The state of a server beside an index: jobs and repeated replies, seen by all its processes."""

from pathlib import Path

from quipu.model.server_state import ServerJob, StoredReply
from quipu.stores.sqlite.server_state import ServerState


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


def test_a_reply_is_kept_for_a_time_and_the_first_one_counts(tmp_path: Path) -> None:
    state = ServerState(tmp_path)
    for body, created in ((b"first", 10.0), (b"second", 11.0)):
        state.add_reply(StoredReply(key="k", digest="d", status=202, body=body, created=created), since=0)
    reply = state.reply("k", since=5)
    assert reply is not None
    assert reply.body == b"first"
    assert state.reply("k", since=10.5) is None
