"""The explorer of a fitted estimator, shown inline in a notebook."""

import html
from pathlib import Path

from gyroformer.durable import make_folder, write_output


class Explorer:
    """A page as ``gyroformer report`` writes it: the last line of a notebook's cell shows it, ``save`` keeps it.

    Args:
        page: the whole page.
        height: of the frame in a notebook, in pixels.
    """

    def __init__(self, page: str, height: int) -> None:
        self.page, self.height = page, height

    def __repr__(self) -> str:
        return f"Explorer({len(self.page) / 1e6:.1f} MB; .save(path) writes it, a notebook shows it)"

    def _repr_html_(self) -> str:
        # a document of its own, with its own policy: nothing of it meets the notebook's page
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" width="100%" height="{self.height}" frameborder="0" '
            'sandbox="allow-scripts allow-downloads" title="gyroformer explorer"></iframe>'
        )

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return its path."""
        target = Path(path)
        make_folder(target.absolute().parent)
        write_output(target, self.page.encode(errors="backslashreplace"))
        return target
