"""An encoder of sequences with the arguments and the result of ``torch.nn.TransformerEncoder``."""

from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.nn.masks import torch_layout
from gyroformer.nn.transformer import StereographicTransformer
from gyroformer.options import FromOptions, takes
from gyroformer.options.layers import ActivationName, EncoderOptions, SequenceEncoderOptions


class StereographicEncoder(FromOptions, nn.Module):
    """A stack of product-stereographic blocks, called as ``torch.nn.TransformerEncoder`` is.

    It takes the options of ``nn.TransformerEncoderLayer`` and ``num_layers``, with torch's defaults, and gives vectors
    of the width that it was given: tangent vectors at the origin, all heads side by side, which any layer can go on
    from. With all curvatures 0 and softmax attention it is torch's encoder.

    Example:
        >>> encoder = StereographicEncoder(32, 4, 2, dim_feedforward=64, batch_first=True)
        >>> encoder(torch.randn(8, 100, 32), is_causal=True).shape
        torch.Size([8, 100, 32])
    """

    @takes(SequenceEncoderOptions)
    def __init__(self, options: SequenceEncoderOptions) -> None:
        super().__init__()
        self.options = options
        self.transformer = StereographicTransformer.of(
            options.part(
                EncoderOptions,
                dim=options.d_model,
                heads=options.nhead,
                layers=options.num_layers,
                ffn_dim=options.dim_feedforward,
            )
        )
        for block in self.transformer.blocks:
            block.norm_first = options.norm_first  # type: ignore[assignment]
        for part in self.transformer.modules():
            if isinstance(part, nn.LayerNorm):
                part.eps = options.layer_norm_eps
            if isinstance(part, (nn.Linear, nn.LayerNorm)) and not options.bias:
                part.register_parameter("bias", None)

    @classmethod
    def from_torch(cls, encoder: nn.TransformerEncoder, **options: Any) -> "StereographicEncoder":
        """Return an encoder with the options and a copy of the weights of torch's; flat, unless told otherwise.

        With softmax attention and curvature 0, which are the defaults, it gives what torch's gives, and can be trained
        on from there.

        Args:
            encoder: torch's, of ordinary layers.
            options: those that differ, for instance ``curvature=-0.1``.
        """
        layer: Any = encoder.layers[0]
        if not isinstance(layer, nn.TransformerEncoderLayer):
            raise UsageError(
                f"from_torch takes layers of nn.TransformerEncoderLayer, got {type(layer).__name__}"
            )
        if encoder.norm is not None and not isinstance(encoder.norm, nn.LayerNorm):
            raise UsageError(
                f"from_torch takes nn.LayerNorm as the last norm, got {type(encoder.norm).__name__}"
            )
        found = {
            "d_model": layer.linear1.in_features,
            "nhead": layer.self_attn.num_heads,
            "num_layers": len(encoder.layers),
            "dim_feedforward": layer.linear1.out_features,
            "dropout": layer.dropout.p,
            "activation": _activation_name(layer.activation),
            "layer_norm_eps": layer.norm1.eps,
            "batch_first": layer.self_attn.batch_first,
            "norm_first": layer.norm_first,
            "bias": layer.linear1.bias is not None,
            "final_norm": encoder.norm is not None,
        }
        made = cls(**found | options).to(layer.linear1.weight)
        missing, strange = made.load_state_dict(_renamed(encoder.state_dict()), strict=False)
        if strange or any(not name.endswith("curvature") for name in missing):
            raise UsageError(f"the weights do not fit these options: {[*missing, *strange][0]!r}")
        if encoder.norm is not None:
            made.transformer.final_norm.eps = encoder.norm.eps
        return made.train(encoder.training)

    @property
    def curvatures(self) -> Float[Tensor, "layers heads"]:
        """All curvatures, ``(layers, heads)``."""
        return self.transformer.curvatures

    @property
    def output_curvature(self) -> Float[Tensor, "heads 1"]:
        """The curvatures of the space whose tangent vectors come out, ``(heads, 1)``."""
        return self.transformer.output_curvature

    def forward(
        self,
        src: Float[Tensor, "*sequences d_model"],
        mask: Shaped[Tensor, "..."] | None = None,
        src_key_padding_mask: Shaped[Tensor, "..."] | None = None,
        is_causal: bool | None = None,
    ) -> Float[Tensor, "*sequences d_model"]:
        """Return the encoded sequences, in the shape of ``src``; what is padding comes out as zero.

        Args:
            src: ``(N, B, d_model)``, with ``batch_first`` ``(B, N, d_model)``, or one sequence ``(N, d_model)``.
            mask: ``(N, N)`` or ``(B · nhead, N, N)``. True: the token of the row does not attend to that of the column;
                numbers are added to the scores. With linear attention the causal mask only.
            src_key_padding_mask: ``(B, N)``, or ``(N,)`` for one sequence. True: padding, attended to by nobody.
            is_causal: whether each token attends to itself and those before it only, with or without ``mask``. None:
                if ``mask`` is the causal one, which is then taken in a faster way.
        """
        width = self.options.d_model
        if src.dim() not in (2, 3) or src.size(-1) != width:
            order = f"(B, N, {width})" if self.options.batch_first else f"(N, B, {width})"
            raise UsageError(f"src must be {order}, or (N, {width}) for one sequence; got {tuple(src.shape)}")
        u = src.unsqueeze(0) if src.dim() == 2 else src if self.options.batch_first else src.transpose(0, 1)
        if not u.size(1):
            raise UsageError("there are no tokens: an empty sequence cannot be encoded")
        padding = src_key_padding_mask
        if padding is not None and src.dim() == 2 and padding.dim() == 1:
            padding = padding.unsqueeze(0)
        kind, heads = self.options.attention, self.options.nhead
        u = self.transformer.encode(u, torch_layout(u, mask, padding, is_causal, heads=heads, kind=kind))
        return u.squeeze(0) if src.dim() == 2 else u if self.options.batch_first else u.transpose(0, 1)


#: torch's names of a layer's weights, and ours
NAMES = {
    "self_attn.in_proj_": "attention.qkv.",
    "self_attn.out_proj.": "attention.out.",
    "linear1.": "ffn.up.",
    "linear2.": "ffn.down.",
}


def _renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of torch's encoder under our names."""
    renamed = {}
    for name, weight in weights.items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        start, _, rest = name.partition(".")
        first = {"layers": "transformer.blocks", "norm": "transformer.final_norm"}[start]
        renamed[f"{first}.{rest}"] = weight
    return renamed


def _activation_name(activation: object) -> ActivationName:
    if activation is F.relu or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is F.gelu or (isinstance(activation, nn.GELU) and activation.approximate == "none"):
        return "gelu"
    raise UsageError(f"from_torch knows the activations relu and gelu, got {activation!r}")
