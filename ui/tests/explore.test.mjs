// Compare, Why and Entity: what each strategy found, the way to each passage, and what is known about a name.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addDocument, demoIndex, open, removeFolder, startBrowser, startServer, violations } from "./browser.mjs";

let folder, server, browser;

before(async () => {
  folder = demoIndex();
  server = await startServer(folder);
  browser = await startBrowser();
  await fetch(`${server.address}/api/v1/workspaces/default/documents/hostile.md`, {
    method: "PUT",
    body: "# Notes\n\nThe engineer Elvira <img src=x onerror=window.hacked=1> Quist built the lighthouse of Vardø.\n",
  });
});

after(async () => {
  await browser?.close();
  await server?.stop();
  if (folder) removeFolder(folder);
});

const QUESTION = "Who built on the work of Alice Kober?";
const compared = `#/workspaces/default/compare?q=${encodeURIComponent(QUESTION)}`;
const why = `#/workspaces/default/why?q=${encodeURIComponent(QUESTION)}`;

test("strategies answer side by side, and one that cannot run hides nothing of the others", async () => {
  const page = await open(browser, server.address, `${compared}&strategies=weave,naive,community_global`);
  await page.waitForSelector(".column:nth-child(1) .sources");
  await page.waitForSelector(".column:nth-child(2) .sources");
  await page.waitForSelector(".column:nth-child(3) .notice");
  assert.match(await page.textContent(".column:nth-child(3) .notice"), /reports/);
  const rows = await page.locator(".shared tbody tr").count();
  assert.ok(rows >= 5);
  assert.match(await page.textContent(".shared tbody tr >> nth=0"), /all/);
  assert.deepEqual(page.problems, []);
});

test("a strategy of a comparison can be the one of every further question", async () => {
  const page = await open(browser, server.address, `${compared}&strategies=lexical,naive`);
  await page.locator(".column", { hasText: "lexical" }).getByRole("button", { name: "Use for my questions" }).click();
  await page.goto(`${server.address}/#/workspaces/default/ask?q=Who+was+Alice+Kober%3F`);
  await page.waitForSelector(".cost >> text=lexical");
  await page.selectOption("[name=strategy]", "");
  await page.goto(`${server.address}/#/workspaces/default/ask?q=Who+was+Ada+Lovelace%3F`);
  await page.waitForSelector(".cost >> text=weave");
});

test("the form of a comparison takes a question and at most four strategies", async () => {
  const page = await open(browser, server.address, "#/workspaces/default/compare");
  await page.waitForSelector(".choices label >> nth=5");
  await page.fill("#compared", QUESTION);
  await page.check(".choices input:not(:checked) >> nth=0");
  assert.ok((await page.locator(".choices input:disabled").count()) > 0);
  await page.click(".compare .primary");
  await page.waitForSelector(".column:nth-child(4) .facts");
});

test("a passage shows the path from the question to it, and one that was not chosen says so", async () => {
  const page = await open(browser, server.address, `${why}&rank=1`);
  await page.waitForSelector(".path .seed");
  assert.match(await page.textContent(".reasons"), /Rank 1/);
  await page.fill("#other", "Gutenberg");
  await page.keyboard.press("Enter");
  await page.click(".passages a >> nth=0");
  await page.waitForFunction(() => location.hash.includes("chunk="));
  await page.waitForSelector(".reasons");
  assert.deepEqual(page.problems, []);
  const unknown = await open(browser, server.address, `${why}&chunk=0000`);
  await unknown.waitForSelector("[role=alert]");
});

test("a passage that a budget leaves out says so", async () => {
  const page = await open(browser, server.address, `${why}&o.budget.total=500`);
  await page.waitForSelector(".reasons .badge >> text=left out by a budget");
  assert.match(await page.textContent(".why .facts"), /Left out by the budgets\s*(?:\w+: \d+ · )*chunks: \d/);
  assert.deepEqual(page.problems, []);
});

test("an entity is found by its name, and leads to its neighbours and to the sentences that name it", async () => {
  const page = await open(browser, server.address, "#/workspaces/default/entities");
  await page.fill("#prefix", "Alice Kob");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("prefix="));
  await page.click(".entity-list a >> text=Alice Kober >> nth=0");
  await page.waitForSelector(".relation-list li");
  assert.equal(await page.textContent("h1"), "Alice Kober");
  await page.click(".strip a >> nth=0");
  await page.waitForSelector("mark.cited");
  assert.deepEqual(page.problems, []);
});

test("sentences of two documents that differ in a number stand side by side, with their sources", async () => {
  await addDocument(server.address, "mill-1.md", "The Orrin Mill at Kestrelford employs forty weavers and 12 dyers.");
  await addDocument(server.address, "mill-2.md", "The Orrin Mill at Kestrelford employs forty weavers and 19 dyers.");
  const page = await open(browser, server.address, "#/workspaces/default/entities/orrin%20mill");
  const section = page.locator("section", { hasText: "The same words, but for a detail" });
  await section.waitFor();
  assert.match(await section.textContent(), /19 dyers[^]*mill-2\.md[^]*12 dyers[^]*mill-1\.md/);
  assert.deepEqual(await violations(page), []);
  await section.locator("a").first().click();
  await page.waitForSelector("mark.cited");
  assert.deepEqual(page.problems, []);
});

test("a name full of markup stays text", async () => {
  const page = await open(browser, server.address, "#/workspaces/default/entities?prefix=Elvira");
  await page.waitForSelector(".entity-list li, .empty");
  const found = await open(browser, server.address, `#/workspaces/default/entities/${encodeURIComponent('<img src=x onerror="window.hacked=1">')}`);
  await found.waitForSelector("[role=alert]");
  assert.match(await found.textContent("[role=alert]"), /<img/);
  for (const shown of [page, found]) assert.equal(await shown.evaluate(() => window.hacked), undefined);
});

for (const theme of ["light", "dark"])
  for (const [name, view, ready] of [
    ["a comparison", `${compared}&strategies=weave,naive`, ".shared tbody tr"],
    ["an explanation", `${why}&rank=2`, ".reasons"],
    ["the list of entities", "#/workspaces/default/entities", ".entity-list li"],
    ["an entity", "#/workspaces/default/entities/alice%20kober", ".relation-list li"],
    ["an unknown entity", "#/workspaces/default/entities/nobody", "[role=alert]"],
  ])
    test(`axe finds nothing against ${name} in ${theme}, which is no wider than a telephone`, async () => {
      const page = await open(browser, server.address, view, { colorScheme: theme, viewport: { width: 360, height: 740 } });
      await page.waitForSelector(ready);
      assert.deepEqual(await violations(page), []);
      const [needed, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= width, `${needed} pixels are needed`);
    });
