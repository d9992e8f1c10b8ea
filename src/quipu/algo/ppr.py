"""Personalised PageRank on an undirected graph: where a walk is found that now and then starts again.

r = d M r + (1 - d) p, M = A D⁻¹ (Haveliwala, "Topic-Sensitive PageRank", 2002). With r = D y that is (D - d A) y =
(1 - d) p, whose matrix is symmetric and positive: conjugate gradients solve it (Hestenes and Stiefel, 1952; scaled by
D: Concus, Golub and O'Leary, 1976). Their error falls by d / (1 + √(1 - d²)) a step or faster, that of plain power
iteration by d. At d = 0.85 that is 0.56: 3.6 times fewer steps, and fewer still where the graph is well connected.
"""

import numpy as np

from quipu.algo.walk import Walk
from quipu.ports.topology import Floats

TOLERANCE = 1e-8
_MAX_STEPS = 1_000
_SMALLEST = np.finfo(float).tiny  # below it a double has fewer digits, at last none to divide by


def page_rank(walk: Walk, reset: Floats, *, damping: float, tolerance: float = TOLERANCE) -> Floats:
    """Return the share of time the walk spends at each node, [n_nodes], where it starts again at `reset` [n_nodes].

    It goes on with probability `damping`, in [0, 1), by the weights of the links. The result is linear in `reset` and
    has its mass; a node without links keeps what starts there. The sum of absolute errors is at most `tolerance` times
    the mass, for a tolerance of 1e-12 or more and a damping of 0.999 or less; beyond these, what doubles and
    `_MAX_STEPS` steps give. Raises ValueError for a negative weight or a damping outside [0, 1).
    """
    _check(reset, damping)
    is_linked = walk.degrees > 0
    start = np.where(is_linked, reset, 0.0)
    linked_mass = float(start.sum())
    if not linked_mass:
        return reset.copy()
    ranks = np.maximum(_solved(walk, start / linked_mass, damping, tolerance), 0.0)
    ranks *= linked_mass / ranks.sum()
    return np.where(is_linked, ranks, reset)


def _solved(walk: Walk, start: Floats, damping: float, tolerance: float) -> Floats:
    """Return the ranks, some of which may be below 0 by less than `tolerance`, for a start of mass 1."""
    degrees, inverse = walk.degrees, _inverse(walk.degrees)
    visits = start * inverse  # y: of each node, by its degree
    residual = (walk.gather(visits) - start) * damping
    direction, spare, squared = np.zeros(len(start)), np.empty(len(start)), 1.0
    for _ in range(_MAX_STEPS):
        # The error is at most the residual / (1 - d): M neither makes nor loses mass.
        if np.abs(residual, out=spare).sum() <= tolerance * (1 - damping):
            break
        np.multiply(residual, inverse, out=spare)
        before, squared = squared, _dot(residual, spare)
        if squared < _SMALLEST:
            break
        direction *= squared / before
        direction += spare
        image = walk.gather(direction)
        image *= -damping
        image += np.multiply(degrees, direction, out=spare)
        step = squared / _dot(direction, image)
        visits += np.multiply(direction, step, out=spare)
        residual -= np.multiply(image, step, out=spare)
    return visits * degrees


def _dot(one: Floats, other: Floats) -> float:
    # Not by BLAS: its threads wait for each other longer than one takes.
    return float(np.einsum("i,i", one, other))


def _inverse(degrees: Floats) -> Floats:
    return np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0)


def _check(reset: Floats, damping: float) -> None:
    if not 0 <= damping < 1:
        raise ValueError(f"a damping of {damping} is not in [0, 1)")
    if len(reset) and reset.min() < 0:
        raise ValueError(f"a weight of {reset.min()} is negative")
