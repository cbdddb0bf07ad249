"""TensorFlow.js in Node.js (npm: @tensorflow/tfjs-core @tensorflow/tfjs-backend-cpu): one process.

TFJS_BACKEND=wasm takes @tensorflow/tfjs-backend-wasm instead. The backend is part of the release,
such as 4.22.0+wasm. NODE_PATH names the node_modules of another folder than the current one.
"""

import base64
import json
import os
import subprocess

import numpy as np

NAME = "tfjs"
BACKEND = os.environ.get("TFJS_BACKEND", "cpu")

OWN = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "remainder": "mod",
    "floor_divide": "floorDiv",
    "squared_difference": "squaredDifference",
    "not_equal": "notEqual",
    "greater_equal": "greaterEqual",
    "less_equal": "lessEqual",
    "logical_and": "logicalAnd",
    "logical_or": "logicalOr",
    "logical_xor": "logicalXor",
    "bitwise_and": "bitwiseAnd",
    "broadcast_to": "broadcastTo",
}
PROGRAM = r"""
const tf = require('@tensorflow/tfjs-core');
const backend = process.argv[1];
require('@tensorflow/tfjs-backend-' + backend);
const kinds = {float32: Float32Array, int32: Int32Array, bool: Uint8Array};
async function answer({op, operands, target}) {
  const tensors = operands.map(([kind, shape, content]) => {
    const data = new Uint8Array(Buffer.from(content, 'base64'));
    return tf.tensor(new kinds[kind](data.buffer), shape, kind);
  });
  const result = tf[op](...tensors, ...(target ? [target] : []));
  const {buffer, byteOffset, byteLength} = await result.data();
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('base64');
  return [result.dtype, result.shape, text];
}
tf.setBackend(backend).then(async () => {
  console.log(tf.version_core + '+' + backend);
  for await (const line of require('readline').createInterface({input: process.stdin})) {
    tf.engine().startScope();
    const reply = await answer(JSON.parse(line)).catch(error => {
      if (error instanceof WebAssembly.RuntimeError) process.exit(1);  // its memory is not safe
      return String(error);
    });
    tf.engine().endScope();
    console.log(JSON.stringify(reply));
  }
});
"""
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
NODE = subprocess.Popen(["node", "-e", PROGRAM, BACKEND], **PIPES)
VERSION = NODE.stdout.readline().strip()
if not VERSION:
    raise ImportError(f"Node.js has no @tensorflow/tfjs-core and tfjs-backend-{BACKEND}")


def run(op, arrays, target=None):
    """One op; `target` is the shape, for broadcast_to."""
    operands = [[x.dtype.name, x.shape, base64.b64encode(x.tobytes()).decode()] for x in arrays]
    question = {"op": OWN.get(op, op), "operands": operands, "target": target}
    print(json.dumps(question), file=NODE.stdin, flush=True)
    line = NODE.stdout.readline()
    if not line:
        raise SystemExit("Node.js ended")  # a crash, and no refusal
    reply = json.loads(line)
    if isinstance(reply, str):
        raise ValueError(reply)
    kind, shape, content = reply
    return np.frombuffer(base64.b64decode(content), kind).reshape(shape)
