// Uses the playground of a built site in Chromium as a person does, with mouse and keyboard, on a wide and
// a narrow page: node tests/site/click_through.mjs SITE TOOLS [PICTURES]
//
// SITE is the folder with index.html, TOOLS has node_modules/playwright-core, and screenshots go to
// PICTURES. The site is served on 127.0.0.1 alone. Prints the times of answers.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const [site, tools, pictures] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(tools, "package.json"))("playwright-core");
const FIRST = 1000 * Number(process.env.ZEROSTRIDE_FIRST_ANSWER ?? 120); // of a busy machine
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css",
  ".wasm": "application/wasm", ".json": "application/json", ".zip": "application/zip", ".svg": "image/svg+xml" };

// ncnn's file of a square and a vector, which ncnn adds by columns.
const PARAM = "7767517\n3 3\nInput x 0 1 x 0=5 1=5\nInput y 0 1 y 0=5\nBinaryOp sum 2 1 x y sum 0=0\n";

const server = createServer(async (request, response) => {
  const name = path.join(site, decodeURIComponent(new URL(request.url, "http://site").pathname));
  try {
    const data = await readFile(name);
    response.writeHead(200, { "content-type": TYPES[path.extname(name)] ?? "application/octet-stream" }).end(data);
  } catch {
    if (name.endsWith("favicon.ico")) return response.writeHead(204).end();
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
let status = 0;
try {
  for (const width of [1280, 390]) await through(width);
} catch (error) {
  console.error(error);
  for (const page of browser.contexts().flatMap((one) => one.pages())) {
    console.error(page.url(), await page.locator("#pg").innerText().catch(String));
  }
  status = 1;
}
await browser.close();
server.close();
process.exit(status);

async function drop(page, name, text) {
  const dataTransfer = await page.evaluateHandle(([name, text]) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([text], name));
    return dropped;
  }, [name, text]);
  for (const event of ["dragover", "drop"]) await page.dispatchEvent("#pg-drop", event, { dataTransfer });
}

async function through(width) {
  const context = await browser.newContext({ viewport: { width, height: 900 } });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => request.url().startsWith(address) || faults.push(`asks ${request.url()}`));
  page.setDefaultTimeout(FIRST);
  const shot = (name) => pictures && page.screenshot({ path: `${pictures}/${name}-${width}.png`, fullPage: true });
  const field = (name) => page.locator("#pg").getByLabel(name, { exact: true });
  const shows = (id, words) =>
    page.waitForFunction(([name, one]) => document.getElementById(`pg-${name}`).innerText.includes(one), [id, words]);
  const fits = async () => {
    const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(inner <= outer, `the page is ${inner} wide in a window of ${outer}`);
  };

  // A cold start: the first question is answered.
  const begin = Date.now();
  await page.goto(`${address}/playground.html`);
  await shows("text", "y stretches along result axis 0");
  const first = Date.now() - begin;
  assert.ok(first < FIRST, `the first answer took ${first} ms`);
  assert.equal(await page.locator("#pg-drawing svg").count(), 1);

  // Engines side by side; ncnn's counter-example and fix are shown at first.
  await shows("summary", "ncnn");
  const ncnn = page.locator("#pg-engines details", { hasText: "1.0.2" });
  assert.match(await ncnn.locator("summary").innerText(), /different: as \(5,5\) and \(5,1\)/);
  assert.equal(await ncnn.getAttribute("open") !== null, true);
  await ncnn.getByText("Counter-example:").waitFor();
  assert.match(await ncnn.innerText(), /result\[0, 1\] is 6\.0 by numpy, 5\.0 by ncnn/);
  assert.match(await ncnn.innerText(), /Fix: reshape y to \(1, 5\)/);
  await fits();
  await shot("playground");

  // Another question by keyboard alone: labels lead to fields, the result to the address.
  await field("Shape of x").fill("2,3,4");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "pg-x1");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("3");
  await shows("text", "cannot combine");
  await field("Rule").selectOption("pdpd");
  await field("Axis").fill("1");
  await shows("text", "rule 'pdpd' axis=1 combines x and y");
  await field("Code for").selectOption("torch");
  await shows("source", "torch.broadcast_to(y.reshape(1, 3, 1)");
  const tosa = page.locator("#pg-engines summary", { hasText: "tosa" });
  await tosa.focus();
  await page.keyboard.press("Enter");
  await page.locator("#pg-engines details[open]", { hasText: "tosa" }).getByText("Fix:", { exact: true }).waitFor();

  // The link opens the same question again, in a new tab.
  const link = await page.locator("#pg-link").inputValue();
  assert.match(link, /#s=2,3,4&s=3&rule=pdpd&axis=1&code=torch$/);

  // A third operand, open sizes, an engine, an error.
  await field("Rule").selectOption("");
  await field("Axis").fill("");
  await field("Shape of x").fill("N,1,H");
  await field("Shape of y").fill("C,H");
  await shows("text", "(1→C)");
  await field("Known of open sizes").fill("N >= 2");
  await shows("text", "N >= 2");
  await page.getByRole("button", { name: "Add an operand" }).click();
  await shows("text", "x, y and z");
  await page.getByRole("button", { name: "Remove z" }).click();
  await shows("text", "combines x and y");
  await field("Shape of y").fill("2,,");
  await shows("text", "is not a shape");
  await field("Known of open sizes").fill("");
  await page.getByRole("link", { name: "a bias by channel" }).click();
  await shows("text", ". 16 1→8 1→8");
  await field("Engine").selectOption("ncnn");
  await shows("text", "ncnn's rule 'ncnn'");
  await fits();
  await shot("playground-ncnn");

  // A dropped .param is audited for every engine; the report is the library's own page, in a frame.
  const audits = page.locator("#pg-audits");
  const engines = await field("Engine").locator("option").count() - 1; // the first is none
  const dropped = Date.now();
  await drop(page, "net.param", PARAM);
  await shows("model-status", `net.param: audited for ${engines} engines`);
  const audited = Date.now() - dropped;
  const openvino = audits.locator("details", { has: page.getByText("openvino", { exact: true }) });
  assert.match(await openvino.locator("summary").innerText(), /1 different/);
  assert.match(await audits.locator("details", { hasText: "ncnn" }).locator("summary").innerText(), /1 same/);
  await openvino.locator("summary").click();
  const report = page.frameLocator("#pg-audits iframe");
  await report.getByRole("heading", { name: "Broadcast audit" }).waitFor();
  await report.getByText("result[0, 1] is").first().waitFor();
  assert.match(await openvino.getByText("Save the report").getAttribute("download"), /^net-openvino\.html$/);
  await fits();
  await page.locator("#pg-model").scrollIntoViewIfNeeded();
  await shot("playground-model");
  // One engine: its report is open. A chosen file, a broken one and one of another kind.
  await page.getByLabel("Audit it for").selectOption("torch");
  await shows("model-status", "audited for torch");
  await report.getByText("net.param").first().waitFor();
  const choose = (name, text) =>
    page.getByLabel("choose a file").setInputFiles({ name, mimeType: "", buffer: Buffer.from(text) });
  await choose("other.param", PARAM.replace("y 0=5", "y 0=5 1=5"));
  await shows("audits", "1 same");
  await choose("broken.param", "7767517\n1 1\nInput");
  await shows("audits", "broken.param");
  assert.match(await audits.innerText(), /line 3/);
  await drop(page, "net.onnx", "onnx");
  await shows("audits", "zerostride audit net.onnx --target openvino");
  await shot("playground-refused");

  // Later answers: the median of 20 questions, asked one after another.
  const times = [];
  for (let size = 2; size < 22; size++) {
    await page.evaluate(() => delete document.getElementById("pg-status").dataset.milliseconds);
    await field("Shape of x").fill(`1,16,8,${size}`);
    await page.waitForFunction(() => document.getElementById("pg-status").dataset.milliseconds);
    times.push(Number(await page.locator("#pg-status").getAttribute("data-milliseconds")));
    await page.waitForTimeout(100);
  }
  times.sort((a, b) => a - b);

  const again = await context.newPage();
  await again.goto(link);
  await again.waitForFunction(() => document.getElementById("pg-text").innerText.includes("axis=1 combines"));
  assert.equal(await again.locator("#pg-x1").inputValue(), "3");

  // Screen readers: every field and button has a name.
  const unnamed = await page.evaluate(() =>
    [...document.querySelectorAll(":is(#pg, #pg-model) :is(input, select, button, summary)")]
      .filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim()))
      .map((one) => one.outerHTML));
  assert.deepEqual(unnamed, []);
  assert.deepEqual(faults, []);
  const { length } = await readFile(path.join(site, "_static", "snapshot.gz"));
  console.log(`${width} px, snapshot of ${(length / 1e6).toFixed(1)} MB: first answer ${(first / 1000).toFixed(1)} s, later ones ${times[10].toFixed(0)} ms ` +
    `(at most ${times.at(-1).toFixed(0)} ms), a dropped file for ${engines} engines ${(audited / 1000).toFixed(1)} s`);
  await context.close();
}
