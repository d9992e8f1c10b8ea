"""Communities as clusters: the ids by which they are known, and the hash of what a report on each is made from.

The hash of a finest community is that of all that is said of its entities and of the relations between them; the hash
of one that is divided, that of its parts and of the relations between these. So each relation counts once, and what
changes shows in the communities that hold it and nowhere else.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.edge_list import EdgeList, Ints
from quipu.algo.leiden import Community
from quipu.model.cluster import Cluster, Hierarchy
from quipu.model.graph import Entity, Relation
from quipu.model.ids import digest, relation_id
from quipu.ports.store import ReadView

READ_AT_ONCE = 5_000  # entities or relations


@dataclass(frozen=True, slots=True)
class Said:
    """What identifies what is said of entities, and of relations; of an entity also where it is related to nothing."""

    entities: Mapping[str, str]
    lonely: Mapping[str, str]
    relations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Communities by their place, with what is known of them; `own` relations are those in none of their parts.

    `standing` are the hashes of those in which nothing changed; only what is said in the others has to be read.
    """

    found: Sequence[Community]
    ids: Sequence[str]
    members: Sequence[tuple[str, ...]]
    parts: Mapping[int, Sequence[int]]
    standing: Mapping[int, str]
    own: Mapping[int, Sequence[str]]

    async def read(self, view: ReadView) -> Said:
        """Return what is said in the communities whose hash does not stand."""
        keys = [key for at in range(len(self.found)) if at not in self.standing for key in self.members[at]]
        entities: dict[str, str] = {}
        lonely: dict[str, str] = {}
        for start in range(0, len(keys), READ_AT_ONCE):
            for each in await view.entities(keys[start : start + READ_AT_ONCE]):
                entities[each.key] = _entity_hash(each)
                lonely[each.key] = digest("lonely", entities[each.key], str(each.n_mentions))
        ids = [each for some in self.own.values() for each in some]
        relations: dict[str, str] = {}
        for start in range(0, len(ids), READ_AT_ONCE):
            some = await view.relations(ids[start : start + READ_AT_ONCE])
            relations.update((each.id, _relation_hash(each)) for each in some)
        return Said(entities, lonely, relations)

    def clusters(self, said: Said) -> list[Cluster]:
        """Return the communities as clusters."""
        hashes = dict(self.standing)
        for at in reversed(range(len(self.found))):  # the finest come last
            if at not in hashes:
                hashes[at] = self._hash(at, said, hashes)
        return [
            Cluster(
                id=self.ids[at],
                hierarchy=Hierarchy.COMMUNITIES,
                level=each.level,
                parent=self.ids[each.parent] if each.parent >= 0 else "",
                members=self.members[at],
                n_entities=len(each.nodes),
                inputs_hash=hashes[at],
            )
            for at, each in enumerate(self.found)
        ]

    def _hash(self, at: int, said: Said, hashes: Mapping[int, str]) -> str:
        relations = [said.relations[each] for each in self.own.get(at, ()) if each in said.relations]
        of_entities = said.entities if relations else said.lonely
        inside = [hashes[part] for part in self.parts.get(at, ())]
        inside += [of_entities[key] for key in self.members[at] if key in of_entities]
        return digest("community", *sorted(inside), *relations)


def plan_clusters(
    keys: Sequence[str], relations: EdgeList, found: Sequence[Community], stored: Sequence[Cluster]
) -> Plan:
    """Return the plan for communities of entities with these keys; their `kept` are places in `stored`."""
    parts: dict[int, list[int]] = {}
    for at, each in enumerate(found):
        if each.parent >= 0:
            parts.setdefault(each.parent, []).append(at)
    ids = _ids(keys, found, stored)
    members = [tuple(keys[node] for node in each.nodes.tolist()) if each.is_finest else () for each in found]
    plan = Plan(found=found, ids=ids, members=members, parts=parts, standing={}, own={})
    standing = _standing(plan, stored)
    changed = [at for at in range(len(found)) if at not in standing]
    own = _own_relations(keys, relations, found, changed)
    return Plan(found=found, ids=ids, members=members, parts=parts, standing=standing, own=own)


def _ids(keys: Sequence[str], found: Sequence[Community], stored: Sequence[Cluster]) -> list[str]:
    """Return the id each community had before; a new one is known by its entities."""
    kept = {stored[each.previous].id for each in found if each.previous >= 0}
    ids: list[str] = []
    for each in found:
        if each.previous >= 0:
            ids.append(stored[each.previous].id)
            continue
        salt, new = 0, ""
        while not new or new in kept:  # one that has grown since may have been just these entities
            new = digest("communities", str(each.level), str(salt), *(keys[node] for node in each.nodes.tolist()))[:16]
            salt += 1
        ids.append(new)
    return ids


def _standing(plan: Plan, stored: Sequence[Cluster]) -> dict[int, str]:
    """Return the hashes that stand: nothing in these communities changed, and nothing came or went."""
    before = {each.id: each for each in stored}
    n_parts = Counter(each.parent for each in stored)
    standing: dict[int, str] = {}
    for at in reversed(range(len(plan.found))):
        old, parts = before.get(plan.ids[at]), plan.parts.get(at, ())
        if old is None or not old.inputs_hash or old.members != plan.members[at] or n_parts[old.id] != len(parts):
            continue
        if all(part in standing and before[plan.ids[part]].parent == old.id for part in parts):
            standing[at] = old.inputs_hash
    return standing


def _own_relations(
    keys: Sequence[str], relations: EdgeList, found: Sequence[Community], wanted: Collection[int]
) -> dict[int, list[str]]:
    """Return the relations of each of these communities that are in none of its parts, ordered by their ends."""
    at = np.full(len(relations.weights), -1, dtype=np.int64)
    for level in _by_level(found, len(keys)):
        here = level[relations.sources]
        is_inside = (here >= 0) & (here == level[relations.targets])
        at[is_inside] = here[is_inside]
    is_wanted = np.isin(at, list(wanted))
    columns = (column[is_wanted].tolist() for column in (at, relations.sources, relations.targets))
    own: dict[int, list[str]] = {}
    for community, first, second in zip(*columns, strict=True):
        own.setdefault(community, []).append(relation_id(keys[first], keys[second]))
    return own


def _by_level(found: Sequence[Community], n: int) -> list[Ints]:
    levels = [np.full(n, -1, dtype=np.int64) for _ in range(max((each.level for each in found), default=-1) + 1)]
    for at, each in enumerate(found):
        levels[each.level][each.nodes] = at
    return levels


def _entity_hash(entity: Entity) -> str:
    return digest("entity", entity.key, entity.name, entity.type, entity.description)


def _relation_hash(relation: Relation) -> str:
    counted = str(relation.weight), str(relation.n_mentions)
    return digest("relation", relation.id, relation.description, *counted, *relation.keywords)
