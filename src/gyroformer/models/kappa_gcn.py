r"""κ-GCN (Bachmann, Bécigneul and Ganea, 2020): graph convolution in constant curvature of either sign."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gyroformer.models.stack import CurvedLayer, TangentStack, layer_activation
from gyroformer.nn.curvature import HeadCurvature
from gyroformer.nn.logits import StereographicLogits
from gyroformer.nn.sparse import propagate
from gyroformer.ops.lifted import lift, sine_cosine, unlift
from gyroformer.options import takes
from gyroformer.options.models import KappaGCNOptions


def left_product(matrix: Tensor, u: Tensor, k: Tensor) -> Tensor:
    r"""Return :math:`A \boxtimes_\kappa X` of points given and returned as tangent vectors at the origin.

    .. math:: (A \boxtimes_\kappa X)_i = \Bigl(\sum_j A_{ij}\Bigr) \otimes_\kappa m_\kappa(X; A_i)

    The midpoint m is the mean of the ambient points :math:`[\lambda x, \lambda - 1]`, projected back: one sparse
    product with one more column for each head.

    Args:
        matrix: weights A, sparse, ``(N, N)``, none negative.
        u: tangent vectors ``(N, heads, d)``.
        k: curvatures ``(heads, 1)``.
    """
    lifted = lift(*sine_cosine(u, k))
    total = torch.mv(matrix, u.new_ones(u.size(0))).reshape(-1, 1, 1)
    return total * unlift(propagate(matrix, lifted), k)


class HeadLinear(nn.Module):
    """A linear map for each head, ``(..., heads * d)`` to the same shape, without mixing the heads."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, width, width))
        for weight in self.weight:
            nn.init.xavier_uniform_(weight.data)

    def forward(self, u: Tensor) -> Tensor:
        """Return each head's vector times its matrix."""
        parts = u.unflatten(-1, (self.weight.size(0), -1))
        return torch.einsum("...hi,hoi->...ho", parts, self.weight).flatten(-2)


class KappaGCNLayer(CurvedLayer):
    r"""One convolution, :math:`\sigma^{\otimes_\kappa}(\hat A \boxtimes_\kappa (H \otimes_\kappa W))`.

    Args:
        linear: the right product in the tangent space at the origin.
        space: owner of the curvatures.
        activation: σ, applied in the tangent space at the origin.
    """

    def __init__(
        self, linear: nn.Module, space: HeadCurvature, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.linear = linear
        self.space = space
        self.activation = activation

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the convolved tangent vectors ``(N, dim)``; ``matrix`` is the normalised adjacency."""
        k = self.space()
        parts = self.linear(u).unflatten(-1, (k.size(0), -1))
        return self.activation(left_product(matrix, parts, k).flatten(-2))


class KappaGCN(TangentStack):
    r"""Graph convolution on a product of spaces whose curvatures are learned, with sign, from zero.

    .. math:: H^{(\ell)} = \sigma^{\otimes_\kappa}\bigl(\hat A \boxtimes_\kappa
              (H^{(\ell-1)} \otimes_\kappa W^{(\ell)})\bigr), \qquad
              \mathrm{scores} = \hat A\,\mathrm{MLR}_\kappa(H^{(L)}), \qquad
              \hat A = \tilde D^{-1/2}(A + I)\tilde D^{-1/2}

    with :math:`X \otimes W = \exp_0(\log_0(X) W)` and the left product of :func:`left_product`. ``layers`` counts
    the hidden layers; the scores are one more propagation, so ``layers=1`` is the paper's network of two layers.
    Each head (a component of the product) has its own W and κ; the logits are those of the product. At κ = 0 the
    model is a GCN.

    Published code departs: there is none by the authors that we know of; a later library's version forms a dense
    matrix and its inverse, keeps the curvature fixed and needs square weights. Its midpoint, like the paper's,
    chooses the nearer of two antipodes for κ > 0; the mean of ambient points needs no choice and is smooth.

    Ours: in a product the scores of its components are added, which the paper leaves open; without classes the last
    layer has no σ, which would confine the points to one orthant.
    """

    name = "kappa-gcn"

    @takes(KappaGCNOptions)
    def __init__(self, options: KappaGCNOptions) -> None:
        super().__init__(options)
        dim, heads = options.dim, options.heads
        self.layers = nn.ModuleList(
            KappaGCNLayer(
                HeadLinear(heads, dim // heads) if index else nn.Identity(),
                HeadCurvature(heads, initial=options.curvature, learn=options.learn_curvature),
                layer_activation(options, index),
            )
            for index in range(options.layers)
        )
        self.logits = StereographicLogits.of_model(dim, heads, options.classes)

    def readout(self, u: Tensor, matrix: Tensor) -> Tensor:
        r"""Return :math:`\hat A` times the product logits."""
        assert self.logits is not None
        u = self.dropped(u).unflatten(-1, (self.heads, -1))
        return matrix @ self.logits.tangent(u, self.output_curvature)
