// The page's audit of a dropped file: hands its bytes to the worker, asks for each engine, and shows the
// library's own reports. The file is read in the browser and sent nowhere.
import { MARKS, ask, at, keep, make } from "./playground.js";

const zone = at("drop");
let latest = 0;
let model = ""; // the name of the last file that was read

async function take(file) {
  const turn = ++latest;
  model = "";
  at("audits").replaceChildren();
  say(`Reading ${file.name} …`);
  const taken = await ask({ ask: "take", file: file.name, size: file.size });
  if (turn !== latest) return;
  if (!taken.ok) return refuse(taken.error);
  try {
    await keep(taken.name, new Uint8Array(await file.arrayBuffer()));
  } catch (error) {
    return turn === latest && refuse(`${file.name}: the browser cannot read it (${error.message})`);
  }
  if (turn !== latest) return;
  model = taken.name;
  await show();
}

async function show() {
  if (!model) return;
  const turn = ++latest;
  const select = at("target");
  const engines = select.value ? [select.value] : [...select.options].map((one) => one.value).filter(Boolean);
  at("audits").replaceChildren();
  const begin = performance.now();
  for (const [done, engine] of engines.entries()) {
    say(`Auditing ${model} for ${engine} (${done + 1} of ${engines.length}) …`);
    const answer = await ask({ ask: "audit", file: model, engine });
    if (turn !== latest) return;
    if (!answer.ok) return refuse(answer.error);
    row(engine, answer, engines.length === 1);
  }
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  const count = engines.length === 1 ? engines[0] : `${engines.length} engines`;
  say(`${model}: audited for ${count} in ${seconds} s. Open an engine for its report.`);
}

function row(engine, answer, open) {
  const summary = make(
    "summary",
    {},
    make("span", { className: "pg-mark", textContent: MARKS[answer.worst], ariaHidden: "true" }),
    make("b", { textContent: engine }),
    make("span", { className: "pg-release", textContent: answer.release + (answer.run ? "" : " (read, not run)") }),
    make("span", { className: "pg-means", textContent: answer.words }),
  );
  const body = make("div", { className: "pg-row" });
  const details = make("details", { className: `pg-${answer.worst}` }, summary, body);
  const file = model;
  details.ontoggle = async () => {
    if (!details.open || body.hasChildNodes()) return;
    body.append(make("p", { textContent: "Writing the report …" }));
    const report = await ask({ ask: "report", file, engine });
    body.replaceChildren(...(report.ok ? framed(report.html, file, engine) : [problem(report.error)]));
  };
  at("audits").append(details);
  details.open = open;
}

// The report as `zerostride audit -o report.html` writes it, in a frame that may not reach this page.
function framed(html, file, engine) {
  const frame = make("iframe", { className: "pg-report", title: `Audit of ${file} on ${engine}` });
  frame.sandbox = "allow-scripts";
  frame.srcdoc = html;
  const href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  const name = `${file.replace(/\.param$/i, "")}-${engine}.html`;
  return [frame, make("p", {}, make("a", { href, download: name, textContent: "Save the report" }))];
}

const problem = (text) => make("pre", { className: "pg-error", textContent: text });
function refuse(text) {
  say("Not audited:");
  at("audits").replaceChildren(problem(text));
}
function say(text) {
  at("model-status").textContent = text;
}

// --- Events -------------------------------------------------------------------------------------------

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
at("file").onchange = ({ target }) => {
  if (target.files.length) take(target.files[0]);
  target.value = ""; // the same file may be chosen again, after it was changed
};
at("target").onchange = show;
// A file may be dropped anywhere: one that misses the area would replace the page.
addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  zone.classList.add("pg-over");
});
addEventListener("dragleave", (event) => event.relatedTarget || zone.classList.remove("pg-over"));
addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  zone.classList.remove("pg-over");
  const files = [...event.dataTransfer.files];
  const file = files.find(({ name }) => name.toLowerCase().endsWith(".param")) ?? files[0];
  if (!file) return;
  zone.scrollIntoView({ block: "nearest" });
  take(file);
});
