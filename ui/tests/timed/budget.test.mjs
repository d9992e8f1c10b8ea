// Budgets: what the page asks for and how long it keeps the browser busy before a person can type.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browser, mainThread, open, serveDemo, server } from "../browser.mjs";

serveDemo();

test("a person can ask after at most 6 requests, none to another host", async () => {
  const page = await open(browser, server.address);
  await page.waitForSelector(".empty");
  const requests = await page.evaluate(() => [...new Set(performance.getEntriesByType("resource").map((entry) => entry.name))]);
  // The list of strategies and the questions to begin with are asked for when nothing else is to be done.
  const needed = requests.filter((name) => !/\/strategies$|\/entities\?/.test(name));
  assert.ok(needed.length + 1 <= 6, needed.join("\n"));
  assert.deepEqual(page.problems, []);
});

/** Open an address with an empty cache; returns seconds of CPU of the main thread and ms until the largest paint. */
async function load(address, ready) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const used = await mainThread(page);
  await page.addInitScript(() => {
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (window.paint = entry.startTime))).observe({ type: "largest-contentful-paint", buffered: true });
  });
  await page.goto(address);
  await page.waitForSelector(ready);
  await page.waitForFunction(() => window.paint);
  const { cpu } = await used();
  const paint = await page.evaluate(() => window.paint);
  await context.close();
  return { cpu, paint };
}

test("the start takes at most 0.2 s of the main thread, and its largest paint comes within 1.5 s", async () => {
  const [runs, bare] = [[], []];
  for (let n = 0; n < 5; n++) {
    runs.push(await load(server.address, ".empty"));
    bare.push((await load(`${server.address}/api/v1/version`, "pre")).paint); // a page of one line, for a machine with much else to do
  }
  const best = (times) => Math.min(...times);
  console.log(`start: ${runs.map(({ cpu, paint }) => `${cpu.toFixed(2)} s of CPU, largest paint ${paint.toFixed(0)} ms`).join("; ")}; one line: ${bare.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  assert.ok(best(runs.map(({ cpu }) => cpu)) <= 0.2, JSON.stringify(runs)); // less than 0.2 s of work blocks for less
  assert.ok(best(runs.map(({ paint }) => paint)) <= Math.max(1_500, 5 * best(bare)), JSON.stringify(runs));
});
