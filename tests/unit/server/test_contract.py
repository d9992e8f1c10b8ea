"""Every operation of the API against its own description: what it promises is what it does, whatever is sent.

schemathesis makes the requests from `/api/v1/openapi.json`, the same ones each time, valid and invalid.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    ignored_auth,
    missing_required_header,
    positive_data_acceptance,
)

from quipu import sync
from quipu.server.access import KEYS_FILE, KeyFile, Permission
from quipu.server.app import OPERATIONS
from quipu.server.openapi import openapi_document
from tests.unit.server.conftest import LETTER
from tests.unit.server.test_serving import running

STREAMS = "/events$"  # they stay open
# Not checked here: wrong keys are throttled, so test_access tests each operation without one; and what a schema cannot
# say (a name that is taken, a strategy whose derivation is missing) is refused on purpose.
# The methods of another path may match, too, as in conversations/query and conversations/{conversation}.
OTHER_CHECKS = [ignored_auth, missing_required_header, positive_data_acceptance, allow_header_conformance]
PARAMETERS = {"workspace": {"enum": ["default"]}, "model": {"enum": ["quipu", "quipu-mix", "none/quipu"]}}


def _description() -> dict[str, Any]:
    """Return the description of all operations, with the only workspace that this server has."""
    document: dict[str, Any] = json.loads(json.dumps(openapi_document(OPERATIONS, "0")), object_hook=_without_tuples)
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in PARAMETERS:
                    parameter["schema"] = PARAMETERS[parameter["name"]]
    return document


def _without_tuples(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that schemathesis reads right: it mistakes the places of a tuple for one schema of all."""
    if "prefixItems" in schema:
        return schema | {"items": {"anyOf": schema.pop("prefixItems")}}
    return schema


description = schemathesis.openapi.from_dict(_description()).exclude(path_regex=STREAMS).exclude(method="HEAD")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """Return the address of a server with a key, and the header with that key."""
    folder = tmp_path_factory.mktemp("kb")
    with sync.open(folder) as kb:
        kb.add_text(LETTER, id="letters/1.md")
    key = KeyFile(folder / KEYS_FILE).create("test", Permission.ADMIN).text
    with running(folder) as (address, _):
        yield address, {"Authorization": f"Bearer {key}"}


@description.parametrize()
@settings(
    max_examples=8,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_an_operation_does_what_its_description_says(case: Case[Any], served: tuple[str, dict[str, str]]) -> None:
    address, headers = served
    case.call_and_validate(base_url=address, headers=headers, excluded_checks=OTHER_CHECKS)
