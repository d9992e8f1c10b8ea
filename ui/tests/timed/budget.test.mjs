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

/** Seconds of CPU of the main thread for a fixed page of 2,000 paragraphs: how fast this machine is now. */
async function paragraphs() {
  const page = await browser.newPage();
  const used = await mainThread(page);
  const before = await used();
  await page.evaluate(() => {
    for (let n = 0; n < 2_000; n++) document.body.append(Object.assign(document.createElement("p"), { textContent: `Paragraph ${n} has a few words, and the root of its number: ${Math.sqrt(n)}.` }));
    return document.body.offsetHeight; // lays the page out
  });
  const { cpu } = await used();
  await page.close();
  return cpu - before.cpu;
}

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

// Other work on the machine only adds, so the best of five counts, beside the best of five of what never changes.
test("the start takes at most 0.2 s of the main thread, or 3 times as long as a page of paragraphs, and its largest paint comes within 1.5 s", async () => {
  const [runs, fixed, bare] = [[], [], []];
  for (let n = 0; n < 5; n++) {
    runs.push(await load(server.address, ".empty"));
    fixed.push(await paragraphs());
    bare.push((await load(`${server.address}/api/v1/version`, "pre")).paint); // a page of one line
  }
  const best = (times) => Math.min(...times);
  const seconds = (times) => times.map((time) => time.toFixed(2)).join(", ");
  console.log(`start: ${seconds(runs.map(({ cpu }) => cpu))} s of CPU; paragraphs: ${seconds(fixed)} s; largest paint ${runs.map(({ paint }) => paint.toFixed(0)).join(", ")} ms; one line: ${bare.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  assert.ok(best(runs.map(({ cpu }) => cpu)) <= Math.max(0.2, 3 * best(fixed)), JSON.stringify({ runs, fixed }));
  assert.ok(best(runs.map(({ paint }) => paint)) <= Math.max(1_500, 5 * best(bare)), JSON.stringify({ runs, bare }));
});
