"""Draw the pictures of the documentation from the package's own functions.

python scripts/make_figures.py [--out docs/figures] [--only NAME]...

Needs matplotlib, mpmath and geoopt (``gyroformer[test]``), and for one picture the data set ``mammals``. The same
inputs give the same pictures.
"""

import argparse
import sys
import warnings
from pathlib import Path

import torch
from figures import hero, hierarchy, midpoints, operations, precision, spaces, trees
from figures.style import save

from gyroformer.errors import DataError

FIGURES = {
    "hero": hero.three_ways,
    "spaces": spaces.equal_discs,
    "distance": spaces.geodesics_and_circles,
    "planes": spaces.hyperplanes,
    "products": spaces.products,
    "ratio": precision.ratio_through_zero,
    "exp_log": operations.exponential,
    "mobius": operations.translation,
    "transport": operations.transport,
    "midpoint": midpoints.lift_and_midpoint,
    "edge": precision.towards_the_edge,
    "exactness": precision.all_cells,
    "tree": trees.tree_and_ring,
    "mammals": hierarchy.mammals,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "figures")
    parser.add_argument("--only", action="append", choices=sorted(FIGURES), help="draw only this one")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # geoopt's use of TorchScript
        for name in options.only or FIGURES:
            try:
                figure = FIGURES[name]()
            except DataError as error:
                print(f"{name}.png is left as it is: {error}", file=sys.stderr)
                continue
            size = save(figure, options.out / f"{name}.png")
            print(f"{name}.png {size / 1024:.0f} KB", file=sys.stderr)


if __name__ == "__main__":
    main()
