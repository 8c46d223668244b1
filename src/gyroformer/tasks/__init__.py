"""What a model is trained for. A task is a file here and a line below; ``task.py`` says what one is."""

from gyroformer.tasks.classify import NodeClassification
from gyroformer.tasks.embed import Reconstruction
from gyroformer.tasks.hierarchy import Hierarchy
from gyroformer.tasks.link import LinkPrediction
from gyroformer.tasks.task import Task

TASKS: dict[str, type[Task]] = {
    task.name: task for task in (Reconstruction, NodeClassification, LinkPrediction)
}

#: every result that is printed for some task, in the order of importance: the first that a run has counts
SHOWN = tuple(dict.fromkeys(key for task in (Hierarchy, *TASKS.values()) for key in task.shown))

__all__ = ["SHOWN", "TASKS", "Hierarchy", "LinkPrediction", "NodeClassification", "Reconstruction", "Task"]
