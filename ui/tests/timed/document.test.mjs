// Document: hostile content stays text, and a citation in a long text is marked at once.

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { addDocument, browser, mainThread, open, removeFolder, serveDemo, server, startServer, violations } from "../browser.mjs";

serveDemo();

const add = (id, text) => addDocument(server.address, id, text);
const view = (id, query = "") => `#/workspaces/default/documents/${encodeURIComponent(id)}${query}`;

const HOSTILE = `# A <img src=x onerror="window.hacked=1"> title

<script>window.hacked = 2</script> <svg onload="window.hacked=3"></svg>
[a link](javascript:window.hacked=4) [another](data:text/html,<script>window.hacked=5</script>)
<a href="https://example.org" style="position:fixed;inset:0" onclick="window.hacked=6">over everything</a>
<form action="https://example.org"><input name=q></form> <style>body{display:none}</style>
![picture](https://example.org/pixel.png) <iframe src="https://example.org"></iframe>

Elvira Quist founded the Quist Observatory in Oslo.
`;

test("a document full of script is shown as text: nothing runs, and no other host is asked", async () => {
  const id = 'x"><img src=x onerror="window.hacked=7">.md';
  await add(id, HOSTILE);
  for (const query of ["", "?start=4&end=90"]) {
    const page = await open(browser, server.address, view(id, query));
    await page.waitForSelector("text=Elvira Quist");
    await page.click("[role=tab][aria-selected=false]");
    await page.waitForSelector(".plain");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("main img, main form, main iframe, main script, main style, main [style], main [onclick], main [onerror]").count(), 0);
    assert.deepEqual(other(page.problems), []);
  }
  const page = await open(browser, server.address, `#/workspaces/default/ask?q=${encodeURIComponent("What did Elvira Quist found?")}`);
  await page.waitForSelector(".sources");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(other(page.problems), []);
});

// Chromium names styles and handlers that the sanitizer drops, because it reads the text before it drops anything.
const other = (problems) => problems.filter((problem) => !/Applying inline style|Executing inline event handler/.test(problem));

test("entities in the text lead to what is known about them, also within a citation, and can be left out", async () => {
  const page = await open(browser, server.address, view("linear-b.md", "?start=519&end=852"));
  await page.waitForSelector("mark.cited a.entity >> text=Alice Kober");
  await page.uncheck("text=Link entities");
  await page.waitForSelector("a.entity", { state: "detached" });
  await page.reload();
  await page.waitForSelector("mark.cited");
  await page.check("text=Link entities");
  await page.click("[role=tab] >> text=Text");
  await page.waitForSelector(".plain .border >> text=Chunk 1");
  await page.click(".plain a.entity >> text=Alice Kober");
  await page.waitForSelector("h1 >> text=Alice Kober");
  assert.deepEqual(page.problems, []);
});

test("a question as of a date is answered with what a document said then, and the document shows its earlier versions", async () => {
  const own = mkdtempSync(join(tmpdir(), "quipu-page-"));
  const past = await startServer(own, { env: { QUIPU_HISTORY: "true" } });
  const put = async (text) => {
    const reply = await fetch(`${past.address}/api/v1/workspaces/default/documents/office.md`, { method: "PUT", body: text });
    const { job } = await reply.json();
    await (await fetch(`${past.address}/api/v1/workspaces/default/jobs/${job.id}/events`)).text();
  };
  try {
    await put("---\nvalid_from: 2019-01-01\n---\n# Office\n\nElvira Quist directs the observatory of Oslo.\n");
    await put("---\nvalid_from: 2022-01-01\n---\n# Office\n\nZerubbabel Quux directs the observatory of Oslo.\n");
    const question = "#/workspaces/default/ask?q=Who+directs+the+observatory+of+Oslo%3F";
    const page = await open(browser, past.address, `${question}&as_of=2020`);
    await page.click("a.citation");
    await page.waitForSelector("mark.cited >> text=Elvira Quist");
    await page.waitForSelector(".notice >> text=as of 2020");
    await page.click("text=Show it as it is now");
    await page.waitForSelector(".markdown >> text=Zerubbabel Quux");
    await page.click("summary >> text=1 earlier version");
    await page.click(".notice li a");
    await page.waitForSelector(".markdown >> text=Elvira Quist");
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(page.problems, []);
  } finally {
    await past.stop();
    removeFolder(own);
  }
});

