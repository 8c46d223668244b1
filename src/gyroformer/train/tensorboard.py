"""TensorBoard files, for those who ask for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gyroformer.errors import MissingPartError

Scalars = Callable[[dict[str, Any]], None]


@contextmanager
def scalars(run: Path | None, wanted: bool, epoch: int) -> Iterator[Scalars]:
    """Give a function that writes a row's numbers to ``run/tensorboard``; it does nothing unless ``wanted``.

    Args:
        run: the run folder.
        wanted: whether to write at all.
        epoch: epochs done; what an interrupted run wrote after them is hidden.
    """
    if not wanted or run is None:
        yield lambda row: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingPartError("tensorboard", "tensorboard", "writing TensorBoard files") from None
    with SummaryWriter(str(run / "tensorboard"), purge_step=epoch + 1) as writer:

        def write(row: dict[str, Any]) -> None:
            step = row["epoch"]
            writer.add_scalar("loss", row["loss"], step)
            writer.add_scalar("lr", row["lr"], step)
            for i, k in enumerate(row.get("curvatures", [])):
                writer.add_scalar(f"curvature/{i}", k, step)
            for name, value in row.get("metrics", {}).items():
                writer.add_scalar(f"metrics/{name}", value, step)

        yield write
