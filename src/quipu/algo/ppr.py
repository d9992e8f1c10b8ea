"""Personalised PageRank on an undirected graph: where a walk is found that now and then starts again.

r = d M r + (1 - d) p, M = A D⁻¹ (Haveliwala, "Topic-Sensitive PageRank", 2002). M is similar to a symmetric matrix:
its eigenvalues are real and in [-1, 1], and Chebyshev's semi-iteration applies (Golub and Varga, 1961). Its error falls
by d / (1 + √(1 - d²)) a step, that of plain power iteration by d. At d = 0.85 that is 0.56: 3.6 times fewer steps.
"""

import numpy as np

from quipu.algo.walk import Walk
from quipu.ports.topology import Floats

TOLERANCE = 1e-8
_MAX_STEPS = 1_000


def page_rank(walk: Walk, reset: Floats, *, damping: float, tolerance: float = TOLERANCE) -> Floats:
    """Return the share of time the walk spends at each node, [n_nodes], where it starts again at `reset` [n_nodes].

    It goes on with probability `damping`, in [0, 1), by the weights of the links. The result is linear in `reset` and
    has its mass; a node without links keeps what starts there. The sum of absolute errors is at most `tolerance` times
    the mass. Raises ValueError for a negative weight or a damping outside [0, 1).
    """
    _check(reset, damping)
    mass = float(reset.sum())
    is_linked = walk.degrees > 0
    start = np.where(is_linked, reset, 0.0)
    linked_mass = float(start.sum())
    if not linked_mass:
        return reset.copy()
    ranks = np.maximum(_solved(walk, start, damping, tolerance * mass), 0.0)
    ranks *= linked_mass / ranks.sum()
    return np.where(is_linked, ranks, reset)


def _solved(walk: Walk, start: Floats, damping: float, tolerance: float) -> Floats:
    inverse = _inverse(walk.degrees) * damping
    restart = (1 - damping) * start
    before, ranks = start, walk.gather(start * inverse) + restart
    factor = 2.0
    for _ in range(_MAX_STEPS):
        stepped = walk.gather(ranks * inverse) + restart
        # The error is at most the residual / (1 - d): M neither makes nor loses mass.
        if np.abs(stepped - ranks).sum() <= tolerance * (1 - damping):
            break
        factor = 1 / (1 - damping**2 * factor / 4)
        before, ranks = ranks, before + factor * (stepped - before)
    return stepped


def _inverse(degrees: Floats) -> Floats:
    return np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0)


def _check(reset: Floats, damping: float) -> None:
    if not 0 <= damping < 1:
        raise ValueError(f"a damping of {damping} is not in [0, 1)")
    if len(reset) and reset.min() < 0:
        raise ValueError(f"a weight of {reset.min()} is negative")
