// Runs zerostride in Pyodide, away from the page's own thread. A message {id, question} is answered by
// {id, answer}; the first message is {ready: milliseconds}.
const here = (name) => new URL(name, import.meta.url).href;
const library = fetch(here("zerostride.zip"));
const snapshot = fetch(here("snapshot.gz")).then(unpacked);

// The memory of a started Python, or undefined: a build without Node writes an empty file.
async function unpacked(file) {
  if (!file.ok) return undefined;
  const stream = file.body.pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return bytes.length ? bytes : undefined;
}

async function start() {
  const begin = performance.now();
  const { loadPyodide } = await import(here("pyodide/pyodide.mjs"));
  const load = (options) => loadPyodide({ indexURL: here("pyodide/"), ...options });
  const memory = await snapshot.catch(() => undefined);
  // A browser that does not take the snapshot starts Python anew.
  const python = (memory && (await load({ _loadSnapshot: memory }).catch(() => undefined))) || (await load({}));
  const files = await library;
  if (!files.ok) throw new Error(`zerostride.zip: ${files.status}`);
  python.FS.writeFile("/zerostride.zip", new Uint8Array(await files.arrayBuffer()));
  python.runPython("import sys; '/zerostride.zip' in sys.path or sys.path.insert(0, '/zerostride.zip')");
  const answer = python.pyimport("questions").answer;
  postMessage({ ready: performance.now() - begin });
  return answer;
}

const ready = start();
ready.catch((error) => postMessage({ failure: String(error) }));
onmessage = async ({ data: { id, question } }) => {
  const answer = await ready;
  const begin = performance.now();
  try {
    const fields = JSON.parse(answer(JSON.stringify(question)));
    postMessage({ id, answer: { ...fields, milliseconds: performance.now() - begin } });
  } catch (error) {
    postMessage({ id, answer: { ok: false, error: String(error), milliseconds: 0 } });
  }
};
