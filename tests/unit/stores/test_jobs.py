"""Tests of leases: who is dead, and how long a claim holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quipu.model.document import DocumentStatus
from quipu.stores.relational import jobs
from quipu.stores.relational.jobs import end_owner, is_dead, new_owner
from quipu.stores.relational.store import create_or_migrate
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.facts import source
from quipu.text.words import Analyzer

_NAMED = "import sys; from quipu.stores.relational import jobs; print(jobs.new_owner(), flush=True); sys.stdin.read()"
_HOST = new_owner().split("/")[0]


def _claimed(backend: SqliteBackend, *, owner: str, now_s: float, lease_s: float = 10.0) -> list[int]:
    with backend.writing() as connection:
        return [job.id for job in jobs.claim(connection, 9, owner=owner, now_s=now_s, until_s=now_s + lease_s)]


def _backend(database: Path) -> SqliteBackend:
    """Return a backend whose index has one job waiting."""
    backend = SqliteBackend(database, busy_timeout_s=1.0)
    with backend.writing() as connection:
        create_or_migrate(connection, backend, Analyzer())
        jobs.enqueue(connection, [source("a")], [], now="now")
    return backend


def _finished_process() -> int:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        process.wait()
    return process.pid


def test_every_worker_has_a_name_of_its_own() -> None:
    first, second = new_owner(), new_owner()
    assert first != second
    assert first.startswith(f"{_HOST}/{os.getpid()}/")


def test_this_process_is_alive() -> None:
    assert not is_dead(new_owner())


def test_a_worker_that_has_closed_its_store_holds_nothing_in_this_process() -> None:
    closed, other = new_owner(), new_owner()
    end_owner(closed)
    assert (is_dead(closed), is_dead(other)) == (True, False)


def test_a_process_that_has_ended_is_dead() -> None:
    assert is_dead(f"{_HOST}/{_finished_process()}/1/worker")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of processes is read from /proc")
def test_a_killed_process_nobody_has_waited_for_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", _NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        owner = process.stdout.readline().decode().strip()
        assert not is_dead(owner)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays to be waited for
        assert is_dead(owner)


def test_a_process_that_took_the_number_of_another_is_not_taken_for_it() -> None:
    assert is_dead(f"{_HOST}/{os.getpid()}/another start/worker")


def test_of_other_hosts_nothing_is_known() -> None:
    assert not is_dead(f"{_HOST}.elsewhere/{_finished_process()}/1/worker")


def test_a_claim_holds_until_its_lease_expires(database: Path) -> None:
    backend = _backend(database)
    first = _claimed(backend, owner="far/1/1/x", now_s=100.0)
    assert len(first) == 1
    assert _claimed(backend, owner="far/2/2/y", now_s=110.0) == []
    assert _claimed(backend, owner="far/2/2/y", now_s=110.1) == first
    backend.close()


def test_renewing_and_recording_a_stage_prolong_the_lease(database: Path) -> None:
    backend = _backend(database)
    (job,) = _claimed(backend, owner="far/1/1/x", now_s=100.0)
    with backend.writing() as connection:
        jobs.renew(connection, "far/1/1/x", 200.0)
    assert _claimed(backend, owner="far/2/2/y", now_s=150.0) == []
    with backend.writing() as connection:
        jobs.update(connection, DocumentStatus.EXTRACTING, [job], owner="far/1/1/x", until_s=250.0)
    assert _claimed(backend, owner="far/2/2/y", now_s=249.0) == []
    assert _claimed(backend, owner="far/2/2/y", now_s=251.0) == [job]
    backend.close()


def test_what_a_dead_process_of_this_host_held_is_free_at_once(database: Path) -> None:
    backend = _backend(database)
    dead = f"{_HOST}/{_finished_process()}/1/worker"
    held = _claimed(backend, owner=dead, now_s=100.0, lease_s=1e9)
    assert _claimed(backend, owner=new_owner(), now_s=100.0) == held
    backend.close()
