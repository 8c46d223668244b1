r"""Pure functions of the stereographic model of constant curvature, exact for every k.

Sign: k < 0 hyperbolic (the ball of radius :math:`1/\sqrt{-\kappa}`), k = 0 flat, k > 0 spherical. Names,
arguments and broadcasting are those of ``geoopt.manifolds.stereographic.math``; a curvature may also be a
plain number. For a product of H spaces give points ``(..., H, d)`` and ``k (H, 1)``. The functions raise
nothing about values: outside the ball they return what the last shell inside gives, NaN stays NaN. The
classes :class:`Stereographic` and :class:`ProductSpace` check their input and say what is wrong with it.

The hyperboloid and the pseudo-hyperboloid are the modules :mod:`gyroformer.geometry.hyperboloid` and
:mod:`gyroformer.geometry.pseudo_hyperboloid`.
"""

from gyroformer.geometry.charts import antipode, inv_sproj, project, sproj
from gyroformer.geometry.distances import dist2plane, pairwise_dist
from gyroformer.geometry.gyro import (
    gyration,
    lambda_x,
    mobius_add,
    mobius_coadd,
    mobius_cosub,
    mobius_fn_apply,
    mobius_fn_apply_chain,
    mobius_matvec,
    mobius_pointwise_mul,
    mobius_scalar_mul,
    mobius_sub,
    mobiusify,
)
from gyroformer.geometry.maps import (
    dist,
    dist0,
    egrad2rgrad,
    expmap,
    geodesic,
    geodesic_unit,
    inner,
    logmap,
    norm,
    parallel_transport,
    parallel_transport0,
    parallel_transport0back,
)
from gyroformer.geometry.midpoint import weighted_midpoint
from gyroformer.geometry.origin import expmap0, logmap0
from gyroformer.geometry.space import ProductSpace, Stereographic
from gyroformer.geometry.trig import arsin_k, artan_k, sin_k, tan_k

__all__ = [
    "ProductSpace",
    "Stereographic",
    "antipode",
    "arsin_k",
    "artan_k",
    "dist",
    "dist0",
    "dist2plane",
    "egrad2rgrad",
    "expmap",
    "expmap0",
    "geodesic",
    "geodesic_unit",
    "gyration",
    "inner",
    "inv_sproj",
    "lambda_x",
    "logmap",
    "logmap0",
    "mobius_add",
    "mobius_coadd",
    "mobius_cosub",
    "mobius_fn_apply",
    "mobius_fn_apply_chain",
    "mobius_matvec",
    "mobius_pointwise_mul",
    "mobius_scalar_mul",
    "mobius_sub",
    "mobiusify",
    "norm",
    "pairwise_dist",
    "parallel_transport",
    "parallel_transport0",
    "parallel_transport0back",
    "project",
    "sin_k",
    "sproj",
    "tan_k",
    "weighted_midpoint",
]
