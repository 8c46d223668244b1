"""Training under stress: curvatures driven to ±20 while the weights learn noise, in float32.

``python -m gyroformer.bench.stress`` runs the whole grid and prints one CSV row a run.
"""

import argparse
import csv
import sys
from dataclasses import asdict, dataclass, fields

import torch

from gyroformer.nn import StereographicTransformer
from gyroformer.options.layers import AttentionKind

#: curvatures are pushed outwards up to this size
LIMIT = 20.0
TOKENS = 12
WIDTHS = [(2, 1), (2, 2), (4, 2), (16, 2), (64, 4), (256, 4)]
RATES = [1e-4, 1e-3, 1e-2, 1e-1]


@dataclass(frozen=True, slots=True)
class StressRun:
    """What happened in one run: ``bad_step`` is the first with a non-finite loss or gradient, -1 for none."""

    width: int
    heads: int
    attention: str
    curvature_rate: float
    steps: int
    bad_step: int
    first_loss: float
    last_loss: float
    largest_curvature: float

    @property
    def finite(self) -> bool:
        """Whether loss, gradients and result were finite throughout."""
        return self.bad_step < 0


def train(
    width: int,
    heads: int,
    *,
    attention: AttentionKind,
    curvature_rate: float,
    steps: int,
    start: float | list[list[float]] = 0.0,
    seed: int = 0,
) -> StressRun:
    """Train a two-layer model to fit noise; the first layer's curvatures are pushed down, the second's up."""
    torch.manual_seed(seed)
    model = StereographicTransformer(width, heads, 2, attention=attention, curvature=start)
    curvatures = [p for name, p in model.named_parameters() if name.endswith("curvature")]
    weights = [p for name, p in model.named_parameters() if not name.endswith("curvature")]
    groups = [{"params": weights, "lr": 1e-2}, {"params": curvatures, "lr": curvature_rate}]
    optimizer = torch.optim.Adam(groups)
    tokens, target = torch.randn(TOKENS, width), 3 * torch.randn(TOKENS, heads, width // heads)
    losses, bad_step = [], -1
    for step in range(steps):
        optimizer.zero_grad()
        loss = (model.tangent(tokens) - target).square().mean()
        loss.backward()
        losses.append(loss.item())
        if not (torch.isfinite(loss) and all(_finite(p.grad) for p in model.parameters())):
            bad_step = step
            break
        for sign, k in zip((1.0, -1.0), curvatures, strict=True):
            assert k.grad is not None
            k.grad += sign * (1 + k.grad.abs().max())
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        for k in curvatures:
            k.data.clamp_(-LIMIT, LIMIT)
    if bad_step < 0 and not _finite(model(tokens)):
        bad_step = steps
    largest = model.curvatures.abs().max().item()
    return StressRun(width, heads, attention, curvature_rate, steps, bad_step, losses[0], losses[-1], largest)


def _finite(x: torch.Tensor | None) -> bool:
    return x is None or bool(torch.isfinite(x).all())


def main() -> None:
    """Run the grid and print one CSV row a run; exit with 1 if any was not finite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)  # a dozen tokens leave nothing to share
    writer = csv.DictWriter(sys.stdout, [field.name for field in fields(StressRun)])
    writer.writeheader()
    all_finite = True
    for width, heads in WIDTHS:
        for attention in ("linear", "softmax"):
            for rate in RATES:
                run = train(width, heads, attention=attention, curvature_rate=rate, steps=steps)
                writer.writerow(asdict(run))
                sys.stdout.flush()
                all_finite &= run.finite
    sys.exit(0 if all_finite else 1)


if __name__ == "__main__":
    main()
