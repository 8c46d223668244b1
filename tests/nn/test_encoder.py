"""The encoder of sequences: torch's own at k = 0, its masks, causal attention of both kinds, and wrong-way masks."""

import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.nn import StereographicEncoder
from gyroformer.ops.attention import attend_reference, causal_linear_attention, causal_piece
from gyroformer.ops.native.fused import torch_forms

BATCH, TOKENS, WIDTH, HEADS = 3, 7, 16, 4
LENGTHS = torch.tensor([7, 4, 1])
PADDING = torch.arange(TOKENS) >= LENGTHS[:, None]
CAUSAL = torch.nn.Transformer.generate_square_subsequent_mask(TOKENS)


def torch_encoder(*, dtype=torch.float32, final=False, **options):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, 32, **{"batch_first": True, "norm_first": True, "dropout": 0.0, **options}
    )
    norm = torch.nn.LayerNorm(WIDTH) if final else None
    encoder = torch.nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
    for p in encoder.parameters():  # the layers are copies of each other, and norms begin as the identity
        torch.nn.init.normal_(p, std=0.2)
    return encoder.to(dtype)


def curved(*, dtype=torch.float32, **options):
    torch.manual_seed(0)
    settings = {"dropout": 0.0, "batch_first": True, "curvature": [-0.7, 0.0, 0.4, -0.1], **options}
    return StereographicEncoder(WIDTH, HEADS, 2, dim_feedforward=32, **settings).to(dtype)


def sequences(dtype=torch.float32, tokens=TOKENS):
    return torch.randn(BATCH, tokens, WIDTH, generator=torch.Generator().manual_seed(1), dtype=dtype)


def random_mask(*shape):
    """Return a mask of booleans that leaves every token itself."""
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(2)) < 0.5
    return mask & ~torch.eye(shape[-1], dtype=torch.bool)


def random_scores(*shape):
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(3))
    return scores.masked_fill(random_mask(*shape), -torch.inf)


MASKS = {
    "no mask": {},
    "padding": {"src_key_padding_mask": PADDING},
    "padding by numbers": {
        "src_key_padding_mask": torch.zeros(PADDING.shape).masked_fill(PADDING, -torch.inf)
    },
    "causal": {"mask": CAUSAL},
    "causal, told": {"mask": CAUSAL, "is_causal": True},
    "causal, booleans": {"mask": -torch.inf == CAUSAL},
    "causal and padding": {"mask": -torch.inf == CAUSAL, "src_key_padding_mask": PADDING},
    "booleans": {"mask": random_mask(TOKENS, TOKENS)},
    "numbers": {"mask": random_scores(TOKENS, TOKENS)},
    "one for each head": {"mask": random_mask(BATCH * HEADS, TOKENS, TOKENS)},
    "numbers for each head": {"mask": random_scores(BATCH * HEADS, TOKENS, TOKENS)},
    "numbers and padding": {
        "mask": random_scores(TOKENS, TOKENS).masked_fill(torch.eye(TOKENS) == 1, 0.0).clamp(min=-9),
        "src_key_padding_mask": torch.zeros(PADDING.shape).masked_fill(PADDING, -torch.inf),
    },
}


def of_torch(words, dtype):
    """Return masks in the dtype of the tokens, which torch insists on."""
    change = lambda m: m.to(dtype) if isinstance(m, torch.Tensor) and m.is_floating_point() else m  # noqa: E731
    return {name: change(mask) for name, mask in words.items()}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_torchs_encoder_at_curvature_0(name, dtype):
    theirs = torch_encoder(dtype=dtype)
    ours = StereographicEncoder.from_torch(theirs)
    src = sequences(dtype).requires_grad_()
    real = (~PADDING if "padding" in name else torch.ones_like(PADDING)).unsqueeze(-1)
    results = [f(src, **of_torch(MASKS[name], dtype)).where(real, 0.0) for f in (ours, theirs)]
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-11}
    torch.testing.assert_close(results[0], results[1], **tolerance)
    grads = [torch.autograd.grad(y.square().sum(), src)[0] for y in results]
    torch.testing.assert_close(grads[0], grads[1], rtol=10 * tolerance["rtol"], atol=100 * tolerance["atol"])


