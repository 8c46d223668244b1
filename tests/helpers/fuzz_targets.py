"""All targets, by name."""

from fuzz_runs import checkpoints, configurations, run_folders

TARGETS = {"run folders": run_folders, "checkpoints": checkpoints, "saved models": configurations}
