"""Masks with torch's meaning, True or -inf for what is *not* attended to, as the layout that attention takes."""

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.ops.attention import ONE_SEQUENCE, TokenLayout

MEANING = "as in torch.nn, True (or -inf) means: not attended to"


def torch_layout(
    sequences: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool | None,
    *,
    heads: int,
    kind: str,
) -> TokenLayout:
    """Return who attends to whom.

    Args:
        sequences: ``(B, N, dim)``.
        mask: ``(N, N)`` or ``(B · heads, N, N)``: True, or a number that is added to the score.
        padding: ``(B, N)``: True, or a number that is added to the scores of the key.
        is_causal: whether ``mask``, or its absence, means the causal mask; None to find out.
        heads: number of heads.
        kind: the kind of attention; all but softmax know padding and the causal mask only.
    """
    batch, tokens, _ = sequences.shape
    _check(mask, "mask", [(tokens, tokens), (batch * heads, tokens, tokens)])
    _check(padding, "src_key_padding_mask", [(batch, tokens)])
    checked = not torch.compiler.is_compiling()  # values are not known to a compiler
    if checked:
        _check_sense(mask, padding)
    causal = _is_causal(mask, is_causal, tokens, checked=checked)
    if mask is None and padding is None and not causal:
        return ONE_SEQUENCE
    keep = None if padding is None else _kept(padding)
    if kind != "softmax":
        if mask is not None and not causal:
            raise UsageError(
                f"attention={kind!r} knows the causal mask (is_causal=True) and src_key_padding_mask only; another "
                "mask needs attention='softmax'"
            )
        if (
            checked
            and padding is not None
            and padding.is_floating_point()
            and bool((padding[keep] != 0).any())
        ):
            raise UsageError(
                f"attention={kind!r} needs a boolean src_key_padding_mask, or one of 0 and -inf alone"
            )
        return TokenLayout(keep, causal=causal, alone=_alone_before(keep) if causal else None)
    if padding is None and causal:
        return TokenLayout(
            causal=True
        )  # the fused kernels need no matrix of pairs for it, nor for padding alone
    if mask is None and not causal and padding is not None and padding.dtype == torch.bool:
        return TokenLayout(keep, alone=padding.all(-1)[:, None, None].expand(-1, 1, tokens))
    return _softmax_layout(sequences, mask, padding, keep, causal=causal, heads=heads)


def _softmax_layout(
    sequences: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    keep: Tensor | None,
    *,
    causal: bool,
    heads: int,
) -> TokenLayout:
    batch, tokens, _ = sequences.shape
    allowed = torch.ones(1, 1, tokens, tokens, dtype=torch.bool, device=sequences.device)
    added = None
    if causal:
        allowed = allowed.tril()
    elif mask is not None:
        shaped = mask[None, None] if mask.dim() == 2 else mask.unflatten(0, (batch, heads))
        allowed, added = _kept(shaped), shaped if mask.is_floating_point() else None
    if padding is not None and keep is not None:
        allowed = allowed & keep[:, None, None, :]
        if padding.is_floating_point():
            rows = padding[:, None, None, :]
            added = rows if added is None else added + rows
    alone = ~allowed.any(-1)
    # a token with nobody to attend to gets the origin in the end; until then it attends to all instead of NaN
    allowed = allowed | alone.unsqueeze(-1)
    pairs = (
        allowed
        if added is None
        else torch.where(allowed, added.masked_fill(added == -torch.inf, 0.0), -torch.inf)
    )
    return TokenLayout(keep, causal=causal, pairs=pairs, alone=alone)


def _kept(mask: Tensor) -> Tensor:
    """Return where a mask lets attend."""
    return ~mask if mask.dtype == torch.bool else mask != -torch.inf


def _alone_before(keep: Tensor | None) -> Tensor | None:
    """Return the tokens before the first real one ``(B, 1, N)``: in causal attention nobody is left to them."""
    return None if keep is None else (keep.cumsum(-1) == 0).unsqueeze(1)


def _check(mask: Tensor | None, name: str, shapes: list[tuple[int, ...]]) -> None:
    if mask is None:
        return
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise UsageError(f"{name} must be boolean or of floating point numbers, got {mask.dtype}; {MEANING}")
    if tuple(mask.shape) not in shapes:
        wanted = " or ".join(str(shape) for shape in dict.fromkeys(shapes))
        raise UsageError(f"{name} must have the shape {wanted}; got {tuple(mask.shape)}")


def _check_sense(mask: Tensor | None, padding: Tensor | None) -> None:
    """Raise where a mask can only be meant the other way round."""
    if mask is not None and bool((~_kept(mask)).all(-1).any()):
        row = int((~_kept(mask)).all(-1).reshape(-1, mask.size(-1)).any(0).nonzero()[0])
        raise UsageError(
            f"mask leaves token {row} nobody to attend to: {MEANING}; if yours means the opposite, pass ~mask"
        )
    if padding is None:
        return
    padded = ~_kept(padding)
    # the longest sequence of a batch has no padding, or all have some: then their first or last tokens are real
    if bool(padded.all(1).any() & padded[:, 0].all()):
        raise UsageError(
            "src_key_padding_mask calls the first token of every sequence padding, and all of one: "
            f"{MEANING}; if yours means the opposite, pass ~src_key_padding_mask"
        )


def _is_causal(mask: Tensor | None, is_causal: bool | None, tokens: int, *, checked: bool) -> bool:
    """Return whether attention is causal; raise if it is said to be and the mask is another."""
    if mask is None:
        return bool(is_causal)
    if is_causal is False or (not checked and is_causal is None):
        return False
    if not checked:
        return True
    later = torch.ones(tokens, tokens, dtype=torch.bool, device=mask.device).triu(1)
    found = torch.equal(~_kept(mask), later.expand_as(mask))
    if found and mask.is_floating_point():
        found = bool((mask.masked_fill(later, 0.0) == 0).all())
    if is_causal and not found:
        raise UsageError("is_causal=True, but mask is not the causal one: leave one of the two out")
    return found