test("a document with pages is opened at a page, and one document alone is asked", async () => {
  const page = await open(browser, server.address, view("royal-road.pdf"));
  await page.selectOption("[aria-label='Go to a page']", "3");
  await page.waitForSelector("mark.cited");
  assert.match(await page.locator(".section", { has: page.locator("mark") }).locator(".border").textContent(), /page 3/);
  await page.click("text=Ask only this document");
  await page.waitForSelector(".only >> text=royal-road.pdf");
  await page.fill("#question", "Who was Alice Kober?");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".answer .cost");
  for (const id of await page.locator(".sources .small span").allTextContents()) assert.equal(id.trim(), "royal-road.pdf");
});

test("offsets count characters, also where one takes two units of a JavaScript string", async () => {
  const text = "𝕬𝕭 😀😀 intro.\n\nMarie Tharp mapped the ocean floor 😀. The end.\n";
  await add("wide.md", text);
  const start = [...text.slice(0, text.indexOf("Marie"))].length;
  for (const tab of [0, 1]) {
    const page = await open(browser, server.address, view("wide.md", `?start=${start}&end=${start + 36}`));
    await page.locator("[role=tab]").nth(tab).click();
    await page.waitForSelector("mark.cited");
    assert.equal((await page.locator("mark.cited").allTextContents()).join(""), "Marie Tharp mapped the ocean floor 😀");
  }
});

test("a citation that begins or ends at the address of a link leaves the address as it is", async () => {
  const text = "See [the archive](https://example.org/Alice-Kober/a) of cards. More is at https://example.org/cards today.\n";
  await add("links.md", text);
  for (const [from, to, marked] of [
    ["Kober/a", "of cards.", " of cards."],
    ["See", "/a", "See the archive"],
    ["Alice", "Kober", ""],
    ["More", "cards today", "More is at https://example.org/cards today"],
    ["More", "org/cards", "More is at https://example.org/cards"],
  ]) {
    const query = `?start=${text.indexOf(from)}&end=${text.indexOf(to) + to.length - (to === "/a" ? 1 : 0)}`;
    const page = await open(browser, server.address, view("links.md", query));
    await page.waitForSelector(".markdown a >> text=the archive");
    const links = await page.locator(".markdown a:not(.entity)").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.deepEqual(links, ["https://example.org/Alice-Kober/a", "https://example.org/cards"]);
    assert.equal((await page.locator("mark.cited").allTextContents()).join(""), marked);
    await page.context().close();
  }
});

test("a citation in a megabyte of text is marked and in view within 100 ms of CPU after its click", async () => {
  const line = (n) => `Line ${n} tells of the river, the mill and the road that leads to the village of Orsk.\n\n`;
  const text = Array.from({ length: 12_500 }, (_, n) => line(n)).join("");
  await add("long.txt", text);
  const page = await open(browser, server.address, view("long.txt"));
  await page.waitForSelector(".plain");
  const used = await mainThread(page);
  const times = [];
  for (const n of [9_000, 3_000, 12_000, 6_000, 11_000]) {
    const start = text.indexOf(line(n));
    const before = await used();
    await page.evaluate(
      async (hash) => {
        location.hash = hash;
        for (;;) {
          await new Promise(requestAnimationFrame);
          const mark = document.querySelector("mark.cited");
          const box = mark?.getBoundingClientRect();
          if (new URLSearchParams(hash.split("?")[1]).get("n") === mark?.textContent.split(" ")[1] && box.top >= 0 && box.bottom <= innerHeight) return;
        }
      },
      view("long.txt", `?start=${start}&end=${start + 60}&n=${n}`),
    );
    times.push(1_000 * ((await used()).cpu - before.cpu));
  }
  console.log(`click to mark: ${times.map((ms) => ms.toFixed(0)).join(", ")} ms of CPU`);
  assert.ok(Math.min(...times) <= 100, `${times} ms`); // the best of five: other work on the machine only adds
});
