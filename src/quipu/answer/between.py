"""Between: relations of a context, those between two aggregates among them, named after the reports on these."""

from collections.abc import Sequence

from quipu.model.graph import Relation
from quipu.model.ids import relation_ends, relation_id
from quipu.ports.store import ReadView


async def read_relations(view: ReadView, ids: Sequence[str]) -> list[Relation]:
    """Return these relations in their order: of entities, and of aggregates, whose ends a view shows the reports on."""
    found = {each.id: each for each in await view.relations(ids)}
    missing = [each for each in ids if each not in found and each.count(" -- ") == 1]
    ends = sorted({end for each in missing for end in relation_ends(each)})
    if ends:
        titles = {each.cluster: each.title for each in await view.cluster_reports(ends)}
        for each in await view.cluster_relations(sorted(titles)):
            identifier = relation_id(each.source, each.target)
            found[identifier] = Relation(
                id=identifier,
                source=each.source,
                target=each.target,
                source_name=titles[each.source],
                target_name=titles[each.target],
                keywords=(),
                description=each.description,
                weight=each.weight,
                n_mentions=each.n,
                n_chunks=0,
            )
    return [found[each] for each in dict.fromkeys(ids) if each in found]
