"""Where a study is kept: a journal file or a database, which several processes and machines may share."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.errors import CorruptFileError, MissingPartError, UsageError
from gyroformer.graphs.features import Kind
from gyroformer.search.search import Search
from gyroformer.search.space import starts_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import JournalStorage

#: what a journal of Optuna's begins with
JOURNAL = b'{"op_code":'
#: trials before which nothing is pruned, and the fraction of the epochs before which none is
UNPRUNED_TRIALS, UNPRUNED_EPOCHS = 4, 0.25
#: what Optuna raises where a journal does not hold what it wrote: it checks nothing on purpose
DAMAGED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def open_study(search: Search, features: Kind | None, storage: str) -> "Study":
    """Return the study, new or as it was left.

    Args:
        search: what is searched for.
        features: the kind of node features that the models see; None if they see none.
        storage: a database's URL, or a file for a journal.
    """
    try:
        import optuna
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise MissingPartError("optuna", "tune", "the search for settings") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = _study(search, features, storage)
    except (CorruptFileError, UsageError):
        raise
    except (
        OSError,
        KeyError,
        ValueError,
        ImportError,
        SQLAlchemyError,
        optuna.exceptions.OptunaError,
    ) as error:
        raise UsageError(f"--storage {storage}: cannot be used ({_reason(error)})") from None
    # also where there are trials already: whoever wanted fewer at first goes on with the other starts
    for start in starts_of(search.space(features), search.job(), features)[: search.trials]:
        study.enqueue_trial(start, skip_if_exists=True)
    return study


def _study(search: Search, features: Kind | None, storage: str) -> "Study":
    import optuna

    epochs = search.job().training.epochs
    return optuna.create_study(
        study_name=search.name(search.space(features)),
        storage=storage if "://" in storage else _journal(Path(storage)),
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(UNPRUNED_TRIALS, int(UNPRUNED_EPOCHS * epochs)),
    )


def _journal(path: Path) -> "JournalStorage":
    """Return the journal, read: a file that is none, or is damaged, is refused and left as it is."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        with path.open("rb") as file:
            begins = file.read(len(JOURNAL))
        if begins and begins != JOURNAL:  # Optuna would write into it
            raise UsageError(f"--storage {path}: is no journal of a search; name another file")
    lock = JournalFileOpenLock(str(path))
    try:
        journal = JournalStorage(JournalFileBackend(str(path), lock))
        if _mend_end(path, lock):
            journal = JournalStorage(JournalFileBackend(str(path), lock))
    except DAMAGED as error:
        raise CorruptFileError(
            f"{path}: the journal of the search is damaged ({_reason(error)}); restore it, or name another file with "
            "--storage"
        ) from None
    return journal


def _mend_end(journal: Path, lock: Any) -> bool:
    """Take away what a process that was killed while it wrote has left of a line: the next would be joined to it.

    A line that lacks nothing but its end is ended; return whether there was one, which nobody has read. ValueError if
    the last whole line is not JSON: Optuna says so only when another follows.
    """
    lock.acquire()
    try:
        with journal.open("rb+") as file:
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole:
                json.loads(content[:whole].splitlines()[-1])
            try:
                json.loads(content[whole:])
            except ValueError:
                file.truncate(whole)
                return False
            file.write(b"\n")
            return True
    finally:
        lock.release()


def _reason(error: BaseException) -> str:
    kind, words = type(error).__name__, str(error).splitlines()
    return f"{kind}: {words[0]}" if words else kind
