"""Package: an office file (Open Packaging Conventions) as parts that relations lead to, and what it says of itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from xml.etree.ElementTree import Element

from quipu.model.document import MetadataValue, SourceDocument
from quipu.parse.damage import damaged
from quipu.parse.xml import attribute, children, load_tree, local, prefixed_attribute
from quipu.parse.zipped import Archive

_MAX_VALUE = 1_000  # characters of one metadata value
_KEY_BY_PROPERTY = {
    "creator": "author",
    "subject": "subject",
    "keywords": "keywords",
    "category": "category",
    "language": "language",
    "created": "created",
    "modified": "modified",
}


@dataclass(frozen=True, slots=True)
class Relation:
    """One part's reference to another: the kind (last word of its type), and the other's name, or a URL's."""

    kind: str
    target: str


class Package:
    """The parts of an office file. Parts are found by relations, never by name: programs name them differently."""

    def __init__(self, source: SourceDocument) -> None:
        self.archive = Archive(source)
        self.name = self.archive.name
        self._root = self.relations("")

    @property
    def main(self) -> str:
        """The name of the part the document begins in; raises InvalidDocument where there is none."""
        return self._named("officeDocument")

    def tree(self, part: str) -> Element:
        """Return the root element of a part; raises InvalidDocument where it is missing or damaged."""
        return load_tree(self.archive.read(part), self.name)

    def relations(self, part: str) -> Mapping[str, Relation]:
        """Return the relations of a part ("" is the package) by their ids; targets are names of parts."""
        folder, _, name = part.rpartition("/")
        file = f"{folder}/_rels/{name}.rels".lstrip("/")
        if file not in self.archive:
            return {}
        return {
            attribute(each, "Id"): Relation(
                kind=attribute(each, "Type").rpartition("/")[2],
                target=_resolve(part, attribute(each, "Target")),
            )
            for each in children(self.tree(file), "Relationship")
        }

    def related(self, part: str, kind: str) -> str:
        """Return the name of the first existing part that `part` has a relation of `kind` to, or the empty string."""
        targets = (each.target for each in self.relations(part).values() if each.kind == kind)
        return next((target for target in targets if target in self.archive), "")

    def properties(self) -> tuple[str, dict[str, MetadataValue]]:
        """Return the document's title and its metadata: author, subject, keywords, category, language, dates."""
        part = next((each.target for each in self._root.values() if each.kind == "core-properties"), "")
        if part not in self.archive:
            return "", {}
        values = {local(each): " ".join((each.text or "").split())[:_MAX_VALUE] for each in self.tree(part)}
        metadata = {key: values[name] for name, key in _KEY_BY_PROPERTY.items() if values.get(name)}
        return values.get("title", ""), dict(metadata)

    def _named(self, kind: str) -> str:
        part = next((each.target for each in self._root.values() if each.kind == kind), "")
        if part not in self.archive:
            raise damaged(self.name, "the part its text should be in is missing")
        return part


def relation_id(element: Element) -> str:
    """Return the id of the relation an element refers to (its `id` in a namespace; its own id is in none)."""
    return prefixed_attribute(element, "id")


def _resolve(part: str, target: str) -> str:
    """Return the name of the part that `target` means in the relations of `part`."""
    return normpath(join("/", dirname(part), target)).lstrip("/")
