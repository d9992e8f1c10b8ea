// Graph: levels of detail, filters, one entity, paths, export, the table without WebGL, and names full of markup.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { QUIPU, demoIndex, open, removeFolder, startBrowser, startServer, violations } from "./browser.mjs";

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
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".graph-side .actions > *", { hasText: name }).click()]);
    return readFileSync(await download.path());
  };
  const png = await saved("PNG");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.ok(png.length > 10_000, `${png.length} bytes`);
  assert.match((await saved("GraphML")).toString(), /<graphml/);
  assert.ok(JSON.parse((await saved("JSON")).toString()).nodes.length > 100);
});

test("without WebGL the map says so, and the table shows the same", async () => {
  const page = await open(browser, server.address);
  await page.addInitScript(() => {
    const own = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind.startsWith("webgl") || kind.startsWith("experimental") ? null : own.call(this, kind, ...rest);
    };
  });
  await page.goto(`${server.address}/${view()}`);
  await page.reload();
  const notice = page.locator(".graph .problem");
  assert.match(await notice.textContent(), /WebGL/);
  assert.deepEqual(await violations(page), []);
  await notice.locator("a").click();
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
