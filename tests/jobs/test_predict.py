import pytest
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.jobs import predict
from gyroformer.jobs.restore import restore


@pytest.fixture(scope="module")
def restored(runs):
    return {task: restore(path) for task, path in runs.items()}


def distance_matrix(run):
    return run.positions().squared_dist_rows(torch.arange(len(run.ids))).sqrt()


def test_labels_have_their_names_and_all_probabilities(restored):
    run = restored["classify"]
    nodes = run.indices(["n5", "n40"])
    found = predict.labels(run, nodes)
    chances = ("P(blue)", "P(green)", "P(red)", "P(white)")
    assert found.columns == ("node", "label", "given", "probability", *chances)
    expected = run.model.scores(run.data).softmax(-1)[nodes]
    for record, shares in zip(found.records(), expected.tolist(), strict=True):
        assert [record[f"P({name})"] for name in run.label_names] == shares
        assert record["probability"] == max(shares)
        assert record["label"] == run.label_names[shares.index(max(shares))]
    assert [row[0] for row in found.rows] == ["n5", "n40"]


@pytest.mark.parametrize("task", ["embed", "link"])
def test_labels_need_a_run_that_has_some(restored, task):
    with pytest.raises(UsageError, match="needs a classify run"):
        predict.labels(restored[task], torch.tensor([0]))


@pytest.mark.parametrize("task", ["classify", "link", "embed"])
def test_nearest_nodes(restored, task):
    run = restored[task]
    found = predict.nearest(run, run.indices(["n7"]), 3)
    row = distance_matrix(run)[run.ids.index("n7")]
    row[run.ids.index("n7")] = torch.inf
    order = row.argsort(stable=True)[:3].tolist()
    assert [record["neighbour"] for record in found.records()] == [run.ids[place] for place in order]
    assert [record["distance"] for record in found.records()] == pytest.approx(row[order].tolist())
    assert [record["rank"] for record in found.records()] == [1, 2, 3]


def test_what_would_take_too_long_is_refused_and_named_nodes_are_answered(restored, monkeypatch):
    run = restored["embed"]
    everyone = torch.arange(len(run.ids))
    monkeypatch.setattr(predict, "MOST_DISTANCES", len(run.ids) ** 2 - 1)
    with pytest.raises(
        UsageError, match=r"comparing 48 nodes with 48 would take about 0.0 hours: .*--node ID"
    ):
        predict.nearest(run, everyone, 3)
    assert len(predict.nearest(run, everyone[:-1], 3).rows) == 3 * (len(run.ids) - 1)


def test_distances_have_probabilities_in_a_link_run(restored):
    pairs = [("n1", "n2"), ("n3", "n3")]
    plain = predict.distances(restored["embed"], pairs)
    assert plain.columns == ("source", "target", "distance")
    run = restored["link"]
    found = predict.distances(run, pairs).records()
    far = distance_matrix(run)
    expected = float(far[run.ids.index("n1"), run.ids.index("n2")])
    assert found[0]["distance"] == pytest.approx(expected)
    about = run.results["decoder"]
    degree = run.decoder.degree[0, [run.ids.index("n1"), run.ids.index("n2")]]
    odds = (about["radius"] - expected**2) / about["temperature"]
    odds += about["degree_weight"] * float(torch.log1p(degree).sum())
    odds = about["calibration"][0] * odds + about["calibration"][1]
    assert found[0]["probability"] == pytest.approx(float(torch.tensor(odds).sigmoid()), rel=1e-4)
    assert (found[1]["distance"], found[1]["source"]) == (0.0, "n3")


@pytest.mark.parametrize("task", ["link", "embed"])
def test_new_edges_are_the_likeliest_pairs_that_no_edge_joins(restored, task):
    run = restored[task]
    far = distance_matrix(run)
    nodes = range(len(run.ids))
    free = [(float(far[u, v]), u, v) for u in nodes for v in nodes if u < v and not run.joined[u, v]]
    found = predict.new_edges(run, 12)
    assert [(row[0], row[1]) for row in found.rows] == [
        (run.ids[u], run.ids[v]) for _, u, v in sorted(free)[:12]
    ]
    if task == "link":
        likely = [row[3] for row in found.rows]
        assert likely == sorted(likely, reverse=True)


def test_pairs_are_read_from_a_file(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("# two a line\na b\n\nc,d\n x y \tz\n", encoding="utf-8-sig")
    assert predict.read_pairs(path) == [("a", "b"), ("c", "d"), ("x y", "z")]
    path.write_text("a b\na b c\n")
    with pytest.raises(DataError, match=r"pairs\.txt:2: expected two ids, found 3"):
        predict.read_pairs(path)
    path.write_text("# none\n")
    with pytest.raises(DataError, match="no pair"):
        predict.read_pairs(path)
    with pytest.raises(DataError, match="is missing"):
        predict.read_pairs(tmp_path / "none.txt")
