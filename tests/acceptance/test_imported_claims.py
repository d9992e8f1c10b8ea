"""Claims of an import go the way of extracted ones: found, shown, filtered, updated, removed with their documents."""

import json
from pathlib import Path

import quipu
from quipu.engine import Quipu
from quipu.model.query import Filter

QUESTION = "Which clock was Ann Lee charged with stealing?"
TEXTS = {
    "court": "Ann Lee stood trial in Leeds. She was charged with stealing a clock.",
    "paper": "Ann Lee took nothing, wrote the paper of Leeds.",
}
CLAIMS = {
    "court": {
        "subject": "Ann Lee",
        "object": "Leeds",
        "type": "theft",
        "status": "SUSPECTED",
        "start_date": "1999-05-01T00:00:00",
        "end_date": "1999-06-30T00:00:00",
        "description": "Ann Lee was charged with stealing a clock.",
        "source_text": "She was charged with stealing a clock.",
    },
    "paper": {"subject": "Ann Lee", "status": "false", "description": "Ann Lee took a clock."},
}


def write(folder: Path, claims: dict[str, dict[str, str]]) -> Path:
    """Write a recorded graph with claims in a file of their own."""
    folder.mkdir(exist_ok=True)
    texts = [{"id": name, "text": text, "entities": ["Ann Lee", "Leeds"]} for name, text in TEXTS.items()]
    community = {"community": 0, "level": 0, "entities": ["Ann Lee", "Leeds"]}
    report = {"community": 0, "title": "A trial in Leeds", "summary": "Ann Lee stood trial."}
    said = [{"id": name, "claims": [claim]} for name, claim in claims.items()]
    for name, lines in (("texts", [*texts, community, report]), ("claims", said)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


async def found(kb: Quipu, allowed: Filter | None = None) -> list[tuple[str, str, str]]:
    """Return status, dates and words of the claims found for the question."""
    evidence = await kb.retrieve(QUESTION, strategy="community_local", filter=allowed or Filter())
    async with kb._store.view() as view:
        claims = await view.claims([hit.id for hit in evidence.claims])
    return [(each.status, each.dates, each.description) for each in claims]


async def test_imported_claims_answer_are_filtered_updated_and_removed(tmp_path: Path) -> None:
    charged = ("suspected", "1999-05-01 to 1999-06-30", "Ann Lee was charged with stealing a clock.")
    denied = ("false", "", "Ann Lee took a clock.")
    async with quipu.open(tmp_path / "k") as kb:
        folder = write(tmp_path / "run", CLAIMS)
        assert (await kb.import_graph(folder)).n_added == len(TEXTS)
        assert (await kb.import_graph(folder)).n_unchanged == len(TEXTS)
        assert await found(kb) == [charged, denied]
        assert await found(kb, Filter(exclude=("court",))) == [denied]
        answer = await kb.query(QUESTION, strategy="community_local")
        assert f"Ann Lee — Leeds (theft, {charged[0]}, {charged[1]})\n{charged[2]}" in answer.context
        dumped = [json.loads(line) async for line in kb.dump()]
        assert len([line for line in dumped if line["kind"] == "claim"]) == len(CLAIMS)
        changed = {**CLAIMS, "paper": {"subject": "Ann Lee", "description": "Ann Lee paid."}}
        assert (await kb.import_graph(write(tmp_path / "run", changed))).n_updated == 1
        assert await found(kb) == [charged, ("", "", "Ann Lee paid.")]
        await kb.remove(["court"])
        assert await found(kb) == [("", "", "Ann Lee paid.")]
        assert await kb.verify() == []
