"""From graphs to tokens: one for each node, each edge, and each graph if asked for."""

from gyroformer.tokens.prepare import prepare_graph
from gyroformer.tokens.tokenizer import GraphTokenizer, TokenRow

__all__ = ["GraphTokenizer", "TokenRow", "prepare_graph"]
