"""torch_geometric is there as ever, only later."""

import subprocess
import sys


def ran(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_waits_is_there_when_it_is_asked_for():
    code = (
        "import sys, gyroformer.graphs.pyg, torch_geometric\n"
        "print(sorted({'torch._dynamo', 'torch_geometric.datasets'} & sys.modules.keys()))\n"
        "print(torch_geometric.datasets.Planetoid.__name__)\n"
        "import torch._dynamo, torch_geometric.datasets\n"
        "print(torch_geometric.is_torch_instance(3, int), torch._dynamo.OptimizedModule.__name__)\n"
        "from torch_geometric.datasets import KarateClub\n"
        "print(KarateClub()[0].num_nodes)"
    )
    assert ran(code).splitlines() == ["[]", "Planetoid", "True OptimizedModule", "34"]


def test_graphs_are_those_of_a_package_that_was_there_before():
    code = (
        "import torch_geometric, sys; from torch_geometric.data import Data\n"
        "from gyroformer.graphs.pyg import Data as ours\n"
        "print(Data is ours, 'torch_geometric.datasets' in sys.modules)"
    )
    assert ran(code).split() == ["True", "True"]


def test_a_module_that_waits_gives_way_to_the_real_one():
    code = (
        "import sys; from gyroformer.graphs.pyg import waiting\n"
        "with waiting('wave', 'sndhdr'):\n"
        "    import wave, sndhdr\n"
        "    from wave import Wave_read\n"
        "print(wave.Wave_read is Wave_read, 'sndhdr' in sys.modules, sys.modules['wave'].Wave_read is Wave_read)"
    )
    assert ran(code).split() == ["True", "False", "True"]
