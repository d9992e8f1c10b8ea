// Graph: levels of detail, filters, one entity, paths, export, the table without WebGL, and names full of markup.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { QUIPU, demoIndex, mainThread, open, removeFolder, startBrowser, startServer, violations } from "../browser.mjs";

const HOSTILE = `<img src=x onerror="window.hacked=1">`;
const PASSAGE = {
  id: "hostile.md",
  text: `Elvira Quist wrote ${HOSTILE} in Oslo.`,
  entities: [
    { name: "Elvira Quist", type: "Person", description: `Wrote <b onclick="window.hacked=2">bold</b> things` },
    { name: HOSTILE, type: `<i>Type</i>`, description: HOSTILE },
  ],
  relations: [{ source: "Elvira Quist", target: HOSTILE, description: `<svg onload="window.hacked=3">` }],
};
let folder, server, browser;

before(async () => {
  folder = demoIndex();
  writeFileSync(join(folder, "hostile.jsonl"), JSON.stringify(PASSAGE) + "\n");
  const done = spawnSync(QUIPU, ["--index", join(folder, "index"), "import", join(folder, "hostile.jsonl")], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  server = await startServer(folder);
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  if (folder) removeFolder(folder);
});

const view = (tail = "") => `#/workspaces/default/graph${tail}`;
const map = (page) => page.locator(".map");

/** Wait until the map shows a level, or anything. */
const shown = (page, level = "") => page.waitForSelector(`.map[data-shown^="${level}"]`);
// The browser names a report that is not written as an error of the console.
const problems = (page) => page.problems.filter((problem) => !problem.includes("404"));

/** Count the pixels of the map that differ from its ground, and how many colours they have. */
async function pixels(page) {
  const picture = (await map(page).screenshot()).toString("base64");
  return page.evaluate(async (text) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(12, 12, bitmap.width - 80, bitmap.height - 24);
    const colours = new Set();
    let n = 0;
    for (let at = 0; at < data.length; at += 4) {
      const [red, green, blue] = data.subarray(at, at + 3);
      if (Math.max(red, green, blue) - Math.min(red, green, blue) < 40) continue; // grey
      n++;
      colours.add(((red >> 5) << 6) | ((green >> 5) << 3) | (blue >> 5));
    }
    return { n, nColours: colours.size };
  }, picture);
}

test("a small graph is shown whole, in colours, and says how much it has", async () => {
  const page = await open(browser, server.address, view());
  await shown(page, "middle");
  const { n, nColours } = await pixels(page);
  assert.ok(n > 1_000 && nColours >= 5, `${n} coloured pixels, ${nColours} colours`);
  assert.match(await page.locator(".graph-main > .small").textContent(), /^\d+ entities · \d+ relations/);
  assert.deepEqual(problems(page), []);
});

test("communities are bubbles; one that is clicked leads to its entities", async () => {
  const page = await open(browser, server.address, view("?detail=far&colours=community"));
  await shown(page, "far");
  assert.ok((await pixels(page)).n > 10_000);
  const box = await map(page).boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  const card = page.locator("[data-chosen]");
  const size = Number(/\d+/.exec(await card.locator(".small").textContent())[0]);
  assert.deepEqual(await violations(page), []);
  await card.locator("a.button").click();
  await shown(page, `middle ${size}`);
  assert.equal(await page.locator(".filter input:checked").count(), 1);
});

test("the legend filters, and the address keeps the filter", async () => {
  const page = await open(browser, server.address, view());
  await shown(page, "middle");
  const before = await map(page).getAttribute("data-shown");
  await page.getByLabel("Person", { exact: true }).check();
  await page.waitForFunction((old) => document.querySelector(".map").dataset.shown !== old, before);
  const people = await map(page).getAttribute("data-shown");
  await page.reload();
  await shown(page, people);
  await page.click("[role=tab] >> text=Table");
  const types = await page.locator("table").first().locator("tbody tr td:nth-child(2)").allTextContents();
  assert.deepEqual([...new Set(types)], ["Person"]);
  assert.match(await page.locator("a:text('GraphML')").getAttribute("href"), /format=graphml&type=Person/);
});

