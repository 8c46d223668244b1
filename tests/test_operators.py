"""Operators and marks that do the same as torch's own and do not load its compiler."""

import subprocess
import sys

import pytest
import torch

from gyroformer.operators import constant, operator, untraced


def test_a_mark_is_the_one_that_torch_sets():
    def ours() -> int:
        return 1

    def theirs() -> int:
        return 1

    assert vars(constant(ours)) == vars(torch.compiler.assume_constant_result(theirs))


def test_compiled_code_calls_what_it_may_not_look_into():
    seen = []

    @untraced
    def look(x):
        seen.append(torch.compiler.is_compiling())
        return x + len(seen)

    def twice(x):
        return 2 * look(2 * x)

    assert torch.equal(torch.compile(twice, backend="eager")(torch.ones(3)), torch.full((3,), 6.0))
    assert seen == [False]
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(twice, backend="eager", fullgraph=True)(torch.ones(3))


def test_an_operator_differentiates_and_compiles():
    @operator("test_cube")
    def cube(x: torch.Tensor) -> torch.Tensor:
        assert not torch.compiler.is_compiling()
        return x**3

    @cube.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    cube.register_autograd(
        lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2 * grad,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.library.opcheck(torch.ops.gyroformer.test_cube.default, (x,))
    for form in (cube, torch.compile(cube, fullgraph=True, backend="aot_eager")):
        assert torch.equal(torch.autograd.grad(form(x).sum(), x)[0], torch.tensor([3.0, 12.0]))


@pytest.mark.parametrize("task", ["embed", "link"])
def test_a_command_does_not_load_what_it_does_not_need(task, tmp_path):
    edges = tmp_path / "ring.csv"
    edges.write_text("".join(f"{i},{(i + j) % 30}\n" for i in range(30) for j in (1, 3)))
    words = [task, str(edges), "--epochs", "2", "--out", str(tmp_path / "run")]
    code = (
        f"import sys; from gyroformer.cli.app import app; app({words!r}, standalone_mode=False)\n"
        "heavy = 'torch._dynamo sympy pandas sklearn matplotlib networkx torch_geometric.datasets'.split()\n"
        "sys.exit(' '.join(name for name in heavy if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
