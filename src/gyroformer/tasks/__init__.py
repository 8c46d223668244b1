"""What a model is trained for. A task is a file here and a line below; ``task.py`` says what one is."""

from gyroformer.tasks.classify import NodeClassification
from gyroformer.tasks.embed import Reconstruction
from gyroformer.tasks.link import LinkPrediction
from gyroformer.tasks.task import Task

TASKS: dict[str, type[Task]] = {
    task.name: task for task in (Reconstruction, NodeClassification, LinkPrediction)
}

__all__ = ["TASKS", "LinkPrediction", "NodeClassification", "Reconstruction", "Task"]
