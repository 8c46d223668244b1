"""Dropout that does not cost more than the layer behind it."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from gyroformer.nn.sparse_features import with_values
from gyroformer.ops.attention import Part
from gyroformer.ops.native.calls import call
from gyroformer.ops.native.fused import usable

#: random bits that decide one entry; four entries share a 64-bit draw
BITS = 16
#: entries of a block: half a megabyte of float32
BLOCK = 131_072


class TokenDropout(nn.Dropout):
    """Dropout of tokens ``(B, N, dim)``, or of a part of them: each token is dropped as if all were there."""

    def forward(self, u: Float[Tensor, "B N dim"], part: Part | None = None) -> Float[Tensor, "B N dim"]:
        """Return ``u`` after dropout."""
        if part is None or not self.training or not self.p:
            return super().forward(u)
        # every process draws for all tokens, or their draws would not be those of one process
        whole = u.new_ones(u.size(0), part.total, u.size(2))
        kept = F.dropout(whole, self.p)
        return u * torch.cat([kept[:, places] for places in part.places], dim=1)


def dropout(x: Float[Tensor, "..."], p: float, training: bool) -> Float[Tensor, "..."]:
    r"""Return :math:`x \odot m/q` with :math:`m` drawn from :math:`\{0, 1\}` with mean :math:`q \approx 1 - p`.

    On a CPU torch draws a whole random number for each entry, which for a table of words takes fifty times as long as
    the linear map behind it. Here 16 bits decide: :math:`q` is :math:`1 - p` rounded to a multiple of
    :math:`2^{-16}`, and dividing by that very number keeps the mean exact.

    Args:
        x: any shape; of sparse rows only the entries that are there are drawn for.
        p: fraction of the entries that are set to zero.
        training: whether to do anything.
    """
    if not training or p == 0 or not x.numel():
        return x
    if x.layout == torch.sparse_csr:  # zeros stay what they are
        return with_values(x, dropout(x.values(), p, training))
    if x.device.type != "cpu":
        return F.dropout(x, p)
    kept = max(round((1 - p) * 2**BITS), 1)
    if kept == 2**BITS:
        return x
    scale, below = 2**BITS / kept, kept - 2 ** (BITS - 1)
    if x.requires_grad:
        return (x * (_bits(x) < below)).mul_(scale)
    # block by block, so that all but the result stays in the cache: fresh memory costs more than arithmetic
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    in_kernel = not torch.compiler.is_compiling() and usable(x)
    for entries, dropped in zip(x.reshape(-1).split(BLOCK), result.view(-1).split(BLOCK), strict=True):
        bits = _bits(entries)
        if in_kernel:
            call("gyroformer_dropout", [entries, bits, dropped], [entries.numel()], [below], scale)
        else:
            dropped.copy_(bits < below).mul_(entries).mul_(scale)
    return result


def _bits(x: Tensor) -> Tensor:
    """Return 16 random bits for each entry, as a signed number."""
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device).random_(-(2**63), None)
    return draws.view(torch.int16)[: x.numel()].view(x.shape)
