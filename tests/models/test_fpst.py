import json
import shutil

import pytest
import torch
from small_graphs import graph, renumbered
from torch_geometric.data import Batch

import gyroformer as gf
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.models import TokenGT, get_model
from gyroformer.tokens import prepare_graph

KINDS = ["fpst", "tokengt"]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_either_attention_gives_points_or_scores_with_gradients(name, attention):
    torch.manual_seed(0)
    build = get_model(name).build
    data = graph()
    assert build(3, attention=attention)(data).shape == (12, 2, 8)
    model = build(3, classes=4, attention=attention, layers=2)
    model(data).square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    assert build(3, classes=4, graph_token=True, attention=attention)(data).shape == (1, 4)
    assert model.curvatures.shape == (2, 2)


@pytest.mark.parametrize("attention", ["linear", "softmax"])
@pytest.mark.parametrize(
    "options", [{}, {"layers": 2, "graph_token": True, "final_norm": True, "norm": False}]
)
def test_flat_fpst_is_tokengt(attention, options):
    torch.manual_seed(0)
    curved = gf.FPST(3, classes=4, attention=attention, **options).double()
    flat = TokenGT(3, classes=4, attention=attention, **options).double()
    flat.load_state_dict(curved.state_dict(), strict=False)
    data = graph()
    data.x = data.x.double()
    torch.testing.assert_close(curved(data), flat(data), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("attention", ["linear", "softmax"])
@pytest.mark.parametrize("edge_tokens", ["undirected", "directed", "none"])
def test_renumbering_nodes_and_reordering_edges_permutes_the_result(attention, edge_tokens):
    torch.manual_seed(0)
    model = gf.FPST(3, attention=attention, edge_tokens=edge_tokens, curvature=[-0.5, 0.4]).double().eval()
    data = prepare_graph(graph(), edge_tokens=edge_tokens)
    data.x, data.identifiers = data.x.double(), data.identifiers.double()
    del data.identifiers_are  # the nodes keep these, however they are numbered
    order = torch.randperm(12)
    torch.testing.assert_close(model(renumbered(data, order)), model(data)[order])


@pytest.mark.parametrize("attention", ["linear", "softmax"])
@pytest.mark.parametrize("graph_token", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_a_batch_equals_its_graphs_alone(name, attention, graph_token):
    torch.manual_seed(0)
    model = get_model(name).build(3, attention=attention, graph_token=graph_token, classes=3, identifiers=4)
    graphs = [prepare_graph(graph(n, seed=n), identifiers=4) for n in (5, 1, 9)]
    together = model(Batch.from_data_list(graphs))
    torch.testing.assert_close(together, torch.cat([model(data) for data in graphs]), rtol=1e-4, atol=1e-5)


@pytest.fixture
def saved(tmp_path):
    gf.FPST(3, classes=4).save_pretrained(tmp_path)
    return tmp_path


def edit(change):
    def spoil(folder):
        about = json.loads((folder / "config.json").read_text())
        change(about)
        (folder / "config.json").write_text(json.dumps(about))

    return spoil


def truncate(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def flip_one_bit(folder):
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-5] ^= 1
    (folder / "model.safetensors").write_bytes(content)


@pytest.mark.parametrize(
    "spoil, error, message",
    [
        (truncate, CorruptFileError, "its bytes are not those that were saved"),
        (flip_one_bit, CorruptFileError, "its bytes are not those that were saved"),
        (lambda f: (f / "model.safetensors").unlink(), CorruptFileError, "model.safetensors: is missing"),
        (lambda f: (f / "config.json").write_text('{"format": 1'), CorruptFileError, "cannot be read"),
        (lambda f: (f / "config.json").write_text("[]"), CorruptFileError, "is not a JSON object"),
        (lambda f: shutil.rmtree(f), DataError, "no saved model here"),
        (edit(lambda a: a.update(format=99)), CorruptFileError, "format 99 is none that this version reads"),
        (edit(lambda a: a.update(model="tokengt")), DataError, "of kind 'tokengt', not 'fpst'"),
        (edit(lambda a: a["config"].update(dim=32)), CorruptFileError, "does not fit its configuration"),
    ],
)
def test_a_spoiled_folder_gives_one_clear_error(spoil, error, message, saved):
    spoil(saved)
    with pytest.raises(error, match=message):
        gf.FPST.from_pretrained(saved)


def test_wrong_use_is_named(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'fpst'"):
        get_model("fps-t")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be created"):
        gf.FPST(3).save_pretrained(tmp_path / "file" / "model")


def test_karate(data_folder):
    data = gf.load("karate", folder=data_folder)
    model = gf.FPST(0, num_nodes=34)
    assert model(data).shape == (34, 2, 8)
