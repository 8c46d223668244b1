"""Saving and loading of models: ``config.json`` and ``model.safetensors``, no pickle.

The configuration is written last and holds the weights' SHA-256, so a folder is either whole or refused.
"""

import json
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

import gyroformer
from gyroformer.durable import make_folder, move_into_place, sha256_of
from gyroformer.errors import CorruptFileError, DataError

#: version of the folder's layout; a reader refuses newer ones
FORMAT = 1
WEIGHTS, CONFIG = "model.safetensors", "config.json"


class Pretrained(nn.Module):
    """A model that knows how it was built; subclasses set ``name`` and fill ``config`` in ``__init__``."""

    name: str
    config: dict[str, Any]

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model to ``folder``, which is made if absent."""
        from safetensors.torch import save_file

        path = Path(folder)
        make_folder(path)
        part = path / f"{WEIGHTS}.part"
        state = {name: tensor.detach().contiguous().cpu() for name, tensor in self.state_dict().items()}
        try:
            save_file(state, part)
            move_into_place(part, path / WEIGHTS)
            about = {
                "format": FORMAT,
                "model": self.name,
                "gyroformer": gyroformer.__version__,
                "sha256": sha256_of(path / WEIGHTS),
                "config": self.config,
            }
            part = path / f"{CONFIG}.part"
            part.write_text(json.dumps(about, indent=2, allow_nan=False) + "\n")
            move_into_place(part, path / CONFIG)
        except OSError as error:
            raise DataError(f"{path}: the model could not be written ({error.strerror})") from error

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Return the model that ``save_pretrained`` wrote to ``folder``, in evaluation mode."""
        path = Path(folder)
        about = read_config(path)
        if about["model"] != cls.name:
            raise DataError(f"{path}: holds a model of kind {about['model']!r}, not {cls.name!r}")
        model = cls(**about["config"])
        state = read_weights(path, about["sha256"])
        own = model.state_dict()
        wrong = sorted(set(own) ^ set(state)) or [n for n, t in own.items() if t.shape != state[n].shape]
        if wrong:
            raise CorruptFileError(f"{path / WEIGHTS}: does not fit its configuration (first: {wrong[0]!r})")
        # the weights' own format wins: a model saved in float64 comes back in float64
        dtype = next((t.dtype for t in state.values() if t.is_floating_point()), torch.get_default_dtype())
        model.to(dtype).load_state_dict(state)
        return model.eval()


def read_config(folder: Path) -> dict[str, Any]:
    """Return the contents of ``config.json`` after checking them."""
    path = folder / CONFIG
    try:
        about = json.loads(path.read_text())
    except FileNotFoundError:
        raise DataError(f"{folder}: no saved model here ({CONFIG} is missing)") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CorruptFileError(f"{path}: cannot be read ({error}); save the model again") from None
    kinds = {"format": int, "model": str, "sha256": str, "config": dict}
    wrong = [
        key
        for key, kind in kinds.items()
        if not isinstance(about, dict) or not isinstance(about.get(key), kind)
    ]
    if wrong:
        raise CorruptFileError(f"{path}: {wrong[0]!r} is missing or of a wrong kind; save the model again")
    if about["format"] > FORMAT:
        raise CorruptFileError(
            f"{path}: format {about['format']} is newer than this version reads ({FORMAT}); update gyroformer"
        )
    return about


def read_weights(folder: Path, sha256: str) -> dict[str, torch.Tensor]:
    """Return the tensors of ``model.safetensors`` after checking the file's sum."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / WEIGHTS
    if not path.is_file():
        raise CorruptFileError(f"{folder}: the weights are missing ({WEIGHTS})")
    if sha256_of(path) != sha256:
        raise CorruptFileError(
            f"{path}: its bytes are not those that were saved; restore or save the model again"
        )
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from None
