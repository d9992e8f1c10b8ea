"""Graph: entities, relations and reports of a workspace."""

from quipu.engine import Quipu
from quipu.model.results import EntityDetails, RelationDetails, ReportDetails
from quipu.server.access import Permission
from quipu.server.operations import operation, operations_of
from quipu.server.questions import WORKSPACE


@operation("GET", f"{WORKSPACE}/entities/{{name:path}}", Permission.READ)
async def show_entity(kb: Quipu, name: str) -> EntityDetails:
    """Return an entity with its relations and the chunks that mention it."""
    return await kb.entity(name)


@operation("GET", f"{WORKSPACE}/relation", Permission.READ)
async def show_relation(kb: Quipu, *, first: str, second: str) -> RelationDetails:
    """Return the relation of two entities."""
    return await kb.relation(first, second)


@operation("GET", f"{WORKSPACE}/reports/{{report}}", Permission.READ)
async def show_report(kb: Quipu, report: str) -> ReportDetails:
    """Return a report on a community or aggregate."""
    return await kb.report(report)


OPERATIONS = operations_of(show_entity, show_relation, show_report)
