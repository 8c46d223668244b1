"""The C++ kernels of this folder: layers and sums over pairs."""

import math
from pathlib import Path

import torch

from gyroformer.compiled import Kernels, cache_folder, find_compiler, threads, used
from gyroformer.ops.feature_map import feature_floor
from gyroformer.ops.lifted import REACH, least_cone

__all__ = ["KERNELS", "cache_folder", "find_compiler", "library", "threads", "used"]

KERNELS = Kernels(
    Path(__file__).parent,
    constants={
        "SET_REACH": REACH,
        "SET_LEAST": least_cone(torch.float32),
        "SET_FLOOR": feature_floor(torch.float32),
        "SET_LOWEST": math.exp(feature_floor(torch.float32)) * (1 + 1e-6),
    },
)
library = KERNELS.library
