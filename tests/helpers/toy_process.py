"""The toy run in a process of its own, to be killed."""

import sys

import torch
from toy_training import train

from gyroformer.errors import GyroformerError


def train_in_process(folder, **options):
    torch.set_num_threads(1)
    try:
        train(folder, **options)
    except GyroformerError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
