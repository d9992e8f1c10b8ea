"""Notes for a report: the most important first, as many as there is room for; reports stand in for large parts."""

from quipu.derive.report_notes import MAX_TOKENS, Told, choose_notes, connection, subject
from quipu.model.graph import Entity, Relation


def _told(*pairs: str, size: int = 1, reports: dict[str, str] | None = None, parts: str = "") -> Told:
    """Return notes on pairs of letters; `parts` puts letters in parts, as in "ab cd"."""
    keys = list(dict.fromkeys("".join(pairs)))
    return Told(
        subjects={key: f"{key}{'.' * size}" for key in keys},
        connections={(pair[0], pair[1]): f"{pair}{'.' * size}" for pair in pairs},
        part={key: some for some in parts.split() for key in some},
        reports=reports or {},
    )


def test_all_notes_are_taken_where_there_is_room_and_no_report_stands_in() -> None:
    notes = choose_notes(_told("ab", "cd", "bc", reports={"ab": "Report."}, parts="ab cd"), len, is_large=False)
    assert notes.reports == ()
    assert notes.subjects == ("a.", "b.", "c.", "d.")
    assert notes.connections == ("ab.", "cd.", "bc.")


def test_what_comes_first_is_taken_where_there_is_no_room_for_all() -> None:
    room = MAX_TOKENS // 3  # for about three notes
    notes = choose_notes(_told("ab", "cd", size=room - 4), len, is_large=False)
    assert [each.rstrip(".") for each in (*notes.subjects, *notes.connections)] == ["a", "b", "ab"]


def test_one_note_is_taken_even_where_it_is_too_long() -> None:
    notes = choose_notes(_told("ab", size=2 * MAX_TOKENS), len, is_large=False)
    assert [each.rstrip(".") for each in notes.subjects] == ["a"]


def test_the_report_on_the_largest_part_stands_in_first() -> None:
    reports = {"abc": "On abc.", "de": "On de."}
    told = _told("ab", "bc", "de", "ce", size=MAX_TOKENS // 6, reports=reports, parts="abc de")
    notes = choose_notes(told, len, is_large=False)
    assert notes.reports == ("On abc.",)
    assert [each.rstrip(".") for each in notes.subjects] == ["d", "e"]
    assert [each.rstrip(".") for each in notes.connections] == ["de", "ce"]  # what connects the parts stays


def test_of_a_large_community_only_reports_and_what_connects_its_parts_are_shown() -> None:
    told = _told("ab", "cd", "bc", reports={"cd": "Better.", "ab": "Good."}, parts="ab cd")
    notes = choose_notes(told, len, is_large=True)
    assert notes.reports == ("Better.", "Good.")
    assert (notes.subjects, notes.connections) == ((), ("bc.",))


def test_reports_leave_room_for_what_connects_the_parts() -> None:
    reports = {"ab": "x" * (MAX_TOKENS // 2), "cd": "y" * (MAX_TOKENS // 2)}
    notes = choose_notes(_told("ab", "cd", "bc", reports=reports, parts="ab cd"), len, is_large=True)
    assert [each[0] for each in notes.reports] == ["x"]
    assert notes.connections == ("bc.",)


def test_notes_say_name_type_and_description_as_far_as_there_are_any() -> None:
    bare = Entity(key="a", name="A", type="Person", description="", n_mentions=1, n_chunks=1, degree=0)
    told = Entity(key="b", name="B", type="Person", description="Tall.", n_mentions=1, n_chunks=1, degree=0)
    assert [subject(bare), subject(told)] == ["A (Person)", "B (Person): Tall."]

    def related(description: str, *keywords: str) -> str:
        return connection(
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
