"""The tables that make_tables.py fills, a file for each kind."""
