"""Graph layout: a place on a plane for every node, as a function of the graph and its communities alone.

A community is a disc. The discs of one parent are packed on rings around the largest one, so that a disc holds all that
is in it and none overlaps another. Inside the finest communities the nodes lie on rings, those with the most relations
inside in the middle. Each ring is ordered and turned so that what it holds lies towards what it is related to.

Source: the barycentre rule of K. Sugiyama et al., "Methods for Visual Understanding of Hierarchical System Structures"
(1981). Deviation: there all layers are ordered several times, here each ring once, from the inside outwards.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.algo.edge_list import EdgeList

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.float32]

VERSION = "rings/1"
NODE_RADIUS = 1.0  # the unit of all lengths
_PADDING = 0.5  # between what a disc holds and its edge
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
_MAX_OPEN_RING = 5  # so few equal discs need less space on one ring than around one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscTree:
    """Communities, each after its parent: `parents` [c] are their places in the list, -1 for none.

    `finest` [n] is the smallest community that each node is in, -1 for none.
    """

    parents: Ints
    finest: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLayout:
    """The places of the `nodes` [n, 2] and of the centres of `communities` [c, 2], and the `radii` [c] of these."""

    nodes: Positions
    communities: Positions
    radii: Positions


def lay_out(graph: EdgeList, tree: DiscTree) -> GraphLayout:
    """Return the layout of a graph.

    A node without a community lies at the mean of its neighbours that have one; without such a neighbour it is packed
    beside the communities. Equal discs are ordered by their numbers.
    """
    complete = _completed(graph, tree)
    depths = _depths(complete.parents)
    discs, radii = _pack_communities(complete, depths)
    ends = _DirectedEdges.of(graph)
    centres, anchors = np.zeros((len(depths) + 1, 2)), np.zeros((graph.n, 2))  # the last centre is that of the map
    parent = np.full(graph.n, -1, dtype=np.int64)
    for depth in range(int(depths.max(initial=-1)) + 1):
        disc = _ancestors(complete, depths, depth)
        numbers = np.flatnonzero(depths == depth)
        centres[numbers] = _turn(
            discs.at(numbers), centres[complete.parents[numbers]], _pulls(ends, disc, parent, anchors, numbers)
        )
        anchors[disc >= 0], parent = centres[disc[disc >= 0]], disc
    members = np.flatnonzero(complete.finest >= 0)
    rings = _pack_nodes(complete.finest, _degrees_inside(graph, complete.finest)).at(members)
    own = np.where(complete.finest >= 0, np.arange(graph.n), -1)
    positions = anchors.copy()
    positions[members] = _turn(rings, anchors[members], _pulls(ends, own, complete.finest, anchors, members))
    _place_beside_neighbours(positions, graph, complete.finest)
    n = len(tree.parents)
    return GraphLayout(
        nodes=positions.astype(np.float32),
        communities=centres[:n].astype(np.float32),
        radii=radii[:n].astype(np.float32),
    )


@dataclass(frozen=True, slots=True)
class _Rings:
    """Discs on rings around the centre of their group: all [m]. A disc at the centre is on ring 0 at distance 0."""

    groups: Ints
    rings: Ints
    distances: Floats
    half_angles: Floats  # that a disc takes on its ring

    def at(self, numbers: Ints) -> "_Rings":
        """Return these discs."""
        return _Rings(self.groups[numbers], self.rings[numbers], self.distances[numbers], self.half_angles[numbers])


@dataclass(frozen=True, slots=True)
class _DirectedEdges:
    """Each edge in both directions, all [2m]."""

    sources: Ints
    targets: Ints
    weights: Floats

    @classmethod
    def of(cls, graph: EdgeList) -> "_DirectedEdges":
        sources, targets = graph.sources, graph.targets
        return cls(np.concatenate([sources, targets]), np.concatenate([targets, sources]), np.tile(graph.weights, 2))


@dataclass(frozen=True, slots=True)
class _Pulls:
    """Where discs of one depth are pulled: `outside` [m, 2] to other groups, and by edges inside of their group."""

    outside: Floats
    sources: Ints
    targets: Ints
    weights: Floats


def _completed(graph: EdgeList, tree: DiscTree) -> DiscTree:
    """Return the tree in which a disc holds either discs or nodes, and every node has a disc or a neighbour with one.

    Nodes beside the parts of a community become one more part of it.
    """
    finest, parents = tree.finest.copy(), tree.parents
    has_parts = np.append(np.isin(np.arange(len(parents)), parents), False)
    beside = np.flatnonzero(has_parts[finest])
    wholes, part = np.unique(finest[beside], return_inverse=True)
    finest[beside] = len(parents) + part
    parents = np.concatenate([parents, wholes])
    has_community = finest >= 0
    is_near = has_community.copy()
    is_near[graph.sources[has_community[graph.targets]]] = True
    is_near[graph.targets[has_community[graph.sources]]] = True
    lone = np.flatnonzero(~is_near)
    finest[lone] = len(parents) + np.arange(len(lone))
    return DiscTree(parents=np.concatenate([parents, np.full(len(lone), -1)]), finest=finest)


def _depths(parents: Ints) -> Ints:
    """Return how many communities each one is in, [c]."""
    depths, above = np.zeros(len(parents), dtype=np.int64), parents
    while (above >= 0).any():
        depths += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return depths


def _ancestors(tree: DiscTree, depths: Ints, depth: int) -> Ints:
    """Return the community of each node at this depth, [n]; -1 for none."""
    ancestors = tree.finest
    while (is_deeper := (ancestors >= 0) & (np.append(depths, -1)[ancestors] > depth)).any():
        ancestors = np.where(is_deeper, tree.parents[ancestors], ancestors)
    return np.where(np.append(depths, -1)[ancestors] == depth, ancestors, -1)


def _degrees_inside(graph: EdgeList, finest: Ints) -> Floats:
    """Return the summed weight of each node's edges inside its finest community, [n]."""
    is_inside = finest[graph.sources] == finest[graph.targets]
    inner = EdgeList(graph.n, graph.sources[is_inside], graph.targets[is_inside], graph.weights[is_inside])
    return inner.degrees()


