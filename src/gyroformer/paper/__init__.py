"""The paper's experiments by command: which runs each table is made of, their rows, and what they say together."""