test("a search leads to an entity with its neighbours, and from there to the path to another one", async () => {
  const page = await open(browser, server.address, view());
  await shown(page, "middle");
  await page.getByLabel("Find an entity").last().fill("ada love");
  await page.locator(".entity-search button", { hasText: "Ada Lovelace" }).first().waitFor();
  await page.keyboard.press("Enter");
  await shown(page, "near");
  assert.equal(await page.locator(".card h2").textContent(), "Ada Lovelace");
  const coloured = await pixels(page);
  assert.ok(coloured.n > 200, `${coloured.n} coloured pixels`);
  await page.getByLabel("Path to another entity").last().fill("rosetta");
  await page.locator(".entity-search button", { hasText: "Rosetta Stone" }).first().click();
  const path = page.locator(".paths [aria-current]");
  assert.match(await path.textContent(), /^Ada Lovelace → .* → Rosetta Stone$/);
  await shown(page, `near ${(await path.textContent()).split(" → ").length}`);
  assert.deepEqual(await violations(page), []);
  await page.goBack();
  await page.waitForSelector(".paths", { state: "detached" });
});

test("the keyboard moves and zooms the map", async () => {
  const page = await open(browser, server.address, view());
  await shown(page, "middle");
  const inView = () => map(page).getAttribute("data-view");
  await map(page).focus();
  for (const key of ["+", "ArrowLeft", "0"]) {
    const before = await inView();
    await page.keyboard.press(key);
    await page.waitForFunction((old) => document.querySelector(".map").dataset.view !== old, before);
  }
});

test("the picture is exported as PNG, the graph as GraphML and JSON", async () => {
  const page = await open(browser, server.address, view());
  await shown(page, "middle");
  const saved = async (name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".formats").getByText(name, { exact: true }).click()]);
    return readFileSync(await download.path());
  };
  const png = await saved("PNG");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.ok(png.length > 10_000, `${png.length} bytes`);
  assert.match((await saved("GraphML")).toString(), /<graphml/);
  assert.ok(JSON.parse((await saved("JSON")).toString()).nodes.length > 100);
  assert.equal((await saved("CSV")).subarray(0, 2).toString(), "PK");
  await page.route("**/graph/export?format=turtle", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: '{"status": 503, "detail": "It needs a package.", "remedy": "Install it."}' }));
  await page.locator(".formats").getByText("Turtle").click();
  await page.waitForSelector(".toasts >> text=It needs a package. Install it.");
});

test("without WebGL the map says so, and the table shows the same", async () => {
  const page = await open(browser, server.address);
  await page.addInitScript(() => {
    const own = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind.startsWith("webgl") || kind.startsWith("experimental") ? null : own.call(this, kind, ...rest);
    };
  });
  await page.goto("about:blank"); // so that the next address loads the page again
  await page.goto(`${server.address}/${view()}`);
  const notice = page.locator(".graph .problem");
  await notice.waitFor();
  assert.match(await notice.textContent(), /WebGL/);
  assert.deepEqual(await violations(page), []);
  await notice.locator("a").click();
  await page.locator("table").nth(1).waitFor();
  assert.equal(await page.locator("table").count(), 2);
  await page.locator("table a", { hasText: "Ada Lovelace" }).first().click();
  await page.waitForSelector(".card h2");
});

test("a name full of markup is text, on the map and in the table", async () => {
  for (const tail of [`/${encodeURIComponent("elvira quist")}`, `/${encodeURIComponent("elvira quist")}?tab=table`]) {
    const page = await open(browser, server.address, view(tail));
    await page.waitForSelector(tail.includes("table") ? "table" : ".map[data-shown]");
    await page.locator(".card h2", { hasText: "Elvira Quist" }).waitFor();
    if (tail.includes("table")) await page.locator("td", { hasText: HOSTILE }).first().waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("main img").count(), 0);
    assert.deepEqual(problems(page), []);
  }
});

test("the graph is accessible in both themes, and fits 360 pixels in Russian and Chinese", async () => {
  for (const colorScheme of ["light", "dark"])
    for (const tail of ["", "?tab=table", "/rosetta%20stone"]) {
      const page = await open(browser, server.address, view(tail), { colorScheme });
      await page.waitForSelector("table, .map[data-shown]");
      assert.deepEqual(await violations(page), [], `${colorScheme} ${tail}`);
      await page.context().close();
    }
  for (const [locale, word] of [["ru", "Граф"], ["zh", "图谱"]]) {
    const page = await open(browser, server.address, view("/rosetta%20stone"), { locale, viewport: { width: 360, height: 700 } });
    await shown(page, "near");
    assert.equal(await page.locator("h1").textContent(), word);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  }
});

test("an unknown entity and an empty index say what to do", async () => {
  const page = await open(browser, server.address, view("/nobody"));
  await page.waitForSelector(".problem");
  assert.match(await page.locator(".problem").first().textContent(), /nobody/);
  const bare = mkdtempSync(join(tmpdir(), "quipu-bare-"));
  const other = await startServer(bare);
  try {
    const empty = await open(browser, other.address, view());
    await empty.waitForSelector(".graph .empty a[href*='documents']");
    assert.deepEqual(await violations(empty), []);
    assert.deepEqual(problems(empty), []);
  } finally {
    await other.stop();
    removeFolder(bare);
  }
});