@pytest.mark.parametrize(
    "options",
    [
        {"norm_first": False},
        {"activation": "gelu", "bias": False, "layer_norm_eps": 1e-2},
        {"final": True, "batch_first": False},
    ],
    ids=str,
)
def test_every_option_of_torchs_is_torchs(options):
    theirs = torch_encoder(dtype=torch.float64, **options).eval()
    ours = StereographicEncoder.from_torch(theirs)
    assert not ours.training
    src = sequences(torch.float64)
    src = src if options.get("batch_first", True) else src.transpose(0, 1).contiguous()
    torch.testing.assert_close(ours(src), theirs(src), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(ours(src[:, 0]), theirs(src[:, 0]), rtol=1e-11, atol=1e-11)


def test_the_defaults_are_torchs():
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS)
    made = StereographicEncoder(WIDTH, HEADS, 2).options
    again = StereographicEncoder.from_torch(
        torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    ).options
    assert made == again


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_causal_attention_does_not_look_ahead(kind):
    encoder, src = curved(attention=kind, dtype=torch.float64), sequences(torch.float64, 150)
    whole = encoder(src, is_causal=True)
    for length in (1, 64, 65, 149):
        torch.testing.assert_close(
            encoder(src[:, :length], is_causal=True), whole[:, :length], rtol=1e-10, atol=1e-10
        )
    torch.testing.assert_close(encoder(src, torch.ones(150, 150).triu(1) == 1), whole)
    later = src.clone()
    later[:, 100:] *= 1e3
    torch.testing.assert_close(
        encoder(later, is_causal=True)[:, :100], whole[:, :100], rtol=1e-10, atol=1e-10
    )
    assert not torch.allclose(encoder(src)[:, 0], whole[:, 0])


