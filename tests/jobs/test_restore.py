import json
import shutil

import numpy as np
import pytest
import torch
from small_graphs import blocks_graph, write_blocks
from small_runs import job_on
from torch_geometric.data import Data

from gyroformer.data.link_split import draw_link_split
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.jobs.restore import restore
from gyroformer.jobs.run import embedding_arrays, run_job


@pytest.mark.parametrize("task", ["classify", "link", "embed"])
def test_the_model_says_what_it_said_bit_for_bit(runs, task):
    found = restore(runs[task])
    assert found.same
    again = embedding_arrays(found.model, found.data)
    with np.load(runs[task] / "embeddings.npz") as stored:
        assert set(stored.files) == {*again, "ids", "meaning"}
        for name, array in again.items():
            assert array.dtype == stored[name].dtype
            assert np.array_equal(array, stored[name]), name
        assert [str(name) for name in found.ids] == stored["ids"].tolist()


def test_a_link_run_sees_its_training_edges_and_knows_them_all(runs):
    found = restore(runs["link"])
    split = draw_link_split(restore(runs["classify"]).data, seed=0)
    assert found.data.edge_index.size(1) == 2 * split.train.size(1)
    assert found.joined.nnz // 2 == found.results["edges"] > split.train.size(1)


def test_a_learned_decoder_comes_back(block_files, tmp_path):
    run_job(job_on("link", block_files, objective={"learn_decoder": True}), out=tmp_path / "run")
    found = restore(tmp_path / "run")
    with torch.no_grad():
        assert float(found.decoder.radius) == found.results["decoder"]["radius"] != 2.0
        assert float(found.decoder.temperature) == found.results["decoder"]["temperature"] != 1.0


def test_a_run_with_features_takes_another_graph_with_the_same_columns(runs, tmp_path):
    edges, features, _ = write_blocks(tmp_path, prefix="m", groups=3, seed=5)
    for task in ("classify", "link"):
        found = restore(runs[task], edges, features=str(features))
        assert not found.same
        assert len(found.ids) == 36
        assert found.data.edge_index.size(1) == found.joined.nnz
        assert bool(torch.isfinite(found.positions().coordinates()).all())
    with pytest.raises(DataError, match="needs node features"):
        restore(runs["link"], edges)
    with pytest.raises(DataError, match=r"takes \d+ feature columns"):
        restore(runs["link"], blocks_graph(features=3))


@pytest.mark.parametrize("entries", ["zscore", "quantile"])
def test_an_mlp_says_the_same_of_a_node_in_whatever_company(entries, block_files, tmp_path):
    """It sees nothing but the node's own features, which are prepared by the columns of the training graph."""
    features = {"entries": entries, "mixing": "none"}
    run_job(job_on("classify", block_files, model="mlp", features=features), out=tmp_path / "run")
    whole = restore(tmp_path / "run")
    few = torch.tensor([0, 13, 40])
    part = Data(
        x=whole.run.graph.x[few],
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        num_nodes=3,
        ids=["a", "b", "c"],
    )
    with torch.no_grad():
        expected = whole.model.scores(whole.data)[few]
        alone = restore(tmp_path / "run", part)
        torch.testing.assert_close(alone.model.scores(alone.data), expected)


def test_a_link_run_given_its_own_graph_sees_the_training_edges(runs, block_files):
    found = restore(runs["link"], block_files[0], features=str(block_files[1]))
    assert found.same
    assert torch.equal(found.data.edge_index, restore(runs["link"]).data.edge_index)


def test_a_run_with_learned_vectors_takes_the_same_nodes_only_in_any_order(runs, block_files, tmp_path):
    lines = block_files[0].read_text().splitlines()
    turned = tmp_path / "turned.csv"
    turned.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    found = restore(runs["embed"], turned)
    assert found.same
    with np.load(runs["embed"] / "embeddings.npz") as stored:
        assert [str(name) for name in found.ids] == stored["ids"].tolist()
        assert np.array_equal(found.positions().coordinates().numpy(), stored["embedding"])
    other = write_blocks(tmp_path, prefix="m")[0]
    with pytest.raises(DataError, match="learned a vector for each of its 48 nodes"):
        restore(runs["embed"], other)


def test_the_files_of_the_run_are_checked(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs["link"], run)
    results = json.loads((run / "results.json").read_text())
    (run / "results.json").write_text(json.dumps(results | {"test_auc": 100.0}))
    with pytest.raises(CorruptFileError, match=r"results\.json"):
        restore(run)
    with pytest.raises(DataError, match="holds no run"):
        restore(tmp_path)


@pytest.mark.parametrize("task", ["classify", "link"])
def test_a_graph_file_that_was_changed_or_is_gone_does_not_matter(task, tmp_path):
    paths = write_blocks(tmp_path)
    run_job(job_on(task, paths), out=tmp_path / "run")
    lines = paths[0].read_text().splitlines()
    paths[0].write_text("\n".join(lines[:-1]) + "\n")
    assert restore(tmp_path / "run").same
    assert not restore(tmp_path / "run", paths[0], features=str(paths[1])).same
    for path in paths:
        path.unlink()
    assert restore(tmp_path / "run").same


def test_unknown_nodes_and_needless_features_are_refused(runs, block_files):
    found = restore(runs["link"])
    assert found.indices(["n3", "n0"]).tolist() == [found.ids.index("n3"), found.ids.index("n0")]
    with pytest.raises(UsageError, match=r"no node of .* has the id 'n333'; did you mean 'n33'"):
        found.indices(["n333"])
    with pytest.raises(UsageError, match="belongs to a graph that is given"):
        restore(runs["link"], features=str(block_files[1]))
