"""Scikit-learn's checks: what fails is what docs/estimators.md lists, no more and no less."""

import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator
from table_estimators import TableClassifier, TableEmbedder

import gyroformer as gf

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"
COLUMNS = {"GraphEmbedder": 1, "NodeClassifier": 2, "LinkPredictor": 3}
#: features as they come and no identifiers: nothing of a result then depends on the order of rows
PLAIN = {
    "model": "tokengt",
    "dtype": "float64",
    "feature_options": {"mixing": "none", "entries": "raw", "size": "none"},
}


def listed(name):
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `check_")
    ]
    return {row[0].strip("`"): row[4] for row in rows if row[COLUMNS[name]] == "×"}


def failed(estimator, expected):
    with warnings.catch_warnings():
        # one check needs an environment variable that scipy reads at its import
        warnings.simplefilter("ignore", SkipTestWarning)
        found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None)
    assert len(found) > 40
    assert not [check["check_name"] for check in found if check["status"] == "failed"]
    return {check["check_name"] for check in found if check["status"] == "xfail"}


@pytest.mark.parametrize("name", COLUMNS)
def test_what_fails_is_what_the_page_lists(name):
    expected = listed(name)
    assert all(expected.values()), "each has a reason"
    assert failed(getattr(gf, name)(), expected) == set(expected)


def test_the_embedder_passes_with_tables_made_graphs():
    expected = {"check_methods_subset_invariance": "a node's place depends on the other nodes"}
    estimator = TableEmbedder(epochs=1, use_features=True, model_options={"identifiers": 0}, **PLAIN)
    assert failed(estimator, expected) == set(expected)


@pytest.mark.slow
def test_the_classifier_passes_with_tables_made_graphs():
    expected = {
        "check_methods_subset_invariance": "a node's label depends on the other nodes",
        "check_classifiers_classes": "-1 means no label",
    }
    options = {"identifiers": 0, "dropout": 0.0}
    estimator = TableClassifier(
        epochs=8, lr=0.1, dim=8, training={"eval_every": 4}, model_options=options, **PLAIN
    )
    assert failed(estimator, expected) == set(expected)


def test_a_name_that_is_not_listed_is_seen():
    expected = listed("GraphEmbedder")
    expected.pop("check_dict_unchanged")
    with pytest.raises(AssertionError, match="check_dict_unchanged"):
        failed(gf.GraphEmbedder(), expected)