def _pack_nodes(finest: Ints, strengths: Floats) -> _Rings:
    """Return the rings of all nodes, the strongest of each community in its middle; ring k has 6 k places."""
    n = len(finest)
    order = np.lexsort((np.arange(n), -strengths, finest))
    starts = np.flatnonzero(np.diff(finest[order], prepend=-2))
    sizes = np.diff(starts, append=n)
    ranks, counts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    ranks[order] = np.arange(n) - np.repeat(starts, sizes)
    counts[order] = np.repeat(sizes, sizes)
    rings = np.ceil((np.sqrt(12 * ranks + 9) - 3) / 6).astype(np.int64)
    is_open = (counts > 1) & (counts <= _MAX_OPEN_RING)
    rings[is_open] = 1
    distances = np.where(is_open, NODE_RADIUS / np.sin(math.pi / np.maximum(counts, 2)), 2 * NODE_RADIUS * rings)
    half_angles = np.where(rings > 0, np.arcsin(NODE_RADIUS / np.maximum(distances, NODE_RADIUS)), math.pi)
    return _Rings(finest, rings, distances, half_angles)


def _pack_communities(tree: DiscTree, depths: Ints) -> tuple[_Rings, Floats]:
    """Return the rings of all communities, and their radii, [c]."""
    n = len(tree.parents)
    radii = _node_disc_radii(np.bincount(tree.finest[tree.finest >= 0], minlength=n))
    rings, distances = np.zeros(n, dtype=np.int64), np.zeros(n)
    for depth in range(int(depths.max(initial=-1)), -1, -1):
        numbers = np.flatnonzero(depths == depth)
        order = numbers[np.lexsort((numbers, -radii[numbers], tree.parents[numbers]))]
        for group in np.split(order, np.flatnonzero(np.diff(tree.parents[order])) + 1):
            rings[group], distances[group], radius = _pack(radii[group].tolist())
            parent = tree.parents[group[0]]
            if parent >= 0:
                radii[parent] = max(radii[parent], radius + _PADDING)
    half_angles = np.where(distances > 0, np.arcsin(radii / np.maximum(distances, radii)), math.pi)
    return _Rings(tree.parents, rings, distances, half_angles), radii


def _node_disc_radii(sizes: Ints) -> Floats:
    """Return the radius of a disc of so many nodes, [c]."""
    rings = np.ceil((np.sqrt(12 * np.maximum(sizes - 1, 0) + 9) - 3) / 6)
    is_open = (sizes > 1) & (sizes <= _MAX_OPEN_RING)
    distances = np.where(is_open, NODE_RADIUS / np.sin(math.pi / np.maximum(sizes, 2)), 2 * NODE_RADIUS * rings)
    return np.asarray(distances + NODE_RADIUS + _PADDING, dtype=np.float64)


def _pack(radii: Sequence[float]) -> tuple[list[int], list[float], float]:
    """Return the ring and the distance from the centre of each disc, largest first, and the radius around them all.

    A disc of radius r at distance d takes asin(r / d) to each side. As asin is convex, discs whose angles have room on
    a ring do not overlap.
    """
    n = len(radii)
    rings, distances, outer = [0], [0.0], radii[0]
    while len(rings) < n:
        distance, angle, ring = outer + radii[len(rings)], 0.0, rings[-1] + 1
        outer = distance + radii[len(rings)]
        while len(rings) < n and (angle := angle + 2 * math.asin(radii[len(rings)] / distance)) <= 2 * math.pi + 1e-9:
            rings.append(ring)
            distances.append(distance)
    if 1 < n <= _MAX_OPEN_RING:
        distance = radii[0] / math.sin(math.pi / n)
        if distance + radii[0] < outer:
            return [1] * n, [distance] * n, distance + radii[0]
    return rings, distances, outer


