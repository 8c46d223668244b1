"""Saving and loading of models: ``config.json`` and ``model.safetensors``, no pickle.

The configuration is written last and holds the weights' SHA-256, so a folder is either whole or refused.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

import gyroformer
from gyroformer.durable import make_folder, move_into_place, sha256_of, write_durably
from gyroformer.errors import CorruptFileError, DataError, UsageError, in_file
from gyroformer.models.shapes import shapes_only
from gyroformer.options import FromOptions, from_plain
from gyroformer.options.constructor import options_taken
from gyroformer.untrusted import check_regular, read_json

#: version of the folder's layout; a reader refuses newer ones
FORMAT = 2
WEIGHTS, CONFIG = "model.safetensors", "config.json"
#: prefix of tensors that belong to what the model was trained for (a decoder), not to the model
TASK = "task."


class Pretrained(FromOptions, nn.Module):
    """A model that knows how it was built; the constructor of a subclass takes declared options."""

    name: ClassVar[str]

    @property
    def config(self) -> dict[str, Any]:
        """The options as plain values."""
        raise NotImplementedError

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model to ``folder``, which is made if absent."""
        path = Path(folder)
        make_folder(path)
        write_model(self, path)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Return the model that ``save_pretrained`` wrote to ``folder``, in evaluation mode."""
        path = Path(folder)
        about = read_config(path)
        if about["model"] != cls.name:
            raise DataError(f"{path}: holds a model of kind {about['model']!r}, not {cls.name!r}")
        try:
            options = from_plain(options_taken(cls), about["config"])
        except (TypeError, UsageError) as error:
            raise CorruptFileError(
                f"{path / CONFIG}: is not of a model {cls.name!r} of this version ({error})"
            ) from None
        state = {n: t for n, t in read_weights(path, about["sha256"]).items() if not n.startswith(TASK)}
        with shapes_only():  # a configuration may ask for any amount of memory
            shapes = cls.of(options).state_dict()
        with in_file(path / WEIGHTS, CorruptFileError):
            dtype = check_tensors(shapes, state)
        with torch.inference_mode(False):  # what is made in inference mode could not be trained afterwards
            model = cls.of(options)
        # the weights' own dtype wins: a model saved in float64 comes back in float64
        model.to(dtype).load_state_dict(state)
        return model.eval()


def check_tensors(own: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> torch.dtype:
    """Return the dtype of the tensors found, after comparing them with a model's own, by name, shape and kind.

    Raises:
        CorruptFileError: a tensor is missing, strange, of another shape or kind, or not finite; or their dtypes differ.
    """
    for name in sorted(own.keys() ^ found.keys()):
        raise CorruptFileError(f"does not fit its configuration (first: {name!r})")
    dtypes = {t.dtype for t in found.values() if t.is_floating_point()}
    for name, tensor in found.items():
        if tensor.shape != own[name].shape or tensor.is_floating_point() != own[name].is_floating_point():
            raise CorruptFileError(f"does not fit its configuration (first: {name!r})")
        if tensor.is_complex() or not bool(torch.isfinite(tensor.double()).all()):
            raise CorruptFileError(f"{name!r} holds values that are not finite numbers")
    if len(dtypes) > 1:
        raise CorruptFileError(
            f"has weights of {len(dtypes)} dtypes, {' and '.join(sorted(map(str, dtypes)))}"
        )
    return next(iter(dtypes), torch.get_default_dtype())


def write_model(
    model: Pretrained,
    path: Path,
    *,
    more: dict[str, Any] | None = None,
    task: Mapping[str, Tensor] | None = None,
) -> None:
    """Write the files of a model to an existing folder, the weights first.

    Args:
        model: the model.
        path: the folder.
        more: entries of ``config.json`` beside the model's own.
        task: tensors of the task that the model was trained for, kept under the prefix ``task.``.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    if any(name.startswith(TASK) for name in model.state_dict()):
        raise UsageError(
            "a part of a model cannot be called 'task': that name is kept for what it is trained for"
        )
    tensors = model.state_dict() | {f"{TASK}{name}": tensor for name, tensor in (task or {}).items()}
    part = path / f"{WEIGHTS}.part"
    try:
        save_file({name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}, part)
        move_into_place(part, path / WEIGHTS)
        about = {
            "format": FORMAT,
            "model": model.name,
            "gyroformer": gyroformer.__version__,
            "sha256": sha256_of(path / WEIGHTS),
            "config": model.config,
        }
        text = json.dumps(about | (more or {}), indent=2, allow_nan=False) + "\n"
        write_durably(path / CONFIG, text.encode())
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: the model could not be written ({why})") from error


def read_config(folder: Path) -> dict[str, Any]:
    """Return the contents of ``config.json`` after checking them."""
    path = folder / CONFIG
    if not path.exists():
        raise DataError(f"{folder}: no saved model here ({CONFIG} is missing)")
    about = read_json(path)
    if "job" in about and "sha256" not in about:
        raise DataError(
            f"{folder}: the run is not finished, it holds no model yet; continue it with --resume"
        )
    kinds = {"format": int, "model": str, "sha256": str, "config": dict}
    wrong = [key for key, kind in kinds.items() if type(about.get(key)) is not kind]
    if wrong:
        raise CorruptFileError(f"{path}: {wrong[0]!r} is missing or of a wrong kind; save the model again")
    if not 1 <= about["format"] <= FORMAT:
        raise CorruptFileError(
            f"{path}: format {about['format']} is none that this version reads (1 to {FORMAT}); update gyroformer"
        )
    return about


def read_weights(folder: Path, sha256: str) -> dict[str, Tensor]:
    """Return the tensors of ``model.safetensors`` after checking the file's checksum."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / WEIGHTS
    check_regular(path, error=CorruptFileError)
    if sha256_of(path) != sha256:
        raise CorruptFileError(
            f"{path}: its bytes are not those that were saved; restore or save the model again"
        )
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from None