const N_GROUPS = 500; // of 20 entities

/** Passages whose entities know one of their group, and some of other groups. */
function groups() {
  const name = (n) => `Entity ${n % (20 * N_GROUPS)}`;
  return Array.from({ length: N_GROUPS }, (_, group) => {
    const own = Array.from({ length: 20 }, (_, n) => name(20 * group + n));
    const pairs = [...own.slice(1).map((other) => [own[0], other]), ...own.map((one, n) => [one, name(20 * group + 7 + n * n * n)])];
    const ends = [...new Set([...own, ...pairs.map(([, end]) => end)])];
    return {
      id: `group-${group}.txt`,
      text: `These are the people of group ${group}.`,
      entities: ends.map((end) => ({ name: end, type: "Person" })),
      relations: pairs.filter(([source, target]) => source !== target).map(([source, target]) => ({ source, target, description: `${source} knows ${target}.` })),
    };
  });
}

/** Drag the map and let it go; return the longest task of the page, in ms of CPU, and of the frames the slowest but 5 %. */
async function drag(page, used) {
  const before = await used();
  const box = await map(page).boundingBox();
  await page.evaluate(() => {
    window.busy = [0];
    window.gaps = [];
    window.observer ??= new PerformanceObserver((list) => window.busy.push(...list.getEntries().map((entry) => entry.duration)));
    window.observer.observe({ type: "longtask" });
    let last = performance.now();
    const next = () => {
      window.gaps?.push(performance.now() - last);
      last = performance.now();
      if (window.gaps) requestAnimationFrame(next);
    };
    next();
  });
  await page.mouse.move(box.x + 300, box.y + 200);
  await page.mouse.down();
  for (let step = 1; step <= 25; step++) {
    await page.mouse.move(box.x + 300 + 4 * step, box.y + 200 + 2 * step);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  await page.mouse.up();
  const { longest, p95 } = await page.evaluate(async () => {
    for (let frame = 0; frame < 12; frame++) await new Promise(requestAnimationFrame); // the edges come back
    const gaps = window.gaps.sort((a, b) => a - b);
    window.gaps = undefined;
    return { longest: Math.max(...window.busy), p95: gaps[Math.floor(gaps.length * 0.95)] };
  });
  const after = await used();
  const share = (after.cpu - before.cpu) / (after.wall - before.wall); // of the time of a task; the rest is that of other processes
  return { longest: longest * share, p95 };
}

test("ten thousand entities: first as communities within 2 s of CPU, then one by one, dragged without freezes", async () => {
  const own = mkdtempSync(join(tmpdir(), "quipu-ten-"));
  writeFileSync(join(own, "groups.jsonl"), groups().map((passage) => JSON.stringify(passage)).join("\n"));
  const done = spawnSync(QUIPU, ["--index", join(own, "index"), "import", join(own, "groups.jsonl")], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  const large = await startServer(own);
  try {
    const page = await open(browser, large.address, "#/workspaces/default/ask");
    await page.waitForSelector("#question");
    const used = await mainThread(page);
    const before = await used();
    await page.evaluate((address) => (location.hash = address), view());
    await shown(page, "far");
    const seconds = (await used()).cpu - before.cpu;
    const drags = [await drag(page, used)];
    while (!(await map(page).getAttribute("data-shown")).startsWith("middle")) {
      const old = await map(page).getAttribute("data-view");
      await page.getByLabel("Zoom in").click();
      await page.waitForFunction((view) => document.querySelector(".map").dataset.view !== view, old);
      await page.waitForSelector(".graph-main[aria-busy=false]");
    }
    for (let n = 0; n < 5; n++) drags.push(await drag(page, used));
    const listed = (name) => drags.map((one) => one[name].toFixed(0)).join(", ");
    console.log(`first picture: ${seconds.toFixed(2)} s of CPU; dragged: busy for at most ${listed("longest")} ms, 95 % of frames within ${listed("p95")} ms`);
    assert.ok(seconds <= 2, `${seconds} s`);
    // The best drag, since other work on the machine only adds; frames depend on how fast the machine draws without a graphics card.
    assert.ok(Math.min(...drags.slice(1).map((one) => one.longest)) <= 100, `${listed("longest")} ms`);
    assert.deepEqual(problems(page), []);
  } finally {
    await large.stop();
    removeFolder(own);
  }
});
