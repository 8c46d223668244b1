"""What the documentation site needs beside mkdocs: links into the repository, equations, notebooks, docstrings."""
