"""Smallest eigenpairs of the normalised Laplacian of one connected graph, beyond the known null vector.

The null vector u = D^(1/2) 1 is known and projected out everywhere, so no method has to find it. The method
is chosen by the graph's size and shape, never by a clock: equal graphs take equal steps.

==============  ==========================================================================================
``dense``       up to ``DENSE_LIMIT`` nodes: LAPACK on the full matrix.
``invert``      nearly a tree, or deep and nearly planar (a grid, a road map): Lanczos on a sparse factor of
                L + shift. Such graphs have tiny eigenvalues, and factors with little fill-in.
``multigrid``   deep but denser: LOBPCG with an algebraic multigrid preconditioner (needs pyamg).
``lanczos``     all others (shallow, expander-like): Lanczos on 2I - L.
``lobpcg``      what is left when Lanczos does not converge and pyamg is absent.
==============  ==========================================================================================

Lanczos starts from one vector and can miss a repeated eigenvalue. So its result is checked: a second search,
from another start and with everything found projected out, must find nothing smaller; what it finds is kept.
"""

import dataclasses as dc
import importlib.util
import inspect
import logging
import math
import warnings
from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from gyroformer.graphs.adjacency import Csr, FloatArray, degrees
from gyroformer.graphs.bfs import bfs_levels

DENSE_LIMIT = 1500
#: edges a node below which a deep graph is taken for nearly planar, and any graph for nearly a tree
PLANAR_RATIO, TREE_RATIO = 2.5, 1.05
#: a graph is deep if a search needs more than this many times log2(nodes) levels
DEEP = 4.0
#: residuals above this are said in a warning
WANTED_RESIDUAL = 1e-5

_SHIFT = 1e-3
_RESTARTS = 300
#: accuracy of the check for missed eigenvalues, relative to the spectrum looked at
_CHECK_TOLERANCE = 1e-5
_GUARD = 5  # vectors in LOBPCG beyond those wanted: the last ones converge slowly
_LOBPCG_STEPS = 400
# scipy from 1.17 on restarts Lanczos from a generator of its own; older ones take no such argument
_SEEDED = {"rng": 0} if "rng" in inspect.signature(sla.eigsh).parameters else {}

_log = logging.getLogger(__name__)


@dc.dataclass(frozen=True, slots=True)
class Eigenpairs:
    """Eigenvalues in increasing order, orthonormal vectors ``(n, q)``, and the method that found them."""

    values: FloatArray
    vectors: FloatArray
    method: str


class NotConverged(Exception):
    """An iterative method used up its steps."""


def has_multigrid() -> bool:
    """Return whether pyamg can be imported."""
    return importlib.util.find_spec("pyamg") is not None


def null_vector(adjacency: Csr) -> FloatArray:
    """Return the unit vector of eigenvalue 0 of a connected graph, D^(1/2) 1 scaled; 1 for a single node."""
    root = np.sqrt(degrees(adjacency))
    return np.asarray(root / np.linalg.norm(root))


def normalised_laplacian(adjacency: Csr) -> Csr:
    """Return I - D^(-1/2) A D^(-1/2) for a graph without isolated nodes."""
    scale = sp.diags_array(1 / np.sqrt(degrees(adjacency)))
    return (sp.eye_array(adjacency.shape[0]) - scale @ adjacency @ scale).tocsr()


def choose_method(adjacency: Csr) -> str:
    """Return the name of the method for a connected graph (see the module's table)."""
    nodes = adjacency.shape[0]
    if nodes <= DENSE_LIMIT:
        return "dense"
    ratio = adjacency.nnz / 2 / nodes
    if ratio <= TREE_RATIO:
        return "invert"
    start = np.zeros(1, np.int64)
    deep = sum(1 for _ in bfs_levels(adjacency, start, start, 1)) > DEEP * math.log2(nodes)
    if deep and ratio < PLANAR_RATIO:
        return "invert"
    return "multigrid" if deep and has_multigrid() else "lanczos"


def smallest_eigenpairs(adjacency: Csr, count: int) -> Eigenpairs:
    """Return the ``count`` smallest eigenpairs of a connected graph's Laplacian, its zero left out.

    Args:
        adjacency: of a connected simple graph with more than ``count`` nodes.
        count: at least 1.
    """
    method = choose_method(adjacency)
    if method != "dense" and count >= adjacency.shape[0] // 4:
        method = "dense"  # Krylov methods need room; such a request is for most of the matrix anyway
    laplacian, null = normalised_laplacian(adjacency), null_vector(adjacency)
    if method == "dense":
        return _dense(laplacian, count)
    try:
        if method == "multigrid":
            vectors = _lobpcg(laplacian, null, count, multigrid=True)
        else:
            vectors = _lanczos(laplacian, null, count, invert=method == "invert")
    except NotConverged as failure:
        method = "multigrid" if has_multigrid() and method != "multigrid" else "lobpcg"
        _log.debug("%s; going on with %s", failure, method)
        vectors = _lobpcg(laplacian, null, count, multigrid=method == "multigrid", strict=False)
    values, vectors = _rayleigh_ritz(laplacian, null, vectors, count)
    return Eigenpairs(values, vectors, method)


