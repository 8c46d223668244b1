"""A search that takes seconds, for the files of the fixture ``files``."""

from gyroformer.search.search import Search
from gyroformer.search.storage import open_study

FIXED = {"training": {"epochs": 3}, "objective": {"split": "random"}}


def search_of(files, trials=4, model="gcn", fixed=None, **options):
    """Return a search for a small labelled graph."""
    edges, given = files
    held = FIXED | given | (fixed or {})
    return Search("classify", str(edges), model, trials, recipe="networks", fixed=held, **options)


def study_of(files, storage, trials=4, search=None):
    """Return the study of such a search."""
    return open_study(search or search_of(files, trials), "numbers", str(storage))
