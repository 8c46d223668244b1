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
_KINDS: tuple[type[Task], ...] = (Hierarchy, *TASKS.values())
SHOWN = tuple(dict.fromkeys(key for task in _KINDS for key in task.shown))
#: the first result of each kind of task, all in percent: what a row of results is about
HEADLINES = tuple(dict.fromkeys(task.shown[0] for task in _KINDS))

__all__ = [
    "HEADLINES",
    "SHOWN",
    "TASKS",
    "Hierarchy",
    "LinkPrediction",
    "NodeClassification",
    "Reconstruction",
    "Task",
]
