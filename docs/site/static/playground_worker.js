// Runs zerostride in Pyodide, away from the page's own thread. A message {id, question} is answered by
// {id, answer}; the first message is {ready: milliseconds}.
const here = (name) => new URL(name, import.meta.url).href;
const library = fetch(here("zerostride.zip"));

async function start() {
  const begin = performance.now();
  const { loadPyodide } = await import(here("pyodide/pyodide.mjs"));
  const python = await loadPyodide({ indexURL: here("pyodide/") });
  const files = await library;
  if (!files.ok) throw new Error(`zerostride.zip: ${files.status}`);
  python.FS.writeFile("/zerostride.zip", new Uint8Array(await files.arrayBuffer()));
  python.runPython("import sys; sys.path.insert(0, '/zerostride.zip')");
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
