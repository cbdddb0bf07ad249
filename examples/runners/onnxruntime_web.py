# /// script
# dependencies = ["onnx"]
# ///
"""ONNX Runtime Web on WebAssembly, in one process of Node.js (npm: onnxruntime-web; PyPI: onnx).

NODE_PATH names the node_modules of another folder than the current one.
"""

import base64
import json
import subprocess

import numpy as np

from zerostride.runtimes.learn.onnx_model import onnx_model

NAME = "onnxruntime-web"
NAMES = "onnx"

PROGRAM = r"""
const ort = require('onnxruntime-web');
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'fatal';
const kinds = {float32: Float32Array, float64: Float64Array, float16: Uint16Array,
  bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array};
const bytes = text => new Uint8Array(Buffer.from(text, 'base64'));
async function answer({model, operands}) {
  const session = await ort.InferenceSession.create(bytes(model), {executionProviders: ['wasm']});
  try {
    const feeds = {};
    operands.forEach(([kind, shape, content], k) => {
      feeds['x' + k] = new ort.Tensor(kind, new kinds[kind](bytes(content).buffer), shape);
    });
    const {y} = await session.run(feeds);
    const {buffer, byteOffset, byteLength} = y.data;
    return [y.type, y.dims, Buffer.from(buffer, byteOffset, byteLength).toString('base64')];
  } finally {
    await session.release();
  }
}
(async () => {
  console.log(ort.env.versions.web);
  for await (const line of require('readline').createInterface({input: process.stdin})) {
    const reply = await answer(JSON.parse(line)).catch(error => {
      if (error instanceof WebAssembly.RuntimeError) process.exit(1);  // its memory is not safe
      return String(error);
    });
    console.log(JSON.stringify(reply));
  }
})();
"""
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
NODE = subprocess.Popen(["node", "-e", PROGRAM], **PIPES)
VERSION = NODE.stdout.readline().strip()
if not VERSION:
    raise ImportError("Node.js has no onnxruntime-web: npm install onnxruntime-web")


def encoded(content):
    """Bytes as text."""
    return base64.b64encode(content).decode()


def run(op, arrays, target=None):
    """One node."""
    operands = [[array.dtype.name, array.shape, encoded(array.tobytes())] for array in arrays]
    question = {"model": encoded(onnx_model(op, arrays, target)), "operands": operands}
    print(json.dumps(question), file=NODE.stdin, flush=True)
    line = NODE.stdout.readline()
    if not line:
        raise SystemExit("Node.js ended")  # a crash, and no refusal
    reply = json.loads(line)
    if isinstance(reply, str):
        raise ValueError(reply)
    kind, shape, content = reply
    return np.frombuffer(base64.b64decode(content), kind).reshape(shape)
