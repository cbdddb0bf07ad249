"""Archives as torch.export writes them, without PyTorch."""

from __future__ import annotations

import json
import pickle
import zipfile

TREE = {"type": None, "context": None, "children_spec": []}
PROGRAM = {
    "graph_module": {
        "graph": {
            "nodes": [
                {
                    "target": "torch.ops.aten.add.Tensor",
                    "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "target"}}}],
                    "outputs": [{"as_tensor": {"name": "add"}}],
                    "metadata": {"stack_trace": "s", "source_fn_stack": "a,torch.hub.load"},
                }
            ],
            "tensor_values": {
                "target": {
                    "dtype": 7,
                    "sizes": [{"as_expr": {"expr_str": "2*s0 + FloorDiv(s1, 2)"}}],
                }
            },
            "custom_obj_values": {},
        },
        "module_call_graph": [
            {
                "fqn": "",
                "signature": {"in_spec": json.dumps([1, TREE]), "out_spec": json.dumps([1, TREE])},
            }
        ],
        "metadata": {"a": "b"},
        "treespec_namedtuple_fields": {"a": {}},
    },
    "range_constraints": {"s0": {"min_val": 2, "max_val": 9}},
    "guards_code": ["__import__('os').system('touch ran')"],
}
CONFIG = {"config": {"b": {"path_name": "weight_0", "use_pickle": False}}}


def archive(path, program=PROGRAM, weights=CONFIG, constants=None, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as file:
        parts = {
            "archive_format": b"pt2",
            "archive_version": b"0",
            "byteorder": b"little",
            "models/model.json": json.dumps(program).encode(),
            "data/weights/model_weights_config.json": json.dumps(weights).encode(),
            "data/weights/weight_0": bytes(20),
            "data/constants/model_constants_config.json": json.dumps(
                constants or {"config": {}}
            ).encode(),
            "data/sample_inputs/model.pt": pickle.dumps(print),
        }
        for name, data in parts.items():
            file.writestr(f"m/{name}", data)
    return path
