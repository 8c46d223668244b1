"""All targets, by name."""

from fuzz_options import options
from fuzz_readers import graphs, node_tables, packed_data, pickles, recipes, splits
from fuzz_runs import checkpoints, configurations, run_folders

TARGETS = {
    "options": options,
    "graph files": graphs,
    "node tables": node_tables,
    "splits": splits,
    "recipes": recipes,
    "old pickles": pickles,
    "archives": packed_data,
    "run folders": run_folders,
    "checkpoints": checkpoints,
    "saved models": configurations,
}
