"""The source of the child that runs onnx2tf, in its own environment."""

from __future__ import annotations

#: onnx2tf overwrites its input, logs all that it does, and ends the process where it fails. Names
#: become plain ones, since TensorFlow refuses many. Inputs keep their order of axes. It makes a
#: Keras model, which TensorFlow writes here: once, and with the inputs and outputs in the model's
#: order in place of its own. Inputs have their names in the file, outputs their numbers.
#:
#: It chooses orders of axes by what each op computes of ones, where all orders may agree. A model
#: whose results lie in order has the names of its inputs as a further word: then onnx2tf compares
#: fewer orders, by the model's own inputs. It reads none of rank 0.
SOURCE = """
import re
import tempfile
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
with tempfile.TemporaryFile() as said:
    os.dup2(said.fileno(), 1)
    os.dup2(1, 2)
    import onnx
    import onnx2tf
    model = onnx.load(sys.argv[2])
    plain, paths = {"": ""}, {}
    def name_of(old):
        return plain.setdefault(old, f"t{len(plain):06d}")
    def rename(graph):
        for value in [*graph.input, *graph.output, *graph.initializer, *graph.value_info]:
            value.name = name_of(value.name)
        for node in graph.node:
            paths[f"{node.op_type}-{len(paths)}"] = f"{node.op_type} {node.name}"
            node.name = [*paths][-1]
            node.input[:] = map(name_of, node.input)
            node.output[:] = map(name_of, node.output)
            for attribute in node.attribute:
                for body in [attribute.g, *attribute.graphs]:
                    rename(body)
    rename(model.graph)
    onnx.save(model, "model.onnx")
    names = [value.name for value in model.graph.input]
    options = {}
    if sys.argv[4:]:
        import numpy
        options["disable_strict_mode"] = True
        arrays = dict(zip(map(name_of, json.loads(sys.argv[4])), numpy.load("inputs.npz").values()))
        if all(array.ndim for array in arrays.values()):
            for name, array in arrays.items():
                numpy.save(name, array)
            options["custom_input_op_name_np_data_path"] = [[n, f"{n}.npy"] for n in arrays]
    failure = ""
    try:
        keras = onnx2tf.convert(
            input_onnx_file_path="model.onnx", output_folder_path="written",
            keep_shape_absolutely_input_names=names, non_verbose=True,
            not_use_onnxsim=True, disable_model_save=True, **options)
        import tensorflow
        shapes = [tensorflow.TensorSpec(x.shape, x.dtype, x.name) for x in keras.inputs]
        call = tensorflow.function(lambda *arrays: keras(arrays), input_signature=shapes)
        lite = tensorflow.lite
        writer = lite.TFLiteConverter.from_concrete_functions([call.get_concrete_function()], keras)
        writer.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.SELECT_TF_OPS]
        content = writer.convert()
    except (Exception, SystemExit) as error:
        failure = f"{type(error).__name__}: {error}"
    sys.stdout.flush()
    said.seek(0)
    text = said.read().decode(errors="replace")
if not failure:
    from tensorflow.lite.python import schema_py_generated as schema
    import flatbuffers
    whole = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    graph = whole.subgraphs[0]
    inputs = {k: re.search(r"t\\d{6}", graph.tensors[k].name.decode()) for k in graph.inputs}
    if all(inputs.values()):
        graph.inputs = sorted(inputs, key=lambda k: names.index(inputs[k][0]))
    numbers = [re.search(rb":(\\d+)$", graph.tensors[k].name) for k in graph.outputs]
    if all(numbers):
        order = sorted(range(len(numbers)), key=lambda k: int(numbers[k][1]))
        graph.outputs = [graph.outputs[k] for k in order]
        for signature in whole.signatureDefs or ():
            signature.outputs = [signature.outputs[k] for k in order]
    builder = flatbuffers.Builder(0)
    builder.Finish(whole.Pack(builder), b"TFL3")
    with open(sys.argv[3], "wb") as file:
        file.write(builder.Output())
else:
    nodes = re.findall("onnx_op_name: (\\S+)", text)
    reasons = re.findall(r"^\\w+Error: (.+)$", text, re.M)
    where = f"{paths.get(nodes[-1], nodes[-1])}: " if nodes else ""
    answer.write((where + (reasons[-1] if reasons else failure))[:300].encode())
"""

__all__ = ["SOURCE"]
