// Dialogs: axe finds nothing against any dialog, drawer, empty view or form that other files do not open, in both themes.

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { browser, open, removeFolder, serveDemo, server, startServer, violations } from "./browser.mjs";

serveDemo();

const ASKED = "ask?q=Who+was+Alice+Kober%3F";
const ENTITY = "entities/alice%20kober";

/** What is opened: its name, the view, and the steps that lead to it. */
const STATES = [
  ["the options of a question", ASKED, async (page) => (await page.click(".question-bar .quiet"), "dialog fieldset >> nth=1")],
  ["the conversations", ASKED, async (page) => (await page.waitForSelector(".cost"), await page.click(".talks button"), "dialog .talk-list li")],
  ["the question before a conversation is deleted", ASKED, async (page) => (await page.waitForSelector(".cost"), await page.click(".talks button"), await page.click(".talk-list li button"), "dialog .danger")],
  ["the evidence", ASKED, async (page) => (await page.click("[role=tab] >> nth=1"), ".passages li")],
  ["the reply", ASKED, async (page) => (await page.click("[role=tab] >> nth=3"), "[role=tabpanel] pre")],
  ["an answer that was not found", "ask?q=What+is+the+capital+of+Mongolia%3F", async () => ".answer .passages"],
  ["the list of keys", "entities", async (page) => (await page.waitForSelector(".entity-list"), await page.locator("h1").click(), await page.keyboard.press("?"), "dialog kbd")],
  ["a comparison before its question", "compare", async () => ".choices label >> nth=5"],
  ["an explanation before its question", "why", async () => ".empty"],
  ["an entity that nobody names", "entities?prefix=zzzz", async () => ".empty"],
  ["the form that corrects an entity", ENTITY, async (page) => (await page.click("text=Edit …"), "dialog textarea")],
  ["the form that merges entities", ENTITY, async (page) => (await page.click("text=Merge with …"), await page.fill("#merge-prefix", "michael ventris"), await page.keyboard.press("Enter"), await page.locator(".choice-list button").first().click(), "dialog .both")],
  ["the question before an entity is hidden", ENTITY, async (page) => (await page.click("text=Hide"), "dialog .danger")],
  ["a document as plain text", "documents/royal-road.pdf", async (page) => (await page.click("[role=tab] >> nth=1"), ".plain a.entity")],
  ["a path on the graph", "graph/ada%20lovelace?to=rosetta%20stone", async () => ".paths [aria-current]"],
];

for (const colorScheme of ["light", "dark"])
  for (const [name, view, steps] of STATES)
    test(`axe finds nothing against ${name} in ${colorScheme}, which is no wider than a telephone`, async () => {
      const page = await open(browser, server.address, `#/workspaces/default/${view}`, { colorScheme, viewport: { width: 360, height: 740 } });
      await page.waitForSelector(await steps(page));
      assert.deepEqual(await violations(page), []);
      const [needed, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= width, `${needed} pixels are needed`);
      await page.context().close();
    });

test("without documents, every view says so and is accessible", async () => {
  const own = mkdtempSync(join(tmpdir(), "quipu-page-"));
  const unused = await startServer(own);
  try {
    for (const view of ["ask", "documents", "entities", "graph"]) {
      const page = await open(browser, unused.address, `#/workspaces/default/${view}`);
      await page.waitForSelector(".empty");
      assert.deepEqual(await violations(page), []);
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  } finally {
    await unused.stop();
    removeFolder(own);
  }
});
