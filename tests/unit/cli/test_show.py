"""Tests of `quipu show`: what is claimed, of a chunk and about an entity."""

import re

from tests.unit.cli.conftest import Cli

_CLAIM = {
    "subject": "alice kober",
    "object": "brooklyn college",
    "type": "praise",
    "status": "suspected",
    "dates": "1946",
    "description": "It is said that she praised it.\x1b[31m [bold]",
}
_SEEN = _CLAIM | {
    "id": "c0ffee:0",
    "chunk_id": "c0ffee",
    "subject_name": "Alice Kober",
    "object_name": "Brooklyn College",
}


def test_a_chunk_is_shown_with_its_claims(cli: Cli) -> None:
    out = cli("show", "chunk", "c0ffee").out
    assert re.search(r"Claims *\n *subject +object +type +status +dates +what is claimed", out)
    assert re.search(r"alice kober +brooklyn college +praise +suspected +1946 +It is said", out)
    assert "\x1b" not in out
    assert cli("show", "chunk", "c0ffee", "--json").json["claims"] == [_CLAIM]


def test_an_entity_is_shown_with_the_claims_about_it_and_where_they_are(cli: Cli) -> None:
    out = cli("show", "entity", "Alice Kober").out
    assert re.search(r"c0ffee +brooklyn college +praise +suspected +1946 +It is said", out)
    assert cli("show", "entity", "Alice Kober", "--json").json["claims"] == [_SEEN]
