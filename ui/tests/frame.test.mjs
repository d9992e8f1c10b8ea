// Frame: keys of the server, the keyboard, a sub-path behind a proxy, and texts that escape translation.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { browser, demoIndex, open, QUIPU, removeFolder, serveDemo, server, startServer, TIMEOUT_MS, violations } from "./browser.mjs";

serveDemo();

test("the keyboard is enough: skip link, question, shortcuts and their list", async () => {
  const page = await open(browser, server.address);
  await page.waitForSelector(".empty");
  await page.waitForFunction(() => document.activeElement.id === "question"); // the browser focuses it a moment later
  await page.evaluate(() => {
    document.body.tabIndex = -1;
    document.body.focus(); // so that Tab begins at the top
  });
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog[open]", { state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.keyboard.press("/");
  await page.waitForFunction(() => document.activeElement.id === "question");
  await page.keyboard.type("Who was Alice Kober?");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".sources");
});

test("a server with keys asks for one, says when it is wrong, and keeps the right one in a cookie that scripts cannot read", async () => {
  const own = demoIndex();
  const made = spawnSync(QUIPU, ["--index", join(own, "index"), "keys", "create", "reader", "--permission", "read", "--json"], { encoding: "utf8" });
  const key = JSON.parse(made.stdout).text;
  const guarded = await startServer(own);
  try {
    const page = await open(browser, guarded.address);
    await page.waitForSelector("input[name=key]");
    assert.deepEqual(await violations(page), []);
    await page.fill("input[name=key]", "quipu_wrong");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=alert]");
    await page.fill("input[name=key]", key);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#question");
    assert.equal(await page.evaluate(() => document.cookie), "");
    await page.reload();
    await page.waitForSelector("#question");
    await page.click(".appearance button");
    await page.waitForSelector("input[name=key]");
  } finally {
    await guarded.stop();
    removeFolder(own);
  }
});

test("the page works under a sub-path of a proxy", async () => {
  const target = new URL(server.address);
  const proxy = createServer((incoming, outgoing) => {
    if (!incoming.url.startsWith("/team/kb/")) return outgoing.writeHead(404).end();
    const forwarded = request({ host: target.hostname, port: target.port, method: incoming.method, path: incoming.url.slice("/team/kb".length), headers: { ...incoming.headers, host: target.host, origin: server.address } }, (reply) => {
      outgoing.writeHead(reply.statusCode, reply.headers);
      reply.pipe(outgoing);
    });
    incoming.pipe(forwarded);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  try {
    const address = `http://127.0.0.1:${proxy.address().port}/team/kb`;
    const page = await open(browser, address, `#/workspaces/default/ask?q=${encodeURIComponent("Who built on the work of Alice Kober?")}`);
    await page.click("a.citation >> nth=0");
    await page.waitForSelector("mark.cited");
    assert.deepEqual(page.problems, []);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

// What is shown of the index, of the server and of the addresses of programs: it has no language, or that of its author.
const DATA = [
  ...["option", "script", "noscript", ".brand", "[lang=en]", "code", "pre", "bdi", "blockquote", "mark", "kbd", ".markdown", ".badge"],
  ...[".choices label", ".column h2", ".facts dd", ".facts dt", ".row-name", ".notes", ".path", ".strip a", ".descriptions", ".relation-list", ".entity-list"],
  ...["h1[dir=auto]", "a[dir=auto]", ".reasons h2", ".asked", ".passages", ".sources li", ".cost", ".shared", ".tabs", ".formats", "dd", "details li", ".rows", "button"],
].join(", ");

for (const [view, ready] of [
  ["ask", ".empty"],
  ["ask?q=Who+was+Alice+Kober%3F", ".cost"],
  ["documents", ".rows li"],
  ["documents/linear-b.md", ".document .markdown"],
  ["compare?q=Who+was+Alice+Kober%3F&strategies=weave,naive", ".shared"],
  ["why?q=Who+was+Alice+Kober%3F&rank=1", ".reasons"],
  ["entities", ".entity-list li"],
  ["entities/alice%20kober", ".relation-list li"],
  ["graph", ".map[data-shown]"],
  ["settings", ".setting-list"],
])
  test(`every text of the page itself comes from the catalogue: ${view}`, async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
  await context.addInitScript(() => localStorage.setItem("language", "xx"));
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(`${server.address}/#/workspaces/default/${view}`);
  await page.waitForSelector(ready);
  const bare = await page.evaluate((data) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (/\p{L}/u.test(node.data) && !node.parentElement.closest(data) && !/⟦.*⟧/s.test(node.data)) texts.push(node.data);
    }
    return texts;
  }, DATA);
  assert.deepEqual(bare, []);
  await context.close();
});

test("an address of a page that does not exist says so", async () => {
  const page = await open(browser, server.address, "#/workspaces/default/nothing");
  assert.match(await page.textContent("[role=alert]"), /nothing/);
  const foreign = await open(browser, server.address, "#/workspaces/other/ask");
  assert.match(await foreign.textContent("[role=alert]"), /no workspace/);
});