def _pulls(ends: _DirectedEdges, disc: Ints, parent: Ints, anchors: Floats, numbers: Ints) -> _Pulls:
    """Return what pulls the discs `numbers`: `disc` [n] is that of each node at this depth, `parent` [n] what holds it.

    `anchors` [n, 2] are the places of the smallest discs around the nodes that have a place already. Edges to other
    groups give a direction only, so that a far group does not count more than a near one.
    """
    sources, targets = disc[ends.sources], disc[ends.targets]
    place_by_disc = np.full(max(int(disc.max(initial=0)), int(numbers.max(initial=0))) + 1, -1, dtype=np.int64)
    place_by_disc[numbers] = np.arange(len(numbers))
    is_inside = parent[ends.sources] == parent[ends.targets]
    is_outside = ~is_inside & (sources >= 0)
    directions = anchors[ends.targets[is_outside]] - anchors[ends.sources[is_outside]]
    lengths = np.maximum(np.hypot(*directions.T), NODE_RADIUS)
    scaled = ends.weights[is_outside] / lengths
    places = place_by_disc[sources[is_outside]]
    outside = _summed(places, scaled[:, None] * directions, len(numbers))
    is_pair = is_inside & (sources >= 0) & (targets >= 0) & (sources != targets)
    return _Pulls(outside, place_by_disc[sources[is_pair]], place_by_disc[targets[is_pair]], ends.weights[is_pair])


def _turn(discs: _Rings, centres: Floats, pulls: _Pulls) -> Floats:
    """Return the places of discs around the centres [m, 2] of their groups, one ring after the other, outwards."""
    offsets = np.zeros((len(discs.rings), 2))
    is_outward = discs.rings[pulls.targets] < discs.rings[pulls.sources]
    sources, targets, weights = (side[is_outward] for side in (pulls.sources, pulls.targets, pulls.weights))
    by_ring = np.argsort(discs.rings[sources], kind="stable")
    sources, targets, weights = sources[by_ring], targets[by_ring], weights[by_ring]
    order = np.argsort(discs.rings, kind="stable")
    n_rings = int(discs.rings.max(initial=-1)) + 1
    cuts = np.searchsorted(discs.rings[order], np.arange(n_rings + 1))
    edge_cuts = np.searchsorted(discs.rings[sources], np.arange(n_rings + 1))
    place_on_ring = np.empty(len(order), dtype=np.int64)
    for ring in range(n_rings):
        on_ring = order[cuts[ring] : cuts[ring + 1]]
        place_on_ring[on_ring] = np.arange(len(on_ring))
        edges = slice(edge_cuts[ring], edge_cuts[ring + 1])
        places, others = place_on_ring[sources[edges]], offsets[targets[edges]]
        lengths = np.maximum(np.hypot(*others.T), NODE_RADIUS)
        pull = pulls.outside[on_ring] + _summed(places, (weights[edges] / lengths)[:, None] * others, len(on_ring))
        angles = _angles(discs.at(on_ring), on_ring, pull)
        offsets[on_ring] = discs.distances[on_ring, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return centres + offsets


def _angles(discs: _Rings, numbers: Ints, pull: Floats) -> Floats:
    """Return the angles of discs on one ring of each group: in the order of their pulls, and turned towards these."""
    strengths = np.hypot(*pull.T)
    preferred = np.where(
        strengths > 0, np.arctan2(pull[:, 1], pull[:, 0]), (_GOLDEN_ANGLE * numbers) % math.tau - math.pi
    )
    order = np.lexsort((numbers, preferred, discs.groups))
    starts = np.flatnonzero(np.diff(discs.groups[order], prepend=-2))
    sizes = np.diff(starts, append=len(order))
    widths = 2 * discs.half_angles[order]
    gaps = np.maximum(math.tau - np.add.reduceat(widths, starts), 0) / sizes
    steps = widths + np.repeat(gaps, sizes)
    ends = np.cumsum(steps)
    slots = ends - steps / 2 - np.repeat(ends[starts] - steps[starts], sizes)
    weights, differences = strengths[order] + 1e-9, preferred[order] - slots
    turns = np.arctan2(
        np.add.reduceat(weights * np.sin(differences), starts), np.add.reduceat(weights * np.cos(differences), starts)
    )
    angles = np.empty(len(order))
    angles[order] = slots + np.repeat(turns, sizes)
    return angles


def _place_beside_neighbours(positions: Floats, graph: EdgeList, finest: Ints) -> None:
    """Place nodes without a community at the mean of their neighbours that have one, a little apart from each other."""
    ends = _DirectedEdges.of(graph)
    is_used = (finest[ends.sources] < 0) & (finest[ends.targets] >= 0)
    sources, targets, weights = ends.sources[is_used], ends.targets[is_used], ends.weights[is_used]
    nodes = np.flatnonzero(finest < 0)
    total = np.bincount(sources, weights=weights, minlength=graph.n)[nodes]
    angles = _GOLDEN_ANGLE * np.arange(len(nodes))
    shifts = NODE_RADIUS / 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    summed = _summed(sources, weights[:, None] * positions[targets], graph.n)[nodes]
    positions[nodes] = summed / total[:, None] + shifts


def _summed(groups: Ints, vectors: Floats, n: int) -> Floats:
    """Return the sum of the vectors [m, 2] of each group, [n, 2]."""
    sums = [np.bincount(groups, weights=column, minlength=n) for column in vectors.T]
    return np.stack(sums, axis=1).astype(np.float64)
