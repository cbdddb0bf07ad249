// The playground's page: reads the form, asks the worker, shows the answers. The question is kept in the
// address after the "#", which a browser sends to no server.
const at = (id) => document.getElementById(`pg-${id}`);
const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
};
const NAMES = ["x", "y", "z", "w"];
const FIELDS = ["rule", "engine", "op", "axis", "facts"];
const MARKS = { different: "≠", refused: "·", same: "=", same_here: "~", only_here: "+", unknown: "?" };
const WORDS = {
  different: "different",
  refused: "refused",
  same: "same",
  same_here: "same here, different at other sizes",
  only_here: "accepted",
  unknown: "not known",
};

// --- The worker ---------------------------------------------------------------------------------

const worker = new Worker(new URL("playground_worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let questions = 0;
worker.onmessage = ({ data }) => {
  if (data.failure) return failed(data.failure);
  if (data.ready) return;
  waiting.get(data.id)?.(data.answer);
  waiting.delete(data.id);
};
worker.onerror = (event) => failed(event.message || "the worker did not start");

function send(message) {
  return new Promise((resolve) => {
    waiting.set(++questions, resolve);
    worker.postMessage({ id: questions, ...message });
  });
}
const ask = (question) => send({ question });
const keep = (name, bytes) => send({ file: { name, bytes } });
function failed(text) {
  const local = location.protocol === "file:";
  const help = local ? " Pages from a file cannot load Python: run python3 -m http.server there." : "";
  for (const id of ["status", "model-status"]) at(id).textContent = `Python did not start: ${text}.${help}`;
}

// --- The question: form and address ----------------------------------------------------------------

const shapes = () => [...at("shapes").querySelectorAll("input")];

function setShapes(texts) {
  at("shapes").replaceChildren(
    ...texts.map((text, k) => {
      const name = NAMES[k] ?? `x${k}`;
      const input = make("input", { value: text, id: `pg-x${k}`, spellcheck: false, autocomplete: "off" });
      const remove = make("button", { type: "button", textContent: "×", ariaLabel: `Remove ${name}` });
      remove.onclick = () => {
        setShapes(shapes().map((one) => one.value).filter((_, other) => other !== k));
        shapes().at(-1).focus();
        update();
      };
      const label = make("label", { htmlFor: input.id, textContent: `Shape of ${name}` });
      return make("div", {}, label, input, ...(texts.length > 2 ? [remove] : []));
    }),
  );
}
function question() {
  const fields = Object.fromEntries(FIELDS.map((name) => [name, at(name).value.trim()]));
  return { shapes: shapes().map((input) => input.value), ...fields };
}
function address() {
  const words = new URLSearchParams(shapes().map((input) => ["s", input.value]));
  for (const name of [...FIELDS, "code"]) {
    if (at(name).value && !(name === "code" && at(name).value === "numpy")) words.set(name, at(name).value);
  }
  return `#${words}`.replaceAll("%2C", ",");
}
function read(hash) {
  const words = new URLSearchParams(hash.slice(1));
  const texts = words.getAll("s");
  setShapes(texts.length ? texts : ["5,5", "5"]);
  for (const name of FIELDS) at(name).value = words.get(name) ?? "";
  at("code").value = words.get("code") ?? "numpy";
  for (const name of ["rule", "engine", "op", "code"]) if (at(name).selectedIndex < 0) at(name).selectedIndex = 0;
}

// --- Answers ------------------------------------------------------------------------------------------

let latest = 0;

async function update() {
  const turn = ++latest;
  const asked = question();
  history.replaceState(null, "", address());
  at("link").value = location.href;
  const begin = performance.now();
  const plan = await ask({ ask: "plan", ...asked });
  if (turn !== latest) return;
  at("drawing").innerHTML = plan.svg ?? "";
  at("text").textContent = plan.text ?? plan.error;
  at("text").classList.toggle("pg-error", !plan.ok);
  const took = performance.now() - begin;
  at("status").textContent = `Answered in ${took < 1000 ? `${Math.ceil(took)} ms` : `${(took / 1000).toFixed(1)} s`}.`;
  at("status").dataset.milliseconds = took;
  document.body.dataset.playground = "answered";
  const table = await ask({ ask: "compare", ...asked });
  if (turn !== latest) return;
  rows(table, asked);
  await code(asked, turn);
}

async function code(asked, turn = latest) {
  const source = await ask({ ask: "code", target: at("code").value, ...asked });
  if (turn === latest) at("source").textContent = source.ok ? source.code : source.error;
}

function rows(table, asked) {
  at("engines").replaceChildren();
  at("rules").replaceChildren();
  if (!table.ok) {
    at("summary").textContent = table.error;
    return;
  }
  const meant = table.reference;
  const engines = table.rows.filter((row) => row.kind === "engine");
  const silent = engines.filter((row) => row.silent);
  const several = (row) => engines.filter((other) => other.name === row.name).length > 1;
  const names = [...new Set(silent.map((row) => row.name + (several(row) ? ` (${row.rule})` : "")))];
  at("summary").textContent = names.length
    ? `Compared with ${meant.kind} ${meant.name}: ${names.join(", ")} would give other numbers, without an error.`
    : `Compared with ${meant.kind} ${meant.name}: no engine gives other numbers without an error.`;
  const usual = (row) => engines.find((other) => other.name === row.name) === row;
  const open = silent.find((row) => row.plan && usual(row)) ?? silent[0];
  table.rows.forEach((row, place) => {
    const title = row.name + (row.kind === "engine" && several(row) ? ` ${row.rule}` : "");
    const read = row.kind === "engine" && !row.run ? " (read, not run)" : "";
    const kind = row.silent ? "different" : row.verdict;
    const summary = make(
      "summary",
      {},
      make("span", { className: "pg-mark", textContent: MARKS[kind], ariaHidden: "true" }),
      make("b", { textContent: title }),
      make("span", { className: "pg-release", textContent: row.release + read }),
      make("span", { className: "pg-means", textContent: means(row) }),
    );
    const body = make("div", { className: "pg-row" });
    const details = make("details", { className: `pg-${kind}` }, summary, body);
    details.ontoggle = async () => {
      if (details.open && !body.hasChildNodes()) fill(body, await ask({ ask: "row", row: place, ...asked }));
    };
    at(row.kind === "engine" ? "engines" : "rules").append(details);
    if (row === open) details.open = true;
  });
}
function means(row) {
  if (row.refusal) return `${row.silent ? "nonsense or a crash" : "refused"}: ${row.refusal.detail}`;
  if (row.verdict !== "different") return WORDS[row.verdict];
  return `different: as ${row.plan.aligned.map((shape) => `(${shape.join(",")})`).join(" and ")}`;
}
function fill(body, row) {
  const fact = (name, text) => make("p", {}, make("b", { textContent: `${name}: ` }), text);
  if (!row.ok) return body.append(make("pre", { textContent: row.error }));
  if (row.shown) body.append(fact("Counter-example", row.shown));
  if (row.fix) body.append(fact("Fix", row.fix));
  body.append(...row.words.map((text) => make("p", { textContent: text })));
  if (row.svg) body.append(make("div", { className: "zs-drawing", innerHTML: row.svg }));
  body.append(make("pre", { textContent: row.text }));
}

// --- Events -------------------------------------------------------------------------------------------

async function copy(button, text) {
  await navigator.clipboard?.writeText(text).catch(() => {});
  at("status").textContent = "Copied.";
  button.focus();
}
at("form").onsubmit = (event) => event.preventDefault();
at("form").oninput = update;
at("add").onclick = () => {
  setShapes([...shapes().map((input) => input.value), "1"]);
  shapes().at(-1).select();
  update();
};
at("code").onchange = () => {
  history.replaceState(null, "", address());
  at("link").value = location.href;
  code(question());
};
at("copy-code").onclick = (event) => copy(event.target, at("source").textContent);
at("copy-link").onclick = (event) => copy(event.target, at("link").value);
addEventListener("hashchange", () => (read(location.hash), update()));
export { MARKS, ask, at, keep, make };
read(location.hash);
update();
