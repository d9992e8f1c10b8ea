"""Aggregates for retrieval tests: a library with a hierarchy given by hand, or one that was made."""

from collections.abc import Mapping, Sequence

from quipu.derive import hierarchy
from quipu.derive.derivation import DerivationContext
from quipu.model.cluster import Cluster, ClusterRelation, ClusterRelationUpdate, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from tests.unit.retrieve.fakes import Library

Tree = Mapping[str, tuple[str, int, Sequence[str]]]  # aggregate: the one above it, its layer, its members


async def aggregate(
    library: Library, tree: Tree, relations: Sequence[ClusterRelation] = (), *, untold: Sequence[str] = ()
) -> None:
    """Put the entities of a library into aggregates, each but the `untold` with a report "On NAME"."""
    async with library.view() as view:
        revision = view.revision
    clusters = [
        Cluster(
            id=name,
            hierarchy=Hierarchy.AGGREGATES,
            level=level,
            parent=parent,
            members=tuple(sorted(members)),
            inputs_hash=f"inputs of {name}",
        )
        for name, (parent, level, members) in tree.items()
    ]
    reports = [
        ClusterReport(cluster=name, title=f"On {name}", summary=f"All {name}.", inputs_hash=f"inputs of {name}")
        for name in tree
        if name not in untold
    ]
    await library.commit(
        Delta(
            partition=Partition(hierarchy=Hierarchy.AGGREGATES, clusters=clusters, revision=revision),
            reports=reports,
            cluster_relations=ClusterRelationUpdate(relations=relations, revision=revision),
        )
    )


async def build(library: Library) -> None:
    """Make the hierarchy of a library, without a model."""
    tools = library.tools
    context = DerivationContext(
        store=library._store,
        vectors=tools.vectors,
        embedder=library.embedder,
        topology=tools.topology,
        tokenizer=tools.tokenizer,
    )
    await hierarchy.DERIVATION.refresh(context, False)
    await library.commit(Delta())


def crossing(source: str, target: str, level: int, description: str = "", *, n: int = 1) -> ClusterRelation:
    """Return a relation between two aggregates."""
    said = description or f"{source} meets {target}."
    return ClusterRelation(source=source, target=target, level=level, description=said, weight=float(n), n_relations=n)
