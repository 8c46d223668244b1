"""Layers on points: their definitions, their flat twins at k = 0, and their derivative in k there."""

import copy

import pytest
import torch

from gyroformer import geometry as g
from gyroformer import nn
from gyroformer.errors import UsageError
from gyroformer.nn.tangent import ACTIVATIONS
from gyroformer.nn.transformer import FlatBlock, FlatTransformer
from gyroformer.testing import random_points

KINDS = ("softmax", "linear")


def points(k, *shape, seed=1):
    return random_points(*shape, k=k, generator=torch.Generator().manual_seed(seed), share=0.8)


def layers(**options):
    return {
        "linear": nn.StereographicLinear(6, 4, heads=2, **options),
        "activation": nn.StereographicActivation("tanh", heads=2, **options),
        "norm": nn.StereographicLayerNorm(6, heads=2, **options),
        "softmax attention": nn.StereographicAttention(6, 2, kind="softmax", **options),
        "linear attention": nn.StereographicAttention(6, 2, kind="linear", **options),
        "block": nn.StereographicBlock(6, 2, **options),
        "logits": nn.StereographicLogits(6, 2, 4, **options),
    }


def flat_result(name, layer, x):
    """The same layer written in flat space."""
    u = x.flatten(-2)
    if name == "logits":
        return 4 * torch.einsum("bnhd,chd->bnc", x, layer.normal) - 4 * (layer.offset * layer.normal).sum(
            (1, 2)
        )
    if "attention" in name:
        q, k, v = layer.qkv(u).unflatten(-1, (3, 2, 3)).permute(2, 0, 3, 1, 4)
        if layer.kind == "softmax":
            weight = torch.softmax(q @ k.mT / 3**0.5, -1)
        else:
            weight = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).mT
            weight = weight / weight.sum(-1, keepdim=True)
        return layer.out((weight @ v).transpose(1, 2).flatten(-2)).unflatten(-1, (2, -1))
    if name == "block":
        twin = FlatBlock(6, 2).double()
        twin.load_state_dict(layer.state_dict(), strict=False)
        return twin.tangent(u).unflatten(-1, (2, -1))
    return layer.tangent(u).unflatten(-1, (2, -1))


