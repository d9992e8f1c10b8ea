// Browser: what every test of the page needs: a server over the demo corpus, Chromium, and checks of accessibility.

import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before } from "node:test";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { chromium } from "playwright-core";

export const QUIPU = process.env.QUIPU ?? "quipu";
const CHROMIUM = [process.env.CHROMIUM, "/usr/lib/chromium/chromium", "/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => path && existsSync(path));
// Software drawing, and no request of the browser's own.
const FLAGS = [
  ...["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"],
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
];
// Long: tests wait for what must come, and a machine may have much else to do.
export const TIMEOUT_MS = 40_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Make an index of the demo corpus in a folder of its own, a copy of that in the folder DEMO if it is set, and return the folder. */
export function demoIndex() {
  const folder = mkdtempSync(join(tmpdir(), "quipu-page-"));
  if (process.env.DEMO) {
    cpSync(process.env.DEMO, folder, { recursive: true });
    return folder;
  }
  const made = spawnSync(QUIPU, ["--index", join(folder, "index"), "demo"], { encoding: "utf8", env: environment() });
  if (made.status !== 0) throw new Error(`quipu demo failed: ${made.stderr || made.error}`);
  return folder;
}

export let folder, server, browser; // of the tests of one file, between the hooks of `serveDemo`

/** Serve the demo corpus, and start Chromium, for the tests of a file. */
export function serveDemo() {
  before(async () => {
    folder = demoIndex();
    server = await startServer(folder);
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    if (folder) removeFolder(folder);
  });
}

/** Serve the index in a folder, or all below `root`; resolves to its address and a function that ends it. */
export async function startServer(folder, { args = [], env = {}, port = 0, root } = {}) {
  const server = spawn(QUIPU, [...(root ? ["serve", "--root", root] : ["--index", join(folder, "index"), "serve"]), "--port", String(port), ...args], { env: environment(env) });
  let output = "";
  const address = await new Promise((resolve, reject) => {
    const read = (text) => {
      output += text;
      const match = /http:\/\/[\w.[\]:]+:\d+/.exec(output);
      if (match) resolve(match[0]);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", (code) => reject(new Error(`quipu serve ended with ${code}: ${output}`)));
  });
  const stop = () =>
    new Promise((resolve) => {
      server.on("exit", resolve);
      server.kill("SIGTERM");
    });
  return { address, stop, process: server };
}

function environment(more = {}) {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("QUIPU_"));
  return { ...Object.fromEntries(own), ...more };
}

/** Add a document to a workspace of a server and wait until it is read. */
export async function addDocument(address, id, text) {
  const workspace = `${address}/api/v1/workspaces/default`;
  const reply = await fetch(`${workspace}/documents/${encodeURIComponent(id)}`, { method: "PUT", body: text });
  const { job } = await reply.json();
  const events = await fetch(`${workspace}/jobs/${job.id}/events`);
  await events.text(); // the stream ends with the job
}

/** Start Chromium. */
export async function startBrowser() {
  if (!CHROMIUM) throw new Error("There is no Chromium. Install it (on Debian: apt-get install chromium), or name it: CHROMIUM=/path/to/chromium");
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** Open a view in a new window; the page's `problems` list errors of scripts, of the console, and requests to other hosts. */
export async function open(browser, address, view = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, locale: "en", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(`script: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && page.problems.push(`console: ${message.text()}`));
  page.on("request", (request) => request.url().startsWith(address) || request.url().startsWith("blob:") || page.problems.push(`request: ${request.url()}`));
  await page.goto(`${address}/${view}`);
  await page.waitForSelector("html[data-ready]");
  return page;
}

/** Begin to measure the main thread of a page; the result returns its seconds of CPU, and of time in tasks, so far. */
export async function mainThread(page) {
  const sessions = [];
  for (const timeDomain of ["threadTicks", "timeTicks"]) {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain });
    sessions.push(session);
  }
  return async () => {
    const [cpu, wall] = await Promise.all(sessions.map(async (session) => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value));
    return { cpu, wall };
  };
}

/** Return what axe finds against WCAG A and AA, as lines. */
export async function violations(page) {
  await page.evaluate(AXE);
  const result = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
  return result.violations.flatMap((violation) => violation.nodes.map((node) => `${violation.id}: ${node.target} – ${node.failureSummary}`));
}

/** Delete the folder of a demo index. */
export function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
}

/** Start a scripted model that streams its replies; resolves to the settings for it and a function that ends it. */
export async function startModel(script) {
  const folder = mkdtempSync(join(tmpdir(), "quipu-model-"));
  writeFileSync(join(folder, "script.json"), JSON.stringify(script));
  const model = spawn(join(dirname(QUIPU), "python"), ["-m", "quipu.testing.server", "--script", join(folder, "script.json")], { env: environment() });
  const address = await new Promise((resolve, reject) => {
    model.stdout.on("data", (text) => resolve(String(text).trim()));
    model.on("exit", (code) => reject(new Error(`the scripted model ended with ${code}`)));
  });
  const stop = () =>
    new Promise((resolve) => {
      model.on("exit", resolve);
      model.kill("SIGTERM");
    }).then(() => removeFolder(folder));
  return { env: { QUIPU_LLM: "custom/test", QUIPU_LLM_BASE_URL: `${address}/v1` }, address, stop };
}
