"""Look-up of a report by its id or the beginning of it: on a community or on an aggregate, with what it is about."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from quipu.errors import InvalidInput, NotFound
from quipu.model.cluster import Cluster, ClusterRelation, ClusterReport, Hierarchy
from quipu.model.graph import Entity
from quipu.model.results import ReportDetails
from quipu.ports.store import ReadView

MAX_LISTED = 50
_MAX_NAMED = 5  # in an error
_WHERE_IDS_ARE = "`quipu ask QUESTION -s community_global --trace` prints ids of reports, and so does `quipu explain`."


async def report(view: ReadView, report_id: str) -> ReportDetails:
    """Return the report with this id, or with the only id that begins so, with what is in its group.

    Raises NotFound where there is none, InvalidInput where several begin so.
    """
    wanted = report_id.strip().casefold()
    if not wanted:
        raise InvalidInput("No report is named.", remedy=_WHERE_IDS_ARE)
    groups = {each.id: each for of in Hierarchy for each in await view.clusters(of, with_members=False)}
    found = [each for each in groups if each.startswith(wanted)]  # all are of one length
    if not found:
        raise await _unknown(view, report_id, list(groups))
    if len(found) > 1:
        raise await _ambiguous(view, report_id, found)
    return await _Group.of(groups[found[0]], groups).told(view)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A cluster with those above it, the coarsest first, those directly below it, and all that are within it."""

    cluster: Cluster
    above: Sequence[str]
    below: Sequence[str]
    within: Sequence[str]

    @classmethod
    def of(cls, cluster: Cluster, known: Mapping[str, Cluster]) -> "_Group":
        """Return the group of a cluster among all that are known."""
        above, at = list[str](), cluster
        while at.parent:
            at = known[at.parent]
            above.append(at.id)
        children = defaultdict[str, list[str]](list)
        for each in known.values():
            children[each.parent].append(each.id)
        within = [cluster.id]
        for part in within:  # grows: what is below comes behind it
            within += children[part]
        return cls(cluster=cluster, above=above[::-1], below=children[cluster.id], within=within)

    async def told(self, view: ReadView) -> ReportDetails:
        """Return all there is to tell of it."""
        whole = (await view.clusters(self.cluster.hierarchy, [self.cluster.id]))[0]
        beside = await self._beside(view)
        around = [*self.above, *self.below, *(_other(each, whole.id) for each in beside)]
        reports = {each.cluster: each for each in await view.cluster_reports([whole.id, *around])}
        written = reports.get(whole.id)
        return ReportDetails(
            cluster=whole,
            report=written,
            is_current=written is not None and written.inputs_hash == whole.inputs_hash,
            entities=tuple(await self._entities(view)),
            chunks=tuple(await view.chunks(written.chunks if written else ())),
            above=tuple((each, _title(reports, each)) for each in self.above),
            below=tuple((each, _title(reports, each)) for each in self.below),
            beside=tuple(
                (other, _title(reports, other), each.description)
                for each in beside
                for other in [_other(each, whole.id)]
            ),
        )

    async def _entities(self, view: ReadView) -> list[Entity]:
        """Return those with the most relations of all that are in it or below it."""
        keys = [key for each in await view.clusters(self.cluster.hierarchy, self.within) for key in each.members]
        degrees = await view.degrees(keys)
        return await view.entities(sorted(keys, key=lambda key: (-degrees.get(key, 0), key))[:MAX_LISTED])

    async def _beside(self, view: ReadView) -> list[ClusterRelation]:
        """Return what connects it to others, the heaviest first: aggregates alone are connected."""
        if self.cluster.hierarchy is not Hierarchy.AGGREGATES:
            return []
        everything = [each.id for each in await view.clusters(Hierarchy.AGGREGATES, with_members=False)]
        relations = await view.cluster_relations(everything)
        own = [each for each in relations if self.cluster.id in (each.source, each.target)]
        return sorted(own, key=lambda each: (-each.weight, each.source, each.target))[:MAX_LISTED]


def _other(relation: ClusterRelation, end: str) -> str:
    return relation.target if relation.source == end else relation.source


def _title(reports: Mapping[str, ClusterReport], cluster: str) -> str:
    return reports[cluster].title if cluster in reports else ""


async def _unknown(view: ReadView, given: str, ids: Sequence[str]) -> NotFound:
    title_by_id = {each.cluster: each.title for each in await view.cluster_reports(ids)}
    if not title_by_id:
        return NotFound(
            f"There is no report {given!r}: none has been written.",
            remedy="`quipu refresh reports` writes them of communities, `quipu refresh hierarchy` of aggregates.",
        )
    folded = given.strip().casefold()
    near = [each for each, title in title_by_id.items() if folded in title.casefold()]
    near = near or get_close_matches(folded, ids, n=3, cutoff=0.8)
    hint = f"Did you mean {_listed(near, title_by_id)}? " if near else ""
    return NotFound(f"There is no report {given!r}.", remedy=f"{hint}{_WHERE_IDS_ARE}")


async def _ambiguous(view: ReadView, given: str, ids: Sequence[str]) -> InvalidInput:
    title_by_id = {each.cluster: each.title for each in await view.cluster_reports(ids[:_MAX_NAMED])}
    return InvalidInput(
        f"{len(ids):,} reports have an id that begins with {given!r}.",
        remedy=f"Give more of it: {_listed(ids, title_by_id)}.",
    )


def _listed(ids: Sequence[str], title_by_id: Mapping[str, str]) -> str:
    """Return ids with their titles, as many as a line or two hold."""
    named = [f"{each} ({title_by_id[each]})" if title_by_id.get(each) else each for each in ids[:_MAX_NAMED]]
    return ", ".join(named) + (f" and {len(ids) - _MAX_NAMED:,} more" if len(ids) > _MAX_NAMED else "")
