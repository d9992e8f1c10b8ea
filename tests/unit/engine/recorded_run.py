"""A small run of another system as files to import, and what an index tells of communities."""

import json
from pathlib import Path

from quipu.engine import Quipu
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy

TEXTS = {
    "p1": "Alice Kober studied Linear B at Brooklyn College. She kept cards in cigarette boxes.",
    "p2": "Michael Ventris read Linear B as Greek. John Chadwick helped Michael Ventris.",
    "p3": "Arthur Evans dug at Knossos. Arthur Evans named Linear B.",
}
RELATIONS = {
    "p1": [("ALICE KOBER", "LINEAR B"), ("ALICE KOBER", "BROOKLYN COLLEGE")],
    "p2": [("MICHAEL VENTRIS", "LINEAR B"), ("JOHN CHADWICK", "MICHAEL VENTRIS")],
    "p3": [("ARTHUR EVANS", "KNOSSOS"), ("ARTHUR EVANS", "LINEAR B")],
}
COMMUNITIES: list[dict[str, object]] = [
    {"community": 0, "level": 0, "entities": ["ALICE KOBER", "LINEAR B", "BROOKLYN COLLEGE", "NOBODY"]},
    {"community": 1, "level": 0, "entities": ["MICHAEL VENTRIS", "JOHN CHADWICK", "ARTHUR EVANS", "KNOSSOS"]},
    {"community": 2, "level": 1, "parent": 1, "entities": ["MICHAEL VENTRIS", "JOHN CHADWICK"]},
    {"community": 3, "level": 1, "parent": 1, "entities": ["ARTHUR EVANS", "KNOSSOS"]},
]
REPORTS = [
    {"community": 0, "title": "Alice Kober", "summary": "She studied Linear B.", "rank": 8.0, "findings": []},
    {"community": 1, "title": "Readers of Linear B", "summary": "They came after.", "rank": 6.0},
]


def write_run(
    folder: Path, *, weight: float = 1.0, only: tuple[str, ...] = ("graph", "communities", "reports")
) -> Path:
    """Write passages, communities and reports, or some of these, into a folder; return it."""
    folder.mkdir(exist_ok=True)
    passages = [
        {
            "id": name,
            "title": f"Page {name}",
            "text": text,
            "entities": sorted({end for pair in RELATIONS[name] for end in pair}),
            "relations": [
                {"source": a, "target": b, "description": f"{a} and {b}.", "weight": weight} for a, b in RELATIONS[name]
            ],
        }
        for name, text in TEXTS.items()
    ]
    for name, lines in (("graph", passages), ("communities", COMMUNITIES), ("reports", REPORTS)):
        if name not in only:
            continue
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


async def told(kb: Quipu) -> tuple[list[Cluster], list[ClusterReport], list[str]]:
    """Return communities, reports on them, and the canonical state."""
    async with kb._store.view() as view:
        clusters = await view.clusters(Hierarchy.COMMUNITIES)
        reports = await view.cluster_reports([each.id for each in clusters])
    return clusters, reports, [line async for line in kb.dump()]
