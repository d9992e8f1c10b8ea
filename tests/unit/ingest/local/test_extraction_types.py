"""Types of names."""

import pytest

from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import ChunkInput
from quipu.model.graph import ENTITY_TYPES


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("They chose Ada Lovelace.", "Ada Lovelace", "Person"),
        ("They chose J. K. Rowling.", "J. K. Rowling", "Person"),
        ("Ravi Shankaran was an Indian poet.", "Ravi Shankaran", "Person"),
        ("The University of Vienna closed.", "University of Vienna", "Organization"),
        ("It is near Lake Winnipeg now.", "Lake Winnipeg", "Location"),
        ("They live in Zell.", "Zell", "Location"),
        ("He fell at the Battle of Hastings.", "Battle of Hastings", "Event"),
        ('She wrote the novel "Silent Rooms" there.', "Silent Rooms", "Content"),
        ("Он знал Петра Ильича Орлова.", "Петра Ильича Орлова", "Person"),
        ("Компания «Северный ветер» выросла.", "Северный ветер", "Organization"),
        ("Так закончилась Ливонская война вчера.", "Ливонская война", "Event"),
        ("他来到洱海。", "洱海", "Location"),
        ("作者是李时珍。", "李时珍", "Person"),
        ("他写成《史记》。", "史记", "Content"),
        ("They tested the XR-750 twice.", "XR-750", "Artifact"),
        ("They saw Quorthon.", "Quorthon", "Other"),
        ("They wrote it in Ruby.", "Ruby", "Other"),
        ("Он развёрнут в Kubernetes.", "Kubernetes", "Other"),
        ("We set MAX_COOKIE_SIZE there.", "MAX_COOKIE_SIZE", "Other"),
        ("Он создал Kubernetes-ресурсов много.", "Kubernetes-ресурсов", "Other"),
        ("Send it to the U.S. Quorthon desk.", "U.S. Quorthon", "Other"),
        ("We set Max-Age there.", "Max-Age", "Other"),
    ],
)
def test_a_rule_tells_the_type(text: str, name: str, kind: str) -> None:
    kinds = {entity.name: entity.type for entity in extract_chunk(ChunkInput(text=text)).entities}

    assert kinds[name] == kind
    assert kind in ENTITY_TYPES
