// Runs zerostride in Pyodide, away from the page's own thread. A message {id, question} is answered by
// {id, answer}, and a message {id, file: {name, bytes}} is written for later questions; the first message is
// {ready: milliseconds}.
const here = (name) => new URL(name, import.meta.url).href;
const library = fetch(here("zerostride.zip"));
const snapshot = fetch(here("snapshot.gz")).then(unpacked);
const OF_MODELS = ["take", "audit", "report"];
let audit; // the modules of an audit, loaded with the first question about a model

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
  await write(python, "/zerostride.zip", await library);
  python.runPython("import sys; '/zerostride.zip' in sys.path or sys.path.insert(0, '/zerostride.zip')");
  const questions = python.pyimport("questions");
  postMessage({ ready: performance.now() - begin });
  return { python, questions };
}

async function write(python, name, response) {
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  python.FS.writeFile(name, new Uint8Array(await response.arrayBuffer()));
}

async function openAudit({ python, questions }) {
  await write(python, "/audit.zip", await fetch(here("audit.zip")));
  questions.open_audit("/audit.zip");
}

async function answerTo({ question, file }) {
  const started = await ready;
  if (file) {
    started.python.FS.writeFile(file.name, file.bytes);
    return { ok: true };
  }
  if (OF_MODELS.includes(question.ask)) {
    audit ??= openAudit(started);
    await audit.catch((error) => {
      audit = undefined; // the next question loads it again
      throw error;
    });
  }
  return JSON.parse(started.questions.answer(JSON.stringify(question)));
}

const ready = start();
ready.catch((error) => postMessage({ failure: String(error) }));
onmessage = async ({ data: { id, ...message } }) => {
  await ready;
  const begin = performance.now();
  const answer = await answerTo(message).catch((error) => ({ ok: false, error: String(error) }));
  postMessage({ id, answer: { ...answer, milliseconds: performance.now() - begin } });
};
