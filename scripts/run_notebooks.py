"""Run the notebooks of the documentation and keep what they print and draw.

python scripts/run_notebooks.py [NAME...]
"""

import argparse
import os
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=sorted(path.stem for path in FOLDER.glob("*.ipynb")))
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for name in parser.parse_args().names:
        path = FOLDER / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, record_timing=False, allow_errors=False).execute()
        notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
        for cell in notebook.cells:
            if cell.cell_type == "code":  # progress and advice on stderr are not part of the page
                cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
        nbformat.write(notebook, path)
        print(f"{path.name}: ran")


if __name__ == "__main__":
    main()