@pytest.mark.parametrize("name", layers())
def test_flat_twin_in_value_and_gradient(name):
    torch.manual_seed(0)
    layer = layers()[name].double()
    if name == "logits":
        torch.nn.init.normal_(layer.offset)
    x = points(0.0, 2, 5, 2, 3).requires_grad_()
    got, want = layer(x), flat_result(name, layer, x)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    grads = [torch.autograd.grad(y.square().sum(), x)[0] for y in (got, want)]
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", layers())
def test_derivative_in_k_at_zero_is_the_slope_of_the_value(name):
    torch.manual_seed(0)
    layer = layers()[name].double()
    x = points(0.0, 2, 5, 2, 3)

    def loss(k):
        state = {"space.curvature" if name != "block" else "attention.space.curvature": k}
        out = torch.func.functional_call(layer, state, (x,))
        return (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum()

    zero = torch.zeros(2, dtype=torch.float64)
    slope = torch.func.grad(loss)(zero)
    for h in range(2):
        step = torch.zeros_like(zero)
        step[h] = 1e-5
        assert slope[h].item() == pytest.approx(
            ((loss(step) - loss(-step)) / 2e-5).item(), rel=1e-5, abs=1e-8
        )
    for tiny in (1e-8, -1e-8):
        torch.testing.assert_close(torch.func.grad(loss)(zero + tiny), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("k", [-1.4, -0.2, 0.3, 0.9])
def test_layers_are_exp_of_f_of_log(k):
    torch.manual_seed(0)
    x = points(k, 2, 5, 2, 3)
    curvature = torch.tensor(k, dtype=torch.float64)
    for name, layer in layers(curvature=k).items():
        if name in ("linear", "activation", "norm"):
            layer = layer.double()
            layer.space.curvature.data.fill_(k)
            want = g.mobius_fn_apply(
                lambda u, f=layer: f.tangent(u.flatten(-2)).unflatten(-1, (2, -1)), x, k=curvature
            )
            torch.testing.assert_close(layer(x), want)


@pytest.mark.parametrize("k", [-1.4, -1e-8, 0.0, 0.6])
@pytest.mark.parametrize("kind", KINDS)
def test_attention_layer_is_the_functional_form(kind, k):
    torch.manual_seed(0)
    layer = nn.StereographicAttention(6, 2, kind=kind).double()
    layer.space.curvature.data.fill_(k)
    x = points(k, 2, 5, 2, 3)
    curvature = layer.space()
    u = g.logmap0(x, k=curvature).flatten(-2)
    q, key, v = layer.qkv(u).unflatten(-1, (3, 2, 3)).permute(2, 0, 3, 1, 4)
    value = g.expmap0(v, k=curvature.unsqueeze(-1))
    mean = nn.functional.stereographic_attention(
        q, key, value, k=curvature.unsqueeze(-1), kind=kind
    ).transpose(1, 2)
    out = layer.out(g.logmap0(mean, k=curvature).flatten(-2)).unflatten(-1, (2, -1))
    torch.testing.assert_close(layer(x), g.expmap0(out, k=curvature), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [-1.4, -1e-8, 0.0, 0.6])
def test_block_adds_with_the_mobius_sum(k):
    torch.manual_seed(0)
    block = nn.StereographicBlock(6, 2).double()
    block.attention.space.curvature.data.fill_(k)
    x = points(k, 2, 5, 2, 3)
    curvature = block.attention.space()
    split = lambda u: u.unflatten(-1, (2, -1))  # noqa: E731
    u = g.logmap0(x, k=curvature).flatten(-2)
    step = g.expmap0(split(block.attention.tangent(block.norm1(u))), k=curvature)
    x = g.mobius_add(step, x, k=curvature)
    u = g.logmap0(x, k=curvature).flatten(-2)
    x = g.mobius_add(g.expmap0(split(block.ffn(block.norm2(u))), k=curvature), x, k=curvature)
    torch.testing.assert_close(block(points(k, 2, 5, 2, 3)), x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [-1.4, -1e-8, 0.0, 0.6])
def test_logits_are_weighted_signed_distances(k):
    torch.manual_seed(0)
    layer = nn.StereographicLogits(6, 2, 4).double()
    layer.space.curvature.data.fill_(k)
    torch.nn.init.normal_(layer.offset, std=0.3)
    curvature = layer.space()
    x, p = points(k, 5, 1, 2, 3), g.expmap0(layer.offset, k=curvature)
    distance = g.dist2plane(x, p, layer.normal, k=curvature, signed=True, scaled=True)
    want = (g.lambda_x(p, k=curvature) * distance).sum(-1)
    torch.testing.assert_close(layer(x.squeeze(1)), want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"norm": False, "final_norm": True, "ffn_dim": 13, "activation": "gelu"}]
)
def test_the_whole_model_equals_its_flat_twin(kind, options):
    torch.manual_seed(0)
    curved = nn.StereographicTransformer(8, 2, 3, attention=kind, **options).double()
    flat = FlatTransformer(8, 2, 3, attention=kind, **options).double()
    extra = flat.load_state_dict(curved.state_dict(), strict=False)
    assert not extra.missing_keys
    assert all(name.endswith("curvature") for name in extra.unexpected_keys)
    tokens = torch.randn(2, 9, 8, dtype=torch.float64)
    mask = torch.arange(9).expand(2, 9) < torch.tensor([[9], [6]])
    got, want = curved(tokens, mask), flat(tokens, mask)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(
        torch.autograd.grad(got.square().sum(), list(curved.blocks[0].ffn.parameters())),
        torch.autograd.grad(want.square().sum(), list(flat.blocks[0].ffn.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_leaves_no_trace_in_the_model(kind):
    torch.manual_seed(0)
    model = nn.StereographicTransformer(8, 2, 2, attention=kind, curvature=[-0.7, 0.4]).double()
    tokens = torch.randn(1, 6, 8, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, True, False, False]])
    noisy = tokens.clone()
    noisy[:, 4:] = 50.0
    torch.testing.assert_close(model(noisy, mask)[:, :4], model(tokens[:, :4]))
    assert (model(noisy, mask)[:, 4:] == 0).all()


def test_ragged_rows_equal_each_sequence_alone():
    torch.manual_seed(0)
    model = nn.StereographicTransformer(8, 2, 2, curvature=[-0.7, 0.4]).double()
    parts = [torch.randn(n, 8, dtype=torch.float64) for n in (3, 1, 5)]
    segment = torch.repeat_interleave(torch.arange(3), torch.tensor([3, 1, 5]))
    together = model(torch.cat(parts), segment=segment, count=3)
    torch.testing.assert_close(together, torch.cat([model(part) for part in parts]))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    torch.manual_seed(0)
    model = nn.StereographicTransformer(4, 2, 1, activation=activation)
    assert torch.isfinite(model(torch.randn(5, 4))).all()


@pytest.mark.parametrize("dropout_kind", ["tangent", "weight"])
def test_dropout_acts_in_training_only(dropout_kind):
    torch.manual_seed(0)
    model = nn.StereographicTransformer(8, 2, 1, dropout=0.5, dropout_kind=dropout_kind)
    tokens = torch.randn(5, 8)
    assert not torch.equal(model(tokens), model(tokens))
    model.eval()
    assert torch.equal(model(tokens), model(tokens))


def test_curvature_options():
    model = nn.StereographicTransformer(8, 2, 3, curvature=[[-1, 1], [0, 0], [0.5, 0.25]])
    assert model.curvatures.tolist() == [[-1, 1], [0, 0], [0.5, 0.25]]
    assert [n for n, _ in model.named_parameters() if n.endswith("curvature")] == [
        f"blocks.{i}.attention.space.curvature" for i in range(3)
    ]
    shared = nn.StereographicTransformer(8, 4, 1, curvature=-0.5, share_curvature=True)
    assert shared.blocks[0].attention.space.curvature.shape == (1,)
    assert shared.curvatures.tolist() == [[-0.5] * 4]
    frozen = nn.StereographicTransformer(8, 2, 1, learn_curvature=False)
    frozen(torch.randn(3, 8)).sum().backward()
    assert frozen.blocks[0].attention.space.curvature.grad is None


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: nn.StereographicTransformer(10, 4, 1), "multiple of heads, got dim=10 and heads=4"),
        (lambda: nn.StereographicTransformer(8, 2, 0), "layers must be a whole number of at least 1"),
        (lambda: nn.StereographicTransformer(8, 2, 1, attention="soft"), "attention must be one of"),
        (lambda: nn.StereographicTransformer(8, 2, 1, activation="rellu"), "did you mean 'relu'"),
        (lambda: nn.StereographicTransformer(8, 2, 1, curvature=[1, 2, 3]), "2 numbers or 1 lists of 2"),
        (lambda: nn.StereographicTransformer(8, 2, 1, dropout=1.0), "dropout must be"),
        (lambda: nn.StereographicTransformer(8, 2, 1, dropout_kind="all"), "dropout_kind must be"),
        (lambda: nn.StereographicTransformer(8, 2, 1)(torch.zeros(3, 7)), r"tokens must be \(N, 8\)"),
        (lambda: nn.StereographicTransformer(8, 2, 1)(torch.zeros(0, 8)), "there are no tokens"),
        (
            lambda: nn.StereographicTransformer(8, 2, 1)(
                torch.zeros(2, 3, 8), torch.ones(3, 2, dtype=torch.bool)
            ),
            r"\(B, N\) = \(2, 3\)",
        ),
        (lambda: nn.StereographicLinear(8, 8, heads=2)(torch.zeros(3, 8)), r"\(\.\.\., 2, d\)"),
        (lambda: nn.StereographicLogits(8, 2, 3, curvature=None)(torch.zeros(3, 2, 4)), "pass k"),
    ],
)
def test_wrong_use_is_named(build, message):
    with pytest.raises(UsageError, match=message):
        build()


