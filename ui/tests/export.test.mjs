// Export: the page that `quipu export` writes works from a file, shows hostile names as text, and asks for nothing.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { QUIPU, demoIndex, open, removeFolder, startBrowser, violations } from "./browser.mjs";

const HOSTILE = `</script><img src=x onerror="window.hacked=1"><script>window.hacked=2</script>`;
const PASSAGE = {
  id: `x"><img src=x onerror=window.hacked=3>.md`,
  text: `Elvira Quist wrote ${HOSTILE} in Oslo. Nobody read it.`,
  entities: [
    { name: "Elvira Quist", type: "Person", description: `Wrote <b onclick="window.hacked=4">bold</b> things` },
    { name: HOSTILE, type: `<i>Type</i>`, description: HOSTILE },
  ],
  relations: [{ source: "Elvira Quist", target: HOSTILE, description: `<svg onload="window.hacked=5">` }],
};
let folder, browser;

before(async () => {
  folder = demoIndex();
  writeFileSync(join(folder, "hostile.jsonl"), JSON.stringify(PASSAGE) + "\n");
  run("import", join(folder, "hostile.jsonl"));
  run("export", join(folder, "graph.html"));
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  if (folder) removeFolder(folder);
});

function run(...words) {
  const done = spawnSync(QUIPU, ["--index", join(folder, "index"), ...words], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
}

const exported = (options) => open(browser, pathToFileURL(folder).href, "graph.html", options);

test("a search finds an entity, and its relations and quotes are shown", async () => {
  const page = await exported();
  await page.fill("#search", "kober");
  await page.press("#search", "Enter");
  const details = page.locator("#details");
  assert.match(await details.locator("h2").textContent(), /Kober/);
  assert.match(await details.locator("blockquote").first().textContent(), /Kober/);
  const neighbour = details.locator("li .name").first();
  const name = await neighbour.textContent();
  await neighbour.click();
  assert.equal(await details.locator("h2").textContent(), name);
  assert.deepEqual(page.problems, []);
});

test("names, types, descriptions and quotes full of markup are shown as text", async () => {
  const page = await exported();
  await page.fill("#search", "</script>");
  await page.locator("#list .name").first().click();
  const text = await page.locator("#details").textContent();
  assert.ok(text.includes(HOSTILE));
  assert.ok(text.includes(`<svg onload="window.hacked=5">`));
  assert.ok(text.includes(PASSAGE.id));
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("img, svg, iframe, b, i, script[src], link").count(), 0);
  assert.deepEqual(page.problems, []);
});

test("the map is drawn, and a click on an entity chooses it", async () => {
  const page = await exported();
  const n_colours = () =>
    page.evaluate(() => {
      const { width, height } = canvas;
      const pixels = new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer);
      return new Set(pixels).size;
    });
  await page.waitForFunction(() => !waiting);
  assert.ok((await n_colours()) > 20);
  const [x, y] = await page.evaluate(() => toScreen(nodes[0]));
  await page.click("#canvas", { position: { x, y } });
  assert.equal(await page.locator("#details h2").textContent(), await page.evaluate(() => nodes[0].label));
  await page.click("text=Zoom in");
  await page.focus("#canvas");
  for (const key of ["ArrowLeft", "+", "Escape"]) await page.keyboard.press(key);
  assert.match(await page.locator("#details").textContent(), /Choose an entity/);
  assert.deepEqual(page.problems, []);
});

for (const colorScheme of ["light", "dark"])
  test(`it is accessible, in the ${colorScheme} theme, and fits 360 pixels`, async () => {
    const page = await exported({ colorScheme, viewport: { width: 360, height: 640 } });
    await page.locator("#list .name").first().click();
    assert.deepEqual(await violations(page), []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  });
