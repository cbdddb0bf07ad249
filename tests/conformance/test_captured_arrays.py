"""Other libraries' arrays that a fused function takes from outside: plain data is read in each
call, everything else is refused at the user's line, by the name that it has there."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import zerostride as zs

pytestmark = [
    pytest.mark.conformance,
    # PyTorch's own, of what it calls itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*"),
]

X = np.array([1.0, 2.0, 3.0], np.float32)
NAMED = "weights \\({} of {}\\) is taken from outside of the fused function, and {}"


def ways(weights):
    """Functions that meet an array in all the ways that there are."""
    return (
        lambda x: x * weights,
        lambda x: weights * x,
        lambda x: zs.multiply(x, weights),
        lambda x: np.multiply(x, weights),
        lambda x: np.multiply(weights, x),
        lambda x: zs.where(x > 0, weights, x),
        lambda x: x == weights,
    )


def refused(weights, kind, library, reason, given=X):
    """That an array is refused, wherever a function meets it."""
    for function in ways(weights):
        with pytest.raises(zs.TraceError, match=NAMED.format(kind, library, reason)) as caught:
            zs.fuse(function)(given)
        assert "weights" in caught.value.place.splitlines()[1]
        assert caught.value.place.startswith(__file__)
        assert "operand" in caught.value.hint


# PyTorch


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="its tensors are what is taken")


def test_tensors_are_read_in_each_call(torch):
    weights = torch.tensor([1.0, 2.0, 3.0])
    for given, like in ((X, np.asarray), (torch.tensor(X), lambda one: one.numpy())):
        weights[:] = torch.tensor([1.0, 2.0, 3.0])
        functions = [zs.fuse(function) for function in ways(weights)]
        for numbers in ([1.0, 2.0, 3.0], [0.0, 5.0, 3.0], [3.0, 2.0, 1.0]):
            weights[:] = torch.tensor(numbers)
            wanted = [function(X) for function in ways(np.array(numbers, np.float32))]
            for function, one in zip(functions, wanted, strict=True):
                np.testing.assert_array_equal(like(function(given)), one)
    assert zs.fuse(lambda x: (x, weights))(X)[1].tolist() == [3, 2, 1]


NAMES = "add sub mul truediv floordiv mod pow lt le gt ge eq ne and_ or_ xor lshift rshift"


@pytest.mark.parametrize("name", NAMES.split())
def test_operators_take_tensors_on_either_side(torch, name):
    do = getattr(operator, name)
    x, w = np.array([5, 2, 3]), np.array([2, 3, 3])
    weights = torch.tensor(w)
    np.testing.assert_array_equal(zs.fuse(lambda x: do(x, weights))(x), do(x, w))
    np.testing.assert_array_equal(zs.fuse(lambda x: do(weights, x))(x), do(w, x))


def test_tensor_that_moves_is_read_at_its_new_place(torch):
    weights = torch.ones(3)
    function = zs.fuse(lambda x: x * weights)
    for given in (X, torch.tensor(X)):
        assert function(given).tolist() == X.tolist()
    weights.data = torch.tensor([2.0, 3.0, 4.0])
    for given in (X, torch.tensor(X)):
        assert function(given).tolist() == [2, 6, 12]
    weights.resize_(1)
    for given in (X, torch.tensor(X)):
        assert function(given).tolist() == [2, 4, 6]


def test_captured_tensor_with_a_gradient_is_refused(torch):
    parameter = torch.nn.Parameter(torch.ones(3))
    for given in (X, torch.tensor(X), torch.tensor(X, requires_grad=True)):
        refused(parameter, "Parameter", "torch", "requires a gradient", given)
        refused(parameter * 2, "Tensor", "torch", "requires a gradient", given)
        with torch.no_grad():  # what is traced may be called elsewhere
            refused(parameter, "Parameter", "torch", "requires a gradient", given)
    frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    function = zs.fuse(lambda x: x * frozen)
    assert function(X).tolist() == X.tolist()
    frozen.requires_grad_(True)
    for _ in range(2):
        with pytest.raises(zs.TraceError, match=r"frozen \(Parameter of torch\)") as caught:
            function(X)
        assert "function = zs.fuse(lambda x: x * frozen)" in caught.value.place


def test_parameters_are_named_as_in_the_source_line(torch):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.ones(3))
            self.inner = torch.nn.Linear(3, 3)

        def forward(self, x):
            return zs.fuse(lambda x: x * self.gain)(x) + zs.fuse(lambda x: x + self.inner.bias)(x)

    layer = Layer()
    with pytest.raises(zs.TraceError, match=r"self\.gain \(Parameter of torch\)"):
        layer(X)
    with pytest.raises(zs.TraceError, match=r"layer\.inner\.bias \(Parameter of torch\)"):
        zs.fuse(lambda x: x * layer.inner.bias)(X)
    held = {"bias": layer.gain}
    with pytest.raises(zs.TraceError, match=r"held\['bias'\] \(Parameter of torch\)"):
        zs.fuse(lambda x: x * held["bias"])(X)
    with pytest.raises(zs.TraceError, match="a Tensor of torch is taken from outside"):
        zs.fuse(lambda x: x * (layer.gain * 2))(X)
    with pytest.raises(zs.TraceError, match=r"a list is taken .* holds what requires a gradient"):
        zs.fuse(lambda x: x * [*layer.gain])(X)
    with pytest.raises(zs.TraceError, match="requires a gradient"):
        zs.fuse(lambda x: (x, layer.gain))(X)


def test_lists_of_tensors_are_operands(torch):
    parameter = torch.nn.Parameter(torch.ones(2))
    double = zs.fuse(lambda x: x * 2)
    assert double([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [2, 4]
    for call in (lambda x: zs.add(x, 1), double, zs.sum):
        with pytest.raises(TypeError, match="operand 0 is a list that holds what requires a grad"):
            call([*parameter])


def test_tensors_on_other_devices_or_layouts_must_be_operands(torch):
    meta = torch.empty(3, device="meta")
    refused(meta, "Tensor", "torch", "lies on meta")
    refused(meta, "Tensor", "torch", "lies on meta", torch.tensor(X))
    refused(torch.ones(3).to_sparse(), "Tensor", "torch", "is sparse")
    with torch._subclasses.FakeTensorMode():
        refused(torch.ones(3), "FakeTensor", "torch", "is a FakeTensor, by which PyTorch traces")

    def inner(row):
        return zs.fuse(lambda x: x * row)(torch.tensor(X))

    with pytest.raises(zs.TraceError, match=r"row \(Tensor of torch\).* is traced by torch.func"):
        torch.func.vmap(inner)(torch.ones(2, 3))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3))
        refused(dual, "Tensor", "torch", "has a forward-mode gradient")


def test_captured_array_of_one_library_works_with_operands_of_another(torch):
    plain, tensor = np.array([2.0, 3.0, 4.0]), torch.tensor([2.0, 3.0, 4.0])
    assert zs.fuse(lambda x: x * plain)(torch.tensor(X)).tolist() == [2, 6, 12]
    assert type(zs.fuse(lambda x: x * plain)(torch.tensor(X))) is torch.Tensor
    assert type(zs.fuse(lambda x: x * tensor)(X)) is np.ndarray
    elsewhere = zs.fuse(lambda x: x * plain + tensor)(torch.empty(2, 3, device="meta"))
    assert (elsewhere.device.type, elsewhere.shape) == ("meta", (2, 3))


def test_tensor_changed_before_the_backward_pass_is_noticed(torch):
    weights = torch.ones(3)
    x = torch.tensor(X, requires_grad=True)
    y = zs.fuse(lambda x: x * weights)(x).sum()
    weights += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    zs.fuse(lambda x: x * weights)(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_pytorch_functions_are_refused_at_the_users_line(torch):
    weights = torch.ones(3)

    def added(x):
        total = weights
        total += x
        return total

    for function, message in (
        (lambda x: torch.exp(x), r"torch.exp cannot be fused(.|\n)*write it with zs.exp"),
        (lambda x: torch.nn.functional.relu(x), r"torch.relu .*(.|\n)*relu\(x\)(.|\n)*zs.relu"),
        (lambda x: torch.mul(weights, x), r"torch.mul .*(.|\n)*zs.multiply"),
        (lambda x: torch.softmax(x, -1), r"torch.softmax .*(.|\n)*NumPy's ufuncs"),
        (added, "a Tensor is changed in place"),
    ):
        with pytest.raises(zs.TraceError, match=message) as caught:
            zs.fuse(function)(X)
        assert caught.value.place.startswith(__file__)
    assert weights.tolist() == [1, 1, 1]


# JAX


def test_captured_jax_arrays_give_numpys_results():
    jax = pytest.importorskip("jax", reason="its arrays are what is taken")
    numpy = jax.numpy
    weights = numpy.asarray([0.0, 2.0, 3.0])
    for function, plain in zip(ways(weights), ways(np.asarray(weights)), strict=True):
        for given in (X, numpy.asarray(X), weights):
            for _ in range(2):
                result = zs.fuse(function)(given)
                np.testing.assert_array_equal(np.asarray(result), plain(np.asarray(given)))
        np.testing.assert_array_equal(np.asarray(jax.jit(zs.fuse(function))(X)), plain(X))
    # What JAX leaves to the others has no dtype of its own.
    weak = numpy.asarray(2.0)
    assert weak.weak_type
    assert zs.fuse(lambda x: x * weak)(X.astype(np.float16)).dtype == np.float16


def test_jax_tracers_must_be_operands():
    jax = pytest.importorskip("jax", reason="its tracers are what is refused")

    def total(weights):
        refused(weights, ".*Tracer", "jax", "is traced by JAX")
        refused(weights, ".*Tracer", "jax", "is traced by JAX", jax.numpy.asarray(X))
        return zs.fuse(lambda x, w: (x * w).sum())(X, weights)

    weights = jax.numpy.ones(3)
    assert jax.grad(total)(weights).tolist() == X.tolist()
    assert jax.jit(total)(weights) == 6
    assert jax.vmap(total)(jax.numpy.ones((2, 3))).tolist() == [6, 6]

    gone = weights + 1
    function = zs.fuse(lambda x: x * gone)
    assert function(X).tolist() == [2, 4, 6]
    gone.delete()
    with pytest.raises(zs.TraceError, match=r"gone \(ArrayImpl of jax\).*was deleted, or donated"):
        function(X)


# What is lazy, has names, or lies elsewhere


def test_dask_arrays_must_be_operands():
    da = pytest.importorskip("dask.array", reason="its arrays are what is refused")
    for given in (X, da.from_array(X)):
        refused(da.ones(3), "Array", "dask", "is lazy", given)


def test_named_arrays_must_be_operands():
    xr = pytest.importorskip("xarray", reason="its arrays are what is refused")
    lost = "its dimensions' names would be lost"
    weights = xr.DataArray(X, dims="x")
    for given in (X, weights):
        for function in ways(weights):
            with pytest.raises(zs.TraceError, match=f"of xarray.*{lost}"):
                zs.fuse(function)(given)
    for one in (weights.variable, weights.to_dataset(name="a")):
        with pytest.raises(zs.TraceError, match=lost):
            zs.fuse(lambda x, one=one: x * one)(X)
    assert zs.fuse(lambda x: x * weights.data)(X).tolist() == [1, 4, 9]


def test_arrays_in_files_must_be_operands(tmp_path):
    zarr = pytest.importorskip("zarr", reason="its arrays are what is refused")
    store = zarr.array(X)
    refused(store, "Array", "zarr", "is no array in memory")
    assert zs.fuse(lambda x: x * 2)(store).tolist() == [2, 4, 6]
    h5py = pytest.importorskip("h5py", reason="its data sets are what is refused")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        refused(file.create_dataset("x", data=X), "Dataset", "h5py", "is no array in memory")


def test_pandas_columns_are_read_in_each_call():
    pd = pytest.importorskip("pandas", reason="its columns are what is taken")
    weights = pd.Series([1.0, 2.0, 3.0], index=[3, 2, 1])
    functions = [zs.fuse(function) for function in (*ways(weights), lambda x: weights - x)]
    for function in functions:
        function(X)
    weights.iloc[0] = 7
    plain = np.array([7.0, 2.0, 3.0])
    for function, wanted in zip(functions, (*ways(plain), lambda x: plain - x), strict=True):
        np.testing.assert_array_equal(function(X), wanted(X))
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1, 2, 3]})
    refused(table, "DataFrame", "pandas", "is no array in memory")
    assert zs.fuse(lambda x: x * table["a"])(X).tolist() == [1, 4, 9]


def test_pandas_operands_with_other_labels_are_refused():
    pd = pytest.importorskip("pandas", reason="its labels are what is compared")
    column = pd.Series([1.0, 2.0, 3.0])
    turned = pd.Series([3.0, 2.0, 1.0], index=[2, 1, 0])
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    row = pd.Series([1.0, 2.0], index=["b", "a"])
    for call in (zs.subtract, zs.fuse(lambda a, b: a - b)):
        for one, other in (
            (column, turned),
            (table, row),
            (row, table),
            (table, table[["b", "a"]]),
        ):
            with pytest.raises(TypeError, match="operands 0 and 1 of pandas have other labels"):
                call(one, other)
        assert call(column, column * 3).tolist() == [-2, -4, -6]
        assert call(column, turned.sort_index()).tolist() == (column - turned).tolist()
        assert call(table, row[["a", "b"]]).tolist() == (table - row).to_numpy().tolist()
        assert call(column, turned.to_numpy()).tolist() == [-2, 0, 2]
        assert call(table, pd.Series([2.0])).tolist() == [[-1, 1], [0, 2]]
    assert zs.where(column > 1, column, 0.0).tolist() == [0, 2, 3]


def test_captured_arrays_of_the_standard_work():
    xp = pytest.importorskip("array_api_strict", reason="its arrays are what is taken")
    weights = xp.asarray([2.0, 3.0, 4.0])
    function = zs.fuse(lambda x: x * weights)
    assert function(X).tolist() == [2, 6, 12]
    weights[0] = 5
    assert function(X).tolist() == [5, 6, 12]
    there = xp.asarray([2.0, 3.0, 4.0], device=xp.Device("device1"))
    with pytest.raises(zs.TraceError, match=r"there \(Array of array_api_strict\).* lies on"):
        zs.fuse(lambda x: x * there)(X)
    with pytest.raises(TypeError, match=r"Expected Array(.|\n)*there \* x"):
        zs.fuse(lambda x: there * x)(X)
