"""Signs of life of the workers of a study: a trial whose worker is gone is queued again.

On one machine a worker is gone when its process is; elsewhere when it has been silent for long.
"""

import contextlib
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

#: seconds after which a trial that has given no sign of life is taken to be lost
LOST_AFTER = 180.0
#: seconds between signs of life
BEAT = 30.0
#: this process among all others ever: the numbers of processes come again, in a container that is started anew the same
WORKER = uuid.uuid4().hex


def machine() -> str:
    """Return where process numbers mean the same as here: containers may share a hostname, or a system."""
    marks = [platform.node()]
    with contextlib.suppress(OSError):  # there is no /proc but on Linux
        marks.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        marks.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(marks)


def sign(trial: "Trial") -> None:
    """Write down who does a trial."""
    trial.set_user_attr("worker", WORKER)
    trial.set_user_attr("pid", os.getpid())
    trial.set_user_attr("host", machine())  # the last: whoever reads it looks for the process


@contextlib.contextmanager
def beating(trial: "Trial") -> Iterator[Callable[[], bool]]:
    """Give signs of life of a trial from a thread: preparing a large graph takes longer than silence is borne.

    Yields:
        Whether the trial has ended meanwhile: another worker took this one to be dead.
    """
    from optuna.exceptions import OptunaError, UpdateFinishedTrialError

    over, taken = threading.Event(), threading.Event()

    def beat() -> None:
        while not over.is_set():
            try:
                trial.set_user_attr("beat", time.time())
            except UpdateFinishedTrialError:
                taken.set()
                return
            except (OptunaError, OSError):
                pass  # a storage that is busy or away for a moment: the next sign may arrive
            over.wait(BEAT)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield taken.is_set
    finally:
        over.set()
        thread.join()


def running(study: "Study") -> "list[FrozenTrial]":
    """Return the trials that are under way."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


def take_up_lost(study: "Study") -> None:
    """Queue again the trials whose worker is gone."""
    for trial in running(study):
        if _is_lost(trial):
            queue_again(study, trial.number)


def _is_lost(trial: "FrozenTrial") -> bool:
    told = trial.user_attrs
    if os.name == "posix" and told.get("host") == machine():
        pid = int(told.get("pid", 0))
        return told.get("worker") != WORKER if pid == os.getpid() else not _is_alive(pid)
    begun = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return time.time() - max(float(told.get("beat", 0.0)), begun) > LOST_AFTER


def queue_again(study: "Study", number: int) -> None:
    """End a trial without a result and queue its settings anew; a trial that another worker took up is left."""
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.trial import TrialState

    with contextlib.suppress(ValueError, UpdateFinishedTrialError):  # it has ended meanwhile
        study.tell(number, state=TrialState.FAIL)
        ended = study.get_trials(deepcopy=False)[number]
        # what it was to begin with as well: it may not have come to ask for all of that
        study.enqueue_trial({**ended.system_attrs.get("fixed_params", {}), **ended.params})


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
