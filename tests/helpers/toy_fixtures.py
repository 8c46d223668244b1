"""Fixtures of the toy training, for the tests of runs and of training."""

import os

import pytest
import torch
from toy_training import SETTINGS, ToyTask, toy_model

from gyroformer.train import TrainOptions


@pytest.fixture
def model():
    torch.manual_seed(0)
    return toy_model()


@pytest.fixture
def task():
    return ToyTask()


@pytest.fixture
def settings():
    return TrainOptions(**SETTINGS)


@pytest.fixture
def without_sync(monkeypatch):
    """Do not wait for the disk: for many short runs in which no power is cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
