import pytest
import torch
from torch_geometric.data import Batch, Data

from gyroformer.errors import DataError, UsageError
from gyroformer.tokens import GraphTokenizer, prepare_graph


def graph(nodes=5, *, features=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes))
    pairs = pairs[torch.rand(len(pairs), generator=generator) < 0.6].mT
    edge_index = torch.cat((pairs, pairs.flip(0)), 1)
    x = torch.randn(nodes, features, generator=generator) if features else None
    return Data(x=x, edge_index=edge_index, num_nodes=nodes)


def test_tokens_are_features_identifiers_and_types():
    data = prepare_graph(graph(), identifiers=2)
    tokenizer = GraphTokenizer(3, 4, identifiers=2)
    row = tokenizer(data)
    p, w = data.identifiers, tokenizer.identifier_map.weight
    assert row.tokens.shape == (5 + data.num_edges // 2, 4)
    for u in range(5):
        want = tokenizer.features.linear(data.x[u]) + w @ torch.cat((p[u], p[u])) + tokenizer.node_type
        torch.testing.assert_close(row.tokens[u], want)
    for i, (u, v) in enumerate(data.token_edge_index.mT.tolist()):
        assert u < v
        both = 0.5 * (w @ torch.cat((p[u], p[v])) + w @ torch.cat((p[v], p[u])))
        torch.testing.assert_close(row.tokens[5 + i], both + tokenizer.edge_type)


def test_directed_tokens_keep_the_order_of_the_ends():
    data = prepare_graph(graph(), identifiers=2, edge_tokens="directed")
    tokenizer = GraphTokenizer(3, 4, identifiers=2, edge_tokens="directed")
    tokens = tokenizer(data).tokens[5:]
    p, w = data.identifiers, tokenizer.identifier_map.weight
    u, v = data.edge_index[:, 0]
    torch.testing.assert_close(tokens[0], w @ torch.cat((p[u], p[v])) + tokenizer.edge_type)
    assert len(tokens) == data.num_edges


def test_options_change_the_row():
    data = prepare_graph(graph(), identifiers=2)
    assert len(GraphTokenizer(3, 4, identifiers=2, edge_tokens="none")(data).tokens) == 5
    assert len(GraphTokenizer(3, 4, identifiers=2, graph_token=True)(data).tokens) == 6 + data.num_edges // 2
    table = GraphTokenizer(0, 4, num_nodes=5, identifiers=0)
    assert table.features.table.weight.shape == (5, 4)
    torch.testing.assert_close(table(data).tokens[:5], table.features.table.weight + table.node_type)


def test_edge_features_are_averaged_over_both_directions():
    data = graph()
    data.edge_attr = torch.arange(data.num_edges, dtype=torch.float32).unsqueeze(-1)
    tokenizer = GraphTokenizer(3, 4, identifiers=0, edge_features=1)
    tokens = tokenizer(data).tokens[5:]
    half = data.num_edges // 2
    mean = data.edge_attr[:half] / 2 + data.edge_attr[half:] / 2
    torch.testing.assert_close(tokens, tokenizer.edge_map(mean) + tokenizer.edge_type)


def test_batched_row_equals_the_graphs_alone_and_pads_without_loss():
    graphs = [prepare_graph(graph(n, seed=n), identifiers=2) for n in (5, 1, 7)]
    tokenizer = GraphTokenizer(3, 4, identifiers=2, graph_token=True)
    row = tokenizer(Batch.from_data_list(graphs))
    padded, mask, place = row.padded()
    assert (mask.sum(1) == row.segment.bincount()).all()
    torch.testing.assert_close(padded.flatten(0, 1)[place], row.tokens)
    for i, data in enumerate(graphs):
        torch.testing.assert_close(row.tokens[row.segment == i], tokenizer(data).tokens)


def test_sign_flips_act_in_training_only():
    torch.manual_seed(0)
    data = prepare_graph(graph(), identifiers=4)
    tokenizer = GraphTokenizer(3, 4, identifiers=4, flip_signs=True)
    assert any(not torch.equal(tokenizer(data).tokens, tokenizer(data).tokens) for _ in range(5))
    tokenizer.eval()
    assert torch.equal(tokenizer(data).tokens, tokenizer(data).tokens)


def spoiled(row, column, value):
    data = graph()
    data.x[row, column] = value
    return data


def with_own(width):
    data = graph()
    data.identifiers = torch.ones(5, width)
    return data


def test_the_graph_itself_is_left_alone():
    data = graph()
    before = set(data.keys())
    prepared = prepare_graph(data)
    GraphTokenizer(3, 4)(data)
    assert set(data.keys()) == before
    assert {"identifiers", "token_edge_index"} <= set(prepared.keys())
    assert prepared.edge_index is data.edge_index


def test_each_tokenizer_gets_what_its_own_options_say():
    data = graph(7)
    for made_for in ({}, {"identifiers": 3}, {"identifier_norm": "entry"}, {"edge_tokens": "directed"}):
        carried = prepare_graph(data, **made_for)
        for wanted in ({}, {"identifiers": 3}, {"identifier_norm": "entry"}, {"edge_tokens": "directed"}):
            torch.manual_seed(0)
            tokenizer = GraphTokenizer(3, 4, **wanted)
            fresh = tokenizer(Data(x=data.x, edge_index=data.edge_index.clone(), num_nodes=7))
            assert torch.equal(tokenizer(carried).tokens, fresh.tokens), (made_for, wanted)
            batch = Batch.from_data_list([carried, prepare_graph(graph(5), **made_for)])
            assert torch.equal(tokenizer(batch).tokens[:7], fresh.tokens[:7]), (made_for, wanted)


def test_replaced_or_changed_edges_are_noticed():
    tokenizer = GraphTokenizer(3, 4, identifiers=3)
    for data in (graph(7), tokenizer.prepare(graph(7))):
        before = tokenizer(data).tokens
        data.edge_index = graph(7, seed=1).edge_index
        fresh = tokenizer(Data(x=data.x, edge_index=data.edge_index.clone(), num_nodes=7)).tokens
        assert torch.equal(tokenizer(data).tokens, fresh)
        assert before.shape != fresh.shape or not torch.equal(before, fresh)
        data.edge_index[:, 0] = torch.tensor([5, 6])
        fresh = tokenizer(Data(x=data.x, edge_index=data.edge_index.clone(), num_nodes=7)).tokens
        assert torch.equal(tokenizer(data).tokens, fresh)


def test_a_batch_that_was_not_prepared_is_prepared_graph_by_graph():
    graphs = [graph(5), graph(1), graph(7, seed=3)]
    tokenizer = GraphTokenizer(3, 4, identifiers=2)
    row = tokenizer(Batch.from_data_list(graphs))
    prepared = tokenizer(Batch.from_data_list([tokenizer.prepare(data) for data in graphs]))
    assert torch.equal(row.tokens, prepared.tokens)
    assert torch.equal(row.segment, prepared.segment)


def test_edge_features_have_a_gradient():
    data = graph()
    data.edge_attr = torch.ones(data.num_edges, 1, requires_grad=True)
    GraphTokenizer(3, 4, identifiers=0, edge_features=1)(data).tokens.sum().backward()
    assert data.edge_attr.grad.abs().min() > 0


def test_a_graph_prepared_without_gradients_can_be_trained_on():
    tokenizer, data = GraphTokenizer(3, 4, identifiers=2), graph()
    with torch.inference_mode():
        tokenizer(data)
    tokenizer(data).tokens.sum().backward()
    assert tokenizer.identifier_map.weight.grad is not None


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: GraphTokenizer(3, 4)(spoiled(2, 1, float("nan"))), DataError, "row 2, column 1 is nan"),
        (lambda: GraphTokenizer(4, 4)(graph()), DataError, r"must be \(5, 4\); got \(5, 3\)"),
        (lambda: GraphTokenizer(3, 4)(graph(features=0)), DataError, r"got None"),
        (lambda: GraphTokenizer(0, 4, num_nodes=9)(graph()), DataError, "for 9 nodes, the graph has 5"),
        (
            lambda: GraphTokenizer(3, 4)(Data(x=torch.zeros(0, 3), edge_index=torch.zeros(2, 0).long())),
            DataError,
            "no node",
        ),
        (lambda: GraphTokenizer(3, 4)(Data(x=torch.zeros(2, 3))), DataError, "no edge_index"),
        (lambda: GraphTokenizer(3, 4)(with_own(3)), DataError, r"the model takes \(5, 16\)"),
        (lambda: GraphTokenizer(3, 4, edge_tokens="both"), UsageError, "edge_tokens must be one of"),
        (lambda: GraphTokenizer(0, 4, identifiers=0), UsageError, "tokens need node features"),
        (lambda: GraphTokenizer(3, 4, edge_features=2)(graph()), DataError, "features of width 2"),
    ],
)
def test_wrong_graphs_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_eigenvectors_of_a_large_graph_are_kept_and_those_of_a_small_one_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small = prepare_graph(graph(), identifiers=2)
    assert not list(tmp_path.rglob("*.npz"))
    monkeypatch.setattr("gyroformer.tokens.prepare.KEPT_NODES", 5)
    kept = prepare_graph(graph(), identifiers=2)
    assert [path.parent for path in tmp_path.rglob("*.npz")] == [tmp_path / "gyroformer" / "eigenvectors"]
    monkeypatch.setattr(
        "gyroformer.graphs.spectral.laplacian._compute", lambda *_: pytest.fail("computed again")
    )
    again = prepare_graph(graph(), identifiers=2)
    assert torch.equal(again.identifiers, kept.identifiers)
    assert torch.equal(again.identifiers, small.identifiers)


def test_eigenvectors_are_computed_where_there_is_no_place_to_keep_them(monkeypatch, caplog):
    def nowhere():
        raise UsageError("no home folder is known")

    monkeypatch.setattr("gyroformer.tokens.prepare.KEPT_NODES", 5)
    monkeypatch.setattr("gyroformer.tokens.prepare.user_cache", nowhere)
    assert prepare_graph(graph(), identifiers=2).identifiers.shape == (5, 2)
    assert "are not kept for the next time: no home folder" in caplog.text
