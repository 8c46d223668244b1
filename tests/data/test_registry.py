"""Every entry is complete, and the sums are those of the files that are there."""

import os
import re
from pathlib import Path

import pytest

from gyroformer.data.checksums import CHECKSUMS
from gyroformer.data.registry import DATASETS, get_spec
from gyroformer.durable import sha256_of
from gyroformer.errors import UsageError

PAPER = {
    *("web-edu", "power", "facebook", "bio-worm"),
    *("texas", "cornell", "wisconsin", "actor", "airport", "citeseer", "pubmed", "cora"),
}
LARGER = {"computers", "cs", "physics", "ca-astroph", "enron", "mammals", "nouns"}

needs_data = pytest.mark.skipif(not os.environ.get("GYROFORMER_DATA"), reason="GYROFORMER_DATA is not set")


def test_the_list_is_complete():
    assert set(DATASETS) == PAPER | LARGER | {"karate"}


@pytest.mark.parametrize("name", DATASETS)
def test_an_entry_is_complete(name):
    spec = DATASETS[name]
    files = [*spec.files, *spec.instead]
    assert len({file.path for file in files}) == len(files)
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) and file.size > 0 for file in files)
    assert all(url.startswith("https://") for file in files for url in file.urls)
    assert spec.licence
    assert spec.source
    assert spec.fetchable or spec.by_hand
    labelled = spec.task == "classification"
    assert labelled == bool(spec.classes) == bool(spec.features) == (spec.homophily is not None)
    assert labelled == bool(spec.splits)


def test_no_file_without_a_data_set_and_no_address_for_a_remade_one():
    used = {file.path for spec in DATASETS.values() for file in (*spec.files, *spec.instead)}
    assert used == set(CHECKSUMS)
    remade = {
        file.path for spec in DATASETS.values() for file in (*spec.files, *spec.instead) if not file.urls
    }
    assert remade == {
        "airport/airport.npz",
        "amazon/Computers/raw/amazon_electronics_computers.npz",
        "coauthor/CS/raw/ms_academic_cs.npz",
        "coauthor/Physics/raw/ms_academic_phy.npz",
        "networks/ca-AstroPh/ca-AstroPh.txt.gz",
        "wordnet/mammal_closure.csv",
        "wordnet/noun_closure.csv.gz",
    }


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'cornell'"):
        get_spec("cornel")


@needs_data
@pytest.mark.data
@pytest.mark.parametrize("name", DATASETS)
def test_the_sums_are_those_of_the_real_files(name):
    for file in (*DATASETS[name].files, *DATASETS[name].instead):
        path = Path(os.environ["GYROFORMER_DATA"]) / file.path
        assert (sha256_of(path), path.stat().st_size) == (file.sha256, file.size)
