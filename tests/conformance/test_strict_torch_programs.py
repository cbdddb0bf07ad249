"""Training, compiled and exported programs, and tensors of other kinds work in strict mode."""

from __future__ import annotations

import subprocess
import sys

import pytest
from torch_operands import COLUMN, MARKS, VECTOR, subtract, torch
from torch_watched import modes, refused

import zerostride as zs

pytestmark = MARKS
nn, functional = torch.nn, torch.nn.functional


# Training.


def test_a_training_step_stops_at_its_loss(project):
    code = (
        "model = nn.Linear(4, 1)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "def step(target):\n"
        "    optimizer.zero_grad()\n"
        "    loss = ((model(x) - target) ** 2).mean()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    step = project(code)["step"]
    with zs.strict():
        step(COLUMN)
        with pytest.raises(zs.BroadcastError) as caught:
            step(VECTOR)
    assert str(caught.value).startswith("train.py:5: ")
    assert "    model(x)  6 1\n    target    . 6\n" in str(caught.value)


class _Counting(torch.optim.SGD):
    seen = ()

    def step(self, closure=None):
        type(self).seen = modes()
        return super().step(closure)


def test_an_optimisers_own_operations_are_not_watched():
    weight = nn.Parameter(torch.rand(3))
    weight.grad = torch.rand(3)
    before = modes()
    with zs.strict():
        _Counting([weight], lr=0.1).step()
        assert _Counting.seen == before
        assert modes() == before + 1
        assert refused(subtract)
    _Counting([weight], lr=0.1).step()
    assert modes() == before


def test_a_step_that_fails_ends_nothing():
    class Broken(torch.optim.SGD):
        def step(self, closure=None):
            raise RuntimeError("out of memory")

    weight = nn.Parameter(torch.rand(3))
    weight.grad = torch.rand(3)
    with zs.strict():
        with pytest.raises(RuntimeError):
            Broken([weight], lr=0.1).step()
        with zs.strict():
            assert refused(subtract)
        torch.optim.SGD([weight], lr=0.1).step()
        assert refused(subtract)
    with zs.strict(), pytest.raises(RuntimeError):
        Broken([weight], lr=0.1).step()
    with zs.strict():
        assert refused(subtract)


def test_the_closure_of_an_optimiser_is_watched():
    weight = nn.Parameter(torch.rand(6, 1))

    def closure():
        loss = (weight - VECTOR).sum()
        loss.backward()
        return loss

    with zs.strict(), pytest.raises(zs.BroadcastError):
        torch.optim.LBFGS([weight]).step(closure)


def test_gradients_are_those_without_the_watch():
    def gradient():
        x = torch.ones(6, 2, requires_grad=True)
        (functional.relu(x * torch.tensor([1.0, -2.0])) ** 2).sum().backward()
        return x.grad

    with zs.strict():
        inside = gradient()
    assert torch.equal(inside, gradient())


# The compiler, and tensors of other kinds.


def graph(x, y):
    return torch.where(x > 0, functional.relu(x) * y + 1, x).sum() + functional.mse_loss(x, x * y)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_code_runs_whole(backend, caplog):
    from zerostride.lint.torch_mode import COMPILER

    torch._dynamo.reset()
    x, y = torch.rand(6, 2), torch.rand(2)
    expected = graph(x, y)
    compiled = torch.compile(graph, fullgraph=True, backend=backend)
    COMPILER.logged = False
    with caplog.at_level("WARNING", "zerostride.strict"):
        assert torch.allclose(compiled(x, y), expected)
        assert not caplog.records
        with zs.strict():
            for _ in range(3):
                assert torch.allclose(compiled(x, y), expected)
            torch.compile(lambda x: x * 2, backend=backend)(x)
            accident = torch.compile(lambda a, b: a - b, fullgraph=True, backend=backend)
            assert accident(COLUMN, VECTOR).shape == (6, 6)
            assert refused(subtract)
    (record,) = caplog.records
    assert "zs.strict() does not watch compiled code" in record.getMessage()
    assert torch.allclose(compiled(x, y), expected)
    torch._dynamo.reset()


@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_are_the_same(strict):
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x, other = torch.rand(2, 5, 8), torch.rand(3, 5, 8)
    shapes = ({0: torch.export.Dim("batch", min=2)},)
    with zs.strict():
        program = torch.export.export(model, (x,), dynamic_shapes=shapes, strict=strict)
    outside = torch.export.export(model, (x,), dynamic_shapes=shapes, strict=strict)
    targets = [[str(node.target) for node in p.graph.nodes] for p in (program, outside)]
    assert targets[0] == targets[1]
    assert torch.allclose(program.module()(other), model(other), atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*is deprecated")
def test_traced_programs_are_the_same():
    def function(a, b):
        return a * 2 + b

    inputs = torch.rand(6, 2), torch.rand(2)
    with zs.strict():
        inside = torch.jit.trace(function, inputs)
    outside = torch.jit.trace(function, inputs)
    kinds = [[node.kind() for node in p.graph.nodes()] for p in (inside, outside)]
    assert kinds[0] == kinds[1]


def test_vmap_sees_the_shapes_of_one_sample():
    pair = torch.rand(5, 6, 1), torch.rand(5, 6)
    with zs.strict():
        total = torch.func.vmap(lambda a, b: (a[:, 0] - b).sum())(*pair)
        with pytest.raises(zs.BroadcastError, match=r"\(6, 1\) and \(6,\)"):
            torch.func.vmap(lambda a, b: a - b)(*pair)
        assert torch.func.grad(lambda a: (a * a).sum())(VECTOR).shape == (6,)
        assert torch.func.jacrev(lambda a: a * VECTOR)(VECTOR).shape == (6, 6)
    assert total.shape == (5,)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_work(layout):
    rows = [torch.rand(2, 3), torch.rand(4, 3)]
    nested = torch.nested.nested_tensor(rows, layout=getattr(torch, layout))
    with zs.strict(), zs.strict(max_growth=1):
        assert torch.allclose((nested * nested).unbind()[1], rows[1] ** 2)


@pytest.mark.filterwarnings("ignore:.*is deprecated")
def test_other_tensors_work():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with zs.strict():
        with FakeTensorMode():
            assert (torch.rand(6, 3) + torch.rand(3)).shape == (6, 3)
            assert refused(lambda: torch.rand(6, 1) - torch.rand(6))
        sparse = torch.eye(3).to_sparse()
        assert (sparse + sparse).is_sparse
        traced = torch.fx.symbolic_trace(lambda a, b: a - b)
        assert traced(VECTOR, VECTOR).shape == (6,)
        scripted = torch.jit.script(nn.Linear(6, 3))
        assert scripted(VECTOR).shape == (3,)
        meta = torch.rand(6, 1, device="meta")
        assert refused(lambda: meta - torch.rand(6, device="meta"))


class _OwnRule(torch.Tensor):
    """A tensor whose operations mean something else."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.sub:
            return "mine"
        return super().__torch_function__(func, types, args, kwargs or {})


class _Plain(torch.Tensor):
    pass


def test_classes_with_their_own_operations_are_left_alone():
    with zs.strict():
        assert COLUMN.as_subclass(_OwnRule) - VECTOR == "mine"
        assert refused(lambda: COLUMN.as_subclass(_Plain) - VECTOR)
        assert refused(lambda: nn.Parameter(COLUMN) - VECTOR)


LOADER = """
import torch, zerostride as zs

def collate(samples):
    try:
        torch.ones(5, 1) - torch.ones(5)
    except zs.BroadcastError:
        return True
    return False

with zs.strict():
    print([all(torch.utils.data.DataLoader(range(2), num_workers=workers, collate_fn=collate))
           for workers in (0, 1)])
"""


def test_data_loaders_work(tmp_path):
    """In a process of its own: workers are forked, and the tests' process has engines' threads."""
    script = tmp_path / "loader.py"
    script.write_text(LOADER)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[True, True]\n", done.stderr