@pytest.mark.parametrize("tokens", [1, 64, 65, 130])
def test_causal_linear_attention_is_its_matrix(tokens):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, tokens, 5, dtype=torch.float64, requires_grad=True) for _ in range(3))
    keep = torch.rand(2, tokens) < 0.8
    keep[:, 0] = True
    counted = torch.cat((v, torch.ones_like(v[..., :1])), -1)
    got = causal_linear_attention(q, k, counted, keep)
    got = got[..., :-1] / got[..., -1:]
    rows = [
        attend_reference(
            q[:, :, : n + 1], k[:, :, : n + 1], v[:, :, : n + 1], kind="linear", mask=keep[:, : n + 1]
        )
        for n in range(tokens)
    ]
    want = torch.stack([row[:, :, -1] for row in rows], 2)
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(
        *(torch.autograd.grad(y.square().sum(), (q, k, v)) for y in (got, want)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_causal_linear_attention_keeps_no_matrix_for_each_token():
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    tokens, width = 4096, 64
    q = torch.randn(1, 1, tokens, width, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        causal_linear_attention(q, q, q)
    assert max(kept) <= tokens * max(width, causal_piece(width))
    assert tokens * width * width > 10 * max(kept)  # what one for each token would take


@pytest.mark.parametrize("kind", ["softmax", "linear"])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_leaves_no_trace(kind, causal):
    encoder, src = curved(attention=kind, dtype=torch.float64), sequences(torch.float64)
    noisy = torch.where(PADDING.unsqueeze(-1), 50.0, src)
    out = encoder(noisy, src_key_padding_mask=PADDING, is_causal=causal)
    for row, length in enumerate(LENGTHS):
        alone = encoder(src[row : row + 1, :length], is_causal=causal)
        torch.testing.assert_close(out[row : row + 1, :length], alone)
        assert (out[row, length:] == 0).all()


@pytest.mark.parametrize("kind", ["softmax", "linear"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_sequences_of_padding_alone_are_zero_with_finite_gradients(kind, causal, side):
    encoder, src = curved(attention=kind), sequences().requires_grad_()
    padding = PADDING.clone()
    padding[2] = True
    padding = padding.flip(1) if side == "left" else padding
    out = encoder(src, src_key_padding_mask=padding, is_causal=causal)
    out.square().sum().backward()
    assert (out[2] == 0).all()
    assert torch.isfinite(out).all()
    assert (src.grad[2] == 0).all()
    assert src.grad[0].abs().sum() > 0
    assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_compiled_it_is_the_same(kind):
    torch._dynamo.reset()
    torch.manual_seed(0)
    encoder = StereographicEncoder(
        WIDTH, HEADS, 1, dim_feedforward=32, batch_first=True, dropout=0.0, attention=kind
    )
    src, compiled = sequences(), torch.compile(encoder, fullgraph=True, backend="aot_eager")
    masks = [{"is_causal": True, "src_key_padding_mask": PADDING}]
    masks += [{"mask": MASKS["numbers"]["mask"]}] if kind == "softmax" else []
    for words in masks:
        torch.testing.assert_close(compiled(src, **words), encoder(src, **words), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_autocast_and_half_precision(kind):
    encoder, src = curved(attention=kind), sequences()
    words = [{"is_causal": True, "src_key_padding_mask": PADDING}]
    words += [{"mask": MASKS["numbers"]["mask"]}] if kind == "softmax" else []
    for mask in words:
        want = encoder(src, **mask)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got = encoder(src, **mask)
            got.float().square().sum().backward()
        assert (got - want).norm() / want.norm() < 0.05
        assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())
    assert torch.isfinite(encoder.bfloat16()(src.bfloat16(), **words[0])).all()


def test_kernels_and_torch_forms_agree():
    encoder, src = curved(attention="linear"), sequences()
    got = encoder(src, src_key_padding_mask=PADDING)
    with torch_forms():
        torch.testing.assert_close(got, encoder(src, src_key_padding_mask=PADDING), rtol=1e-4, atol=1e-5)


def test_curvatures_are_trained_and_shown():
    encoder = curved(attention="linear")
    assert encoder.curvatures.shape == (2, HEADS)
    assert encoder.output_curvature.shape == (HEADS, 1)
    encoder(sequences(), is_causal=True).square().sum().backward()
    for name, p in encoder.named_parameters():
        assert p.grad.abs().sum() > 0, name
    bent = StereographicEncoder.from_torch(torch_encoder(), curvature=-0.5)
    assert bent.curvatures.tolist() == [[-0.5] * HEADS] * 2


@pytest.mark.parametrize(
    "words, message",
    [
        # SDPA's and most people's own meaning: True for what is attended to
        ({"mask": torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()}, "token 6 nobody.*pass ~mask"),
        ({"mask": torch.ones(TOKENS, TOKENS, dtype=torch.bool)}, "nobody to attend to"),
        ({"mask": torch.full((TOKENS, TOKENS), -torch.inf)}, "nobody to attend to"),
        ({"src_key_padding_mask": ~PADDING}, "pass ~src_key_padding_mask"),
        ({"src_key_padding_mask": torch.ones_like(PADDING)}, "pass ~src_key_padding_mask"),
        ({"mask": CAUSAL.long()}, "boolean or of floating point"),
        ({"mask": CAUSAL[:3]}, r"\(7, 7\) or \(12, 7, 7\); got \(3, 7\)"),
        ({"src_key_padding_mask": PADDING.T}, r"\(3, 7\); got \(7, 3\)"),
        ({"mask": random_mask(TOKENS, TOKENS), "is_causal": True}, "not the causal one"),
        ({"mask": random_mask(TOKENS, TOKENS), "kind": "linear"}, "attention='linear' knows the causal mask"),
        ({"src_key_padding_mask": PADDING * -1.0, "kind": "linear"}, "0 and -inf alone"),
    ],
)
def test_wrong_masks_are_named(words, message):
    kind = words.pop("kind", "softmax")
    with pytest.raises(UsageError, match=message):
        curved(attention=kind)(sequences(), **words)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: StereographicEncoder(10, 4, 1), "d_model must be a multiple of nhead"),
        (lambda: curved()(torch.zeros(2, 3, 5)), r"src must be \(B, N, 16\)"),
        (lambda: curved(batch_first=False)(torch.zeros(2, 3, 5)), r"src must be \(N, B, 16\)"),
        (lambda: curved()(torch.zeros(2, 0, 16)), "no tokens"),
        (
            lambda: StereographicEncoder.from_torch(torch_encoder(activation=torch.tanh)),
            "activations relu and gelu",
        ),
    ],
)
def test_wrong_use_is_named(build, message):
    with pytest.raises(UsageError, match=message):
        build()
