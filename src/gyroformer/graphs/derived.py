"""What is computed once for a tensor of a graph, mostly its edges, and kept as long as that is.

Moving, copying or batching a graph makes a new ``edge_index``, and an ``edge_index`` changed in place has another
version: a graph that is changed never meets what belonged to its old edges, and nothing is written into the graph.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

Result = TypeVar("Result")

#: edge_index -> what was derived from it -> the result; nothing here keeps an edge_index alive
_derived: Any = WeakTensorKeyDictionary()


def derived(edges: Tensor, what: tuple[Hashable, ...], compute: Callable[[], Result]) -> Result:
    """Return what was computed for these edges before, unless they were changed in place since.

    The result is shared between calls: do not change it, and let it not refer to ``edges`` itself, which would then
    never go.
    """
    # tensors made in inference mode have no version; nobody may change them outside of it
    version = 0 if edges.is_inference() else edges._version
    kept = _derived.setdefault(edges, {})
    key = (*what, version)
    if key not in kept:
        for stale in [old for old in kept if old[-1] != version]:
            del kept[stale]
        # what is made in inference mode could not be trained with afterwards
        with torch.inference_mode(False), torch.no_grad():
            kept[key] = compute()
    result: Result = kept[key]
    return result
