"""Tables of what large graphs cost: measured by tokens and by processes, and estimated for machines not at hand."""

from gyroformer.bench.cost_model import Machine, step_seconds
from tables.markdown import markdown, runs

TOKENS = {
    "tokens": "tokens",
    "seconds": "seconds, forward and backward",
    "ns_per_token": "ns a token",
    "peak_gb": "peak GB",
}
PROCESSES = {
    "case": "case",
    "nodes": "nodes",
    "tokens": "tokens",
    "processes": "processes",
    "seconds": "seconds an epoch",
    "speed_up": "speed-up",
    "least": "least",
    "most": "most",
    "cpu_seconds": "processor seconds of the busiest",
    "cpu_speed_up": "speed-up by these",
    "message_ms": "a message, ms",
    "epochs": "epochs",
    "difference": "loss differs by",
    "load": "load",
}
#: what says nothing where others wanted the cores
BY_THE_CLOCK = ("seconds", "speed_up", "least", "most")

LISTS = {
    "graph": "graph",
    "nodes": "nodes",
    "epoch": "epoch",
    "recall": "nearest that are listed, %",
    "sum_listed": "of the sum by the lists, %",
    "sum_nearest": "by exact lists, %",
    "renewal_seconds": "a renewal, s",
    "exact_seconds": "an exact one, s",
}
START = {
    "graph": "graph",
    "model": "model",
    "start": "start",
    "nodes": "nodes",
    "map_untrained": "mAP of the start itself",
    "epochs": "epochs",
    "map": "mAP after them",
    "cpu_seconds": "CPU seconds",
}
#: GPUs with 1.5 TB/s of memory bandwidth; eight joined by 300 GB/s, 64 by a network of 25 GB/s
MEMORY, LATENCY = 1.5e12, 2e-5
PLACES = {8: 3e11, 64: 2.5e10}
NODES, EDGES = 10**7, 10**8


def processes() -> str:
    """Return what several processes gain; times by the clock only where the machine was not overbooked."""
    rows = []
    for row in runs("processes.csv"):
        busy = float(row["load"]) > float(row["cores"])
        rows.append(["–" if busy and key in BY_THE_CLOCK else row[key] for key in PROCESSES])
    return markdown(list(PROCESSES.values()), rows, text=1)


def estimated() -> str:
    """Return the estimated step of a graph of 10⁸ edges on 8 and 64 GPUs."""
    rows = []
    for processes, link in PLACES.items():
        machine = Machine.of_bandwidth(MEMORY, link, LATENCY)
        parts = step_seconds(machine, nodes=NODES, edges=EDGES, processes=processes)
        rows.append([f"{processes} GPUs", *(f"{1e3 * value:.0f} ms" for value in parts.values())])
    return markdown(["estimate", "tokens", "near lists", "traffic", "a step"], rows)
