"""What reports are written from: counted within the community, whatever is around it."""

from pathlib import Path

from quipu.derive.derivation import DerivationContext
from quipu.derive.report_material import Material, Tree, read_material
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import REPORTS, DerivationRecord
from quipu.testing.facts import Said, document, entity, passage, relation
from tests.unit.derive.workshop import open_bench, publish

_SAID: dict[str, tuple[Said, ...]] = {
    "Ada saw Bo.": (entity("Ada"), entity("Bo"), relation("Ada", "Bo", "One saw the other.")),
    "Ada saw Bo again, and Cy.": (
        entity("Ada"),
        entity("Bo"),
        entity("Cy"),
        relation("Ada", "Bo", "Again."),
        relation("Bo", "Cy", weight=3.0),
    ),
    "Cy saw Di.": (entity("Cy"), entity("Di"), relation("Cy", "Di", keywords=("sight",))),
    "Di, Eve, Flo, Gus.": (
        *map(entity, ("Di", "Eve", "Flo", "Gus")),
        *(relation("Di", other) for other in ("Eve", "Flo", "Gus")),
    ),
}


def _cluster(name: str, *members: str, parent: str = "", level: int = 0, n: int = 0) -> Cluster:
    return Cluster(
        id=name,
        hierarchy=Hierarchy.COMMUNITIES,
        level=level,
        parent=parent,
        members=members,
        n_entities=n or len(members),
        inputs_hash=name,
    )


async def _material(context: DerivationContext, *clusters: Cluster, of: str) -> Material:
    whole = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=10**6)
    told = [ClusterReport(cluster=c.id, title=f"On {c.id}", summary="", inputs_hash=c.id) for c in clusters if c.parent]
    made = DerivationRecord(name=REPORTS, identity="test/1", revision=1)
    await context.store.commit(Delta(partition=whole, reports=told, derivations=[made]))
    async with context.store.view() as view:
        topology = await context.topology.open(view)
        (found,) = await read_material([of], Tree(clusters), view, topology, context.tokenizer)
    return found


async def test_entities_and_relations_come_in_the_order_of_what_they_are_within_the_community(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, document("d", *(passage(text, *said) for text, said in _SAID.items())))
        found = await _material(context, _cluster("k", "ada", "bo", "cy"), _cluster("l", "di"), of="k")
        # Di is outside, so that Cy has one relation here. Ada -- Bo and Bo -- Cy have three ends each; the weights
        # are two and three.
        assert [each.partition(":")[0] for each in found.notes.connections] == ["Bo | Cy", "Ada | Bo"]
        assert found.names == ("Bo", "Cy", "Ada")
        assert found.pairs == (("Bo", "Cy"), ("Ada", "Bo"))
        assert [chunk.text for chunk in found.chunks] == ["Ada saw Bo again, and Cy.", "Ada saw Bo."]
        assert found.documents == ("d",)
        assert found.notes.reports == ()


async def test_the_parts_of_a_large_community_stand_in_for_it(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, document("d", *(passage(text, *said) for text, said in _SAID.items())))
        found = await _material(
            context,
            _cluster("k", n=1_000),  # as it says
            _cluster("first", "ada", "bo", "cy", parent="k", level=1),
            _cluster("second", "di", "eve", "flo", "gus", parent="k", level=1),
            of="k",
        )
        assert found.notes.reports == ("On first", "On second")
        assert found.notes.subjects == ()
        assert found.notes.connections == ("Cy | Di: sight",)
        assert found.names[0] == "Di"


async def test_where_nothing_is_related_the_chunks_that_mention_most_are_taken(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        said = [
            passage("Ada sat.", entity("Ada")),
            passage("Ada and Bo sat.", entity("Ada"), entity("Bo")),
            passage("Bo and Ada are named, and nobody is mentioned."),
        ]
        await publish(context, document("d", *said))
        found = await _material(context, _cluster("k", "ada", "bo"), of="k")
        assert [chunk.text for chunk in found.chunks] == ["Ada and Bo sat.", "Ada sat."]
        assert found.notes.subjects == ("Ada (Other)", "Bo (Other)")
        assert found.pairs == ()


async def test_however_often_its_name_stands_elsewhere_what_mentions_an_entity_is_taken(tmp_path: Path) -> None:
    async with open_bench(tmp_path / "a") as context:
        await publish(context, document("d", passage("Ada Lane sat.", entity("Ada Lane"))))
        await publish(context, document("e", *(passage(f"Ada Lane, Ada Lane {n}.") for n in range(70))))
        found = await _material(context, _cluster("k", "ada lane"), of="k")
        assert [chunk.text for chunk in found.chunks] == ["Ada Lane sat."]
