"""What `verify` finds wrong with clusters and reports."""

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import REPORTS, DerivationRecord
from tests.unit.stores.opening import fill, open_index


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("UPDATE cluster SET n_entities = 5 WHERE id = 'part'", "cluster part: stored 5 entities, but there are 2"),
        ("UPDATE cluster SET parent = 99 WHERE id = 'part'", "cluster part: its parent does not exist"),
        ("DELETE FROM entity WHERE key = 'geneva'", "one of them does not exist"),
        ("INSERT INTO membership SELECT entity, 2 FROM membership LIMIT 1", "it is in two communities clusters"),
        ("UPDATE report SET rid = 77", "report 77: its cluster does not exist"),
        ("UPDATE report SET chunks = '[\"gone\"]'", "its source chunk gone does not exist"),
        ("UPDATE report SET summary = 'Another.'", "its vector is for another text"),
    ],
)
async def test_damage_is_found(database: Path, damage: str, finding: str) -> None:
    async with open_index(database) as store:
        await fill(store)
        clusters = (
            Cluster(id="whole", hierarchy=Hierarchy.COMMUNITIES, level=0, inputs_hash="w"),
            Cluster(
                id="part",
                hierarchy=Hierarchy.COMMUNITIES,
                level=1,
                parent="whole",
                members=("geneva", "长城"),
                inputs_hash="p",
            ),
        )
        report = ClusterReport(cluster="part", title="Towns", summary="Old.", inputs_hash="p", model="tests")
        partition = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=10**6)
        made = DerivationRecord(name=REPORTS, identity="test/1", revision=1)
        await store.commit(Delta(partition=partition, reports=[report], derivations=[made]))
        assert not any("cluster" in each or "report" in each for each in await store.verify())
        engine = create_engine(f"sqlite:///{database}")
        with engine.begin() as connection:
            connection.execute(text(damage))
        engine.dispose()
        assert any(finding in each for each in await store.verify())
