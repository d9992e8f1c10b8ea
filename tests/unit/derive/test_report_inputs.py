"""Tests of report inputs: what is most important in a community, and the notes that fit into a request."""

from pathlib import Path

from quipu.derive.derivation import DerivationContext
from quipu.derive.report_inputs import (
    MAX_NOTE_TOKENS,
    CandidateNotes,
    CommunityTree,
    ReportInputs,
    entity_note,
    read_report_inputs,
    relation_note,
    select_notes,
)
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import REPORTS, DerivationRecord
from quipu.model.graph import Entity, Relation
from quipu.testing.facts import FactMention, document, entity, passage, relation
from tests.unit.derive.workshop import open_bench, publish

_SAID: dict[str, tuple[FactMention, ...]] = {
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


async def _material(context: DerivationContext, *clusters: Cluster, of: str) -> ReportInputs:
    whole = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=10**6)
    told = [ClusterReport(cluster=c.id, title=f"On {c.id}", summary="", inputs_hash=c.id) for c in clusters if c.parent]
    made = DerivationRecord(name=REPORTS, identity="test/1", revision=1)
    await context.store.commit(Delta(partition=whole, reports=told, derivations=[made]))
    async with context.store.view() as view:
        topology = await context.topology.open(view)
        (found,) = await read_report_inputs([of], CommunityTree(clusters), view, topology, context.tokenizer)
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


def _told(*pairs: str, size: int = 1, reports: dict[str, str] | None = None, parts: str = "") -> CandidateNotes:
    """Return notes on pairs of letters; `parts` puts letters in parts, as in "ab cd"."""
    keys = list(dict.fromkeys("".join(pairs)))
    return CandidateNotes(
        subjects={key: f"{key}{'.' * size}" for key in keys},
        connections={(pair[0], pair[1]): f"{pair}{'.' * size}" for pair in pairs},
        child_by_key={key: some for some in parts.split() for key in some},
        reports=reports or {},
    )


def test_all_notes_are_taken_where_there_is_room_and_no_report_stands_in() -> None:
    notes = select_notes(_told("ab", "cd", "bc", reports={"ab": "Report."}, parts="ab cd"), len, is_large=False)
    assert notes.reports == ()
    assert notes.subjects == ("a.", "b.", "c.", "d.")
    assert notes.connections == ("ab.", "cd.", "bc.")


def test_what_comes_first_is_taken_where_there_is_no_room_for_all() -> None:
    room = MAX_NOTE_TOKENS // 3  # for about three notes
    notes = select_notes(_told("ab", "cd", size=room - 4), len, is_large=False)
    assert [each.rstrip(".") for each in (*notes.subjects, *notes.connections)] == ["a", "b", "ab"]


def test_one_note_is_taken_even_where_it_is_too_long() -> None:
    notes = select_notes(_told("ab", size=2 * MAX_NOTE_TOKENS), len, is_large=False)
    assert [each.rstrip(".") for each in notes.subjects] == ["a"]


def test_the_report_on_the_largest_part_stands_in_first() -> None:
    reports = {"abc": "On abc.", "de": "On de."}
    told = _told("ab", "bc", "de", "ce", size=MAX_NOTE_TOKENS // 6, reports=reports, parts="abc de")
    notes = select_notes(told, len, is_large=False)
    assert notes.reports == ("On abc.",)
    assert [each.rstrip(".") for each in notes.subjects] == ["d", "e"]
    assert [each.rstrip(".") for each in notes.connections] == ["de", "ce"]  # what connects the parts stays


def test_of_a_large_community_only_reports_and_what_connects_its_parts_are_shown() -> None:
    told = _told("ab", "cd", "bc", reports={"cd": "Better.", "ab": "Good."}, parts="ab cd")
    notes = select_notes(told, len, is_large=True)
    assert notes.reports == ("Better.", "Good.")
    assert (notes.subjects, notes.connections) == ((), ("bc.",))


def test_reports_leave_room_for_what_connects_the_parts() -> None:
    reports = {"ab": "x" * (MAX_NOTE_TOKENS // 2), "cd": "y" * (MAX_NOTE_TOKENS // 2)}
    notes = select_notes(_told("ab", "cd", "bc", reports=reports, parts="ab cd"), len, is_large=True)
    assert [each[0] for each in notes.reports] == ["x"]
    assert notes.connections == ("bc.",)


def test_notes_say_name_type_and_description_as_far_as_there_are_any() -> None:
    bare = Entity(key="a", name="A", type="Person", description="", n_mentions=1, n_chunks=1, degree=0)
    told = Entity(key="b", name="B", type="Person", description="Tall.", n_mentions=1, n_chunks=1, degree=0)
    assert [entity_note(bare), entity_note(told)] == ["A (Person)", "B (Person): Tall."]

    def related(description: str, *keywords: str) -> str:
        return relation_note(
            Relation(
                id="a -- b",
                source="a",
                target="b",
                source_name="A",
                target_name="B",
                keywords=keywords,
                description=description,
                weight=1.0,
                n_mentions=1,
                n_chunks=1,
            )
        )

    assert [related("They met.", "x"), related("", "met", "ate"), related("")] == [
        "A | B: They met.",
        "A | B: met, ate",
        "A | B",
    ]
