"""What was imported: communities another system made, and its reports, kept so that a rebuild finds them again.

Facts are kept, and derivations made anew from them: so what came is kept apart from what there is now. Entities of
communities are kept as digests of their keys, and reports go with the first of their documents that takes something
back: nothing here tells of what is gone.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quipu.algo.leiden import Community
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import Cluster, ClusterReport, Finding
from quipu.model.derivation import IMPORTED_COMMUNITIES, DerivationRecord
from quipu.model.ids import digest
from quipu.ports.reply_cache import ReplyCache
from quipu.ports.store import ReadView, Store

RECORDED = "recorded/1"  # in place of a model's name

_REQUEST = ChatRequest(messages=(), role=Role.REPORT, max_output_tokens=0)  # nobody is asked


async def keep_communities(
    came: Sequence[Community], keys: Sequence[str], view: ReadView, replies: ReplyCache
) -> DerivationRecord:
    """Keep the shape of communities of entities with these keys, as long as one of the documents there are; note it."""
    payload = await asyncio.to_thread(_shape, came, keys)
    documents = tuple(each.id for each in await view.documents() if each.version)
    identity = digest("imported", payload)
    await replies.save_reply(identity, payload, replace(_REQUEST, documents=documents), ())
    return DerivationRecord(name=IMPORTED_COMMUNITIES, identity=identity, revision=view.revision)


async def find_communities(keys: Sequence[str], view: ReadView, replies: ReplyCache) -> list[Community]:
    """Return the communities that came with imports, coarsest first, with the places in `keys` of what is there."""
    payload = await _payload(view, replies)
    return await asyncio.to_thread(_communities, payload, keys) if payload else []


async def are_kept(view: ReadView, replies: ReplyCache) -> bool:
    """Say whether it is known which communities were imported."""
    return bool(await _payload(view, replies))


def beside(came: Sequence[Community], before: Sequence[Community]) -> list[Community]:
    """Return communities with those that came before them, as far as these hold what is in none of the others."""
    n = max((int(each.nodes[-1]) + 1 for each in (*came, *before)), default=0)
    is_free = np.ones(n, dtype=np.bool_)
    for each in came:
        is_free[each.nodes] = False
    left = [replace(each, nodes=each.nodes[is_free[each.nodes]]) for each in before]
    return settled([*came, *behind(len(came), left)])


def behind(n: int, found: Sequence[Community]) -> list[Community]:
    """Return communities as they stand behind `n` others."""
    return [replace(each, parent=each.parent + n) if each.parent >= 0 else each for each in found]


def settled(found: Sequence[Community]) -> list[Community]:
    """Return the communities that hold anything: where one does not its parts are none; what holds others is divided.

    Each comes after the one that holds it.
    """
    number: dict[int, int] = {}
    left: list[Community] = []
    for at, each in enumerate(found):
        if len(each.nodes):
            number[at] = len(left)
            left.append(replace(each, parent=number.get(each.parent, -1)))
    divided = {each.parent for each in left}
    return [replace(each, is_finest=at not in divided) for at, each in enumerate(left)]


async def standing_reports(view: ReadView, clusters: Sequence[Cluster]) -> list[ClusterReport]:
    """Return the imported reports on these communities of which nothing has changed since they came."""
    hashes = {each.id: each.inputs_hash for each in clusters if each.inputs_hash}
    reports = await view.cluster_reports(sorted(hashes))
    return [each for each in reports if each.model == RECORDED and each.inputs_hash == hashes[each.cluster]]


async def keep_reports(reports: Sequence[ClusterReport], view: ReadView, replies: ReplyCache) -> None:
    """Keep imported reports for communities that are what they were then, while none of their documents changes."""
    documents = await view.cluster_documents([each.cluster for each in reports])
    async with asyncio.TaskGroup() as tasks:
        for each in reports:
            request = replace(_REQUEST, documents=documents.get(each.cluster, ()), lifetime=ReplyLifetime.ALL_DOCUMENTS)
            if request.documents:
                request = replace(request, revision=view.revision)
                tasks.create_task(replies.save_reply(_place_of(each.inputs_hash), _written(each), request, ()))


async def find_reports(clusters: Sequence[Cluster], store: Store) -> dict[str, ClusterReport]:
    """Return, by the hash of what they are made from, the imported reports on communities as these are."""
    hash_by_place = {_place_of(each.inputs_hash): each.inputs_hash for each in clusters if each.inputs_hash}
    found = await store.replies(sorted(hash_by_place))
    return {hash_by_place[place]: _read(payload, hash_by_place[place]) for place, payload in found.items()}


async def _payload(view: ReadView, replies: ReplyCache) -> str:
    made = (await view.derivations()).get(IMPORTED_COMMUNITIES)
    return (made and await replies.find_reply(made.identity)) or ""


def _shape(came: Sequence[Community], keys: Sequence[str]) -> str:
    """Return communities as JSON: of each the place of the one that holds it, and its entities."""
    named = [_digest(key) for key in keys]
    return json.dumps([[each.parent, [named[node] for node in each.nodes.tolist()]] for each in came])


def _communities(shape: str, keys: Sequence[str]) -> list[Community]:
    place = {_digest(key): at for at, key in enumerate(keys)}
    found: list[Community] = []
    for parent, entities in json.loads(shape):
        nodes = np.array(sorted(place[each] for each in entities if each in place), dtype=np.int64)
        found.append(Community(found[parent].level + 1 if parent >= 0 else 0, parent, nodes, -1, True))
    return settled(found)


def _digest(key: str) -> str:
    return digest("entity", key)[:16]


def _place_of(inputs_hash: str) -> str:
    return digest("imported report", inputs_hash)


def _written(report: ClusterReport) -> str:
    findings = [[each.summary, each.explanation] for each in report.findings]
    return json.dumps([report.title, report.summary, findings, report.rating, report.chunks])


def _read(payload: str, inputs_hash: str) -> ClusterReport:
    title, summary, findings, rating, chunks = json.loads(payload)
    return ClusterReport(
        cluster="",
        title=title,
        summary=summary,
        findings=tuple(Finding(summary=said, explanation=why) for said, why in findings),
        rating=rating,
        chunks=tuple(chunks),
        inputs_hash=inputs_hash,
        model=RECORDED,
    )