def test_copies_and_state_dict_round_trip():
    torch.manual_seed(0)
    model = nn.StereographicTransformer(8, 2, 2, curvature=[-0.7, 0.4])
    tokens = torch.randn(5, 8)
    assert torch.equal(copy.deepcopy(model)(tokens), model(tokens))
    other = nn.StereographicTransformer(8, 2, 2)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(tokens), model(tokens))


@pytest.mark.parametrize("kind", [nn.StereographicTransformer, FlatTransformer])
def test_without_attention_a_token_keeps_to_itself(kind):
    torch.manual_seed(0)
    encoder = kind(
        8, 2, 2, attention="none", **({"curvature": [-0.7, 0.4]} if "Stereo" in kind.__name__ else {})
    )
    tokens = torch.randn(5, 8)
    whole = encoder(tokens)
    torch.testing.assert_close(whole[2:3], encoder(tokens[2:3]))
    segment = torch.tensor([0, 0, 1, 1, 1])
    torch.testing.assert_close(encoder(tokens, segment=segment, count=2), whole)
    softmax = kind(8, 2, 2, attention="softmax")
    assert not torch.allclose(softmax(tokens)[2:3], softmax(tokens[2:3]), atol=1e-3)


@pytest.mark.parametrize("encoder", [nn.StereographicTransformer, FlatTransformer])
@pytest.mark.parametrize("kind", [*KINDS, "none"])
@pytest.mark.parametrize("form", ["one row", "ragged", "padded"])
def test_tokens_that_are_not_asked_for_count_as_much_and_are_left_out(encoder, kind, form):
    if form == "ragged" and kind == "softmax":
        pytest.skip("softmax attention takes no ragged rows")
    torch.manual_seed(0)
    model = encoder(6, 2, 2, attention=kind, final_norm=True)
    tokens = torch.randn(*((2, 9) if form == "padded" else (9,)), 6, requires_grad=True)
    more = {
        "ragged": {"segment": torch.arange(9) % 2, "count": 2},
        "padded": {"mask": torch.rand(2, 9) < 0.7},
    }
    arguments = more.get(form, {})
    whole = model.tangent(tokens, **arguments)[..., :4, :, :]
    part = model.tangent(tokens, **arguments, read=4)
    assert part.shape == (*tokens.shape[:-2], 4, 2, 3)
    torch.testing.assert_close(part, whole, rtol=1e-5, atol=1e-6)
    weights = torch.linspace(-1, 1, part.numel()).view_as(part)
    grads = [torch.autograd.grad((y * weights).sum(), [tokens, *model.parameters()]) for y in (part, whole)]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_last_block_computes_nothing_of_tokens_that_are_not_asked_for():
    model = nn.StereographicTransformer(6, 2, 2)
    seen = []
    for block in model.blocks:
        block.ffn.register_forward_hook(lambda module, given, out: seen.append(out.size(1)))
    model.tangent(torch.randn(9, 6), read=4)
    assert seen == [9, 4]