def residual_norms(adjacency: Csr, values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return |L v - w v| for each eigenpair."""
    product = normalised_laplacian(adjacency) @ vectors
    return np.asarray(np.linalg.norm(product - vectors * values, axis=0))


def _dense(laplacian: Csr, count: int) -> Eigenpairs:
    values, vectors = scipy.linalg.eigh(laplacian.toarray(), subset_by_index=[1, count])
    return Eigenpairs(values, vectors, "dense")


def _rayleigh_ritz(
    laplacian: Csr, null: FloatArray, vectors: FloatArray, count: int
) -> tuple[FloatArray, FloatArray]:
    """Return the best ``count`` eigenpairs in the span of ``vectors``, orthogonal to ``null``."""
    vectors, _ = np.linalg.qr(vectors - np.outer(null, null @ vectors))
    small = vectors.T @ (laplacian @ vectors)
    values, mix = scipy.linalg.eigh((small + small.T) / 2)
    return values[:count], vectors @ mix[:, :count]


def _lanczos(laplacian: Csr, null: FloatArray, count: int, *, invert: bool) -> FloatArray:
    """Return vectors that span the smallest ``count`` eigenvectors (perhaps with a few more)."""
    nodes = null.size
    if invert:
        shifted = (laplacian + _SHIFT * sp.eye_array(nodes)).tocsc()
        factor = sla.splu(
            shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
        apply = factor.solve
    else:
        mirrored = (2 * sp.eye_array(nodes) - laplacian).tocsr()

        def apply(x: FloatArray) -> FloatArray:
            return np.asarray(mirrored @ x)

    found = null[:, None]
    values, vectors = _largest(apply, found, count, seed=0, tolerance=1e-8)
    found = np.hstack([found, vectors])
    # each round either proves nothing is missing (to the check's accuracy) or adds one missed vector
    for seed in range(1, count + 1):
        value, _ = _largest(apply, found, 1, seed=seed, tolerance=_CHECK_TOLERANCE)
        kept = np.sort(values)[-count:]
        if value[0] <= kept[0] * (1 + _CHECK_TOLERANCE):
            break
        value, vector = _largest(apply, found, 1, seed=seed, tolerance=1e-8)
        values, found = np.append(values, value), np.hstack([found, vector])
    return found[:, 1:]


def _largest(
    apply: Callable[[FloatArray], FloatArray],
    removed: FloatArray,
    count: int,
    *,
    seed: int,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenpairs of a symmetric map on the complement of orthonormal ``removed``."""
    nodes = removed.shape[0]

    def project(x: FloatArray) -> FloatArray:
        return np.asarray(x - removed @ (removed.T @ x))

    # both maps are positive there, so what is projected out (eigenvalue 0) stays at the far end
    operator = sla.LinearOperator(
        (nodes, nodes), matvec=lambda x: project(apply(project(x.ravel()))), dtype=np.float64
    )
    start = project(np.random.default_rng(seed).standard_normal((nodes, 1)))[:, 0]
    room = min(nodes - 1, max(2 * count + 1, 4 * count if count > 4 else 32))
    try:
        values, vectors = sla.eigsh(
            operator, count, which="LA", v0=start, ncv=room, tol=tolerance, maxiter=_RESTARTS, **_SEEDED
        )
    except sla.ArpackNoConvergence as error:
        raise NotConverged(f"Lanczos did not converge in {_RESTARTS} restarts") from error
    return values, project(vectors)


def _lobpcg(
    laplacian: Csr, null: FloatArray, count: int, *, multigrid: bool, strict: bool = True
) -> FloatArray:
    """Return vectors that span the smallest eigenvectors, by a block method that sees multiplicity.

    With ``strict`` a result above ``WANTED_RESIDUAL`` counts as a failure.
    """
    start = np.random.default_rng(0).standard_normal((null.size, count + _GUARD))
    with warnings.catch_warnings():
        # it warns of guard vectors that are not converged; the residuals that matter are looked at below
        warnings.filterwarnings("ignore", category=UserWarning)
        values, vectors = sla.lobpcg(
            laplacian,
            start,
            M=_multigrid(laplacian, null) if multigrid else None,
            Y=null[:, None],
            largest=False,
            tol=1e-8,
            maxiter=_LOBPCG_STEPS,
        )
    order = np.argsort(values)[:count]
    worst = np.linalg.norm(laplacian @ vectors[:, order] - vectors[:, order] * values[order], axis=0).max()
    if strict and worst > WANTED_RESIDUAL:
        raise NotConverged(f"LOBPCG stopped at a residual of {worst:.1e} after {_LOBPCG_STEPS} steps")
    return np.asarray(vectors)


def _multigrid(laplacian: Csr, null: FloatArray) -> sla.LinearOperator:
    import pyamg

    # pyamg draws from numpy's global generator; give it a fixed one and put the caller's back
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        matrix = sp.csr_matrix(laplacian)
        return pyamg.smoothed_aggregation_solver(matrix, B=null[:, None]).aspreconditioner()
    finally:
        np.random.set_state(state)  # noqa: NPY002
