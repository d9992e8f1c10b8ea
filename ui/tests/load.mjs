// Load: opens pages in Chromium with an empty cache, and prints as JSON what each took. For benchmarks/page.py.
//
//   node tests/load.mjs N_RUNS NAME=ADDRESS ...

import { mainThread, startBrowser, violations } from "./browser.mjs";

const [nRuns, ...servers] = process.argv.slice(2);
const QUIET_MS = 1_000; // without a request, before a page counts as loaded

/** Open a page as a first visit; returns bytes over the wire, requests, ms of CPU and of blocked time of the main thread, and the ms of the largest paint. */
async function load(browser, address) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en" });
  const page = await context.newPage();
  const client = await context.newCDPSession(page);
  await client.send("Network.enable");
  const used = await mainThread(page);
  let [nBytes, nRequests, last] = [0, 0, Date.now()];
  client.on("Network.requestWillBeSent", () => (nRequests++, (last = Date.now())));
  client.on("Network.loadingFinished", ({ encodedDataLength }) => ((nBytes += encodedDataLength), (last = Date.now())));
  await page.addInitScript(() => {
    window.blocked = 0;
    const observe = (type, use) => new PerformanceObserver((list) => list.getEntries().forEach(use)).observe({ type, buffered: true });
    observe("longtask", (entry) => (window.blocked += Math.max(0, entry.duration - 50)));
    observe("largest-contentful-paint", (entry) => (window.paint = entry.startTime));
  });
  await page.goto(address);
  await page.waitForFunction(() => window.paint);
  while (Date.now() - last < QUIET_MS) await page.waitForTimeout(100);
  const { blocked, paint, nElements } = await page.evaluate(() => ({ blocked: window.blocked, paint: window.paint, nElements: document.querySelectorAll("*").length }));
  const { cpu } = await used();
  const run = { n_bytes: nBytes, n_requests: nRequests, cpu_ms: 1_000 * cpu, blocked_ms: blocked, paint_ms: paint, n_elements: nElements, n_violations: (await violations(page)).length };
  await context.close();
  return run;
}

const browser = await startBrowser();
const runs = Object.fromEntries(servers.map((server) => [server.split("=")[0], []]));
for (let n = 0; n < Number(nRuns); n++) for (const server of servers) runs[server.split("=")[0]].push(await load(browser, server.slice(server.indexOf("=") + 1)));
await browser.close();
console.log(JSON.stringify(runs));
