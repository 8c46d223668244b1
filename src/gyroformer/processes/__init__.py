"""Several processes that compute as one: who they are, sums over them, what they agree on, how they are started.

Everything outside this folder is written for one process. It asks :mod:`gyroformer.processes.tensors` for its share of
some rows and for sums over all processes; where there is one process the share is everything and a sum is its own
argument.
"""
