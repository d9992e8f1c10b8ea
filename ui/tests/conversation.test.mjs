// Conversations: a follow-up question, a reload, the list, and an answer whose document was removed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browser, open, serveDemo, server, violations } from "./browser.mjs";

serveDemo();

const FIRST = "Who built on the work of Alice Kober?";

/** Ask a question in the form of the page, and wait for the answer with this number. */
async function ask(page, question, number) {
  await page.fill("#question", question);
  await page.keyboard.press("Enter");
  await page.waitForSelector(`.answer:nth-of-type(${number}) .cost`);
}

test("a follow-up question continues the conversation, and a reload shows both without asking again", async () => {
  const page = await open(browser, server.address);
  await ask(page, FIRST, 1);
  await page.waitForFunction(() => /ask\/[^?]+$/.test(location.hash));
  await ask(page, "Where was she born?", 2);
  const asked = [];
  page.on("request", (request) => request.method() === "POST" && asked.push(request.url()));
  await page.reload();
  await page.waitForSelector(".answer:nth-of-type(2) .sources");
  assert.deepEqual(await page.locator(".answer > h1").allTextContents(), [FIRST, "Where was she born?"]);
  assert.ok((await page.locator("mark.highlight").count()) > 0);
  assert.deepEqual(asked, []);
  assert.deepEqual(await violations(page), []);
  await ask(page, "When did she die?", 3);
  const [list] = await page.evaluate(() => fetch("api/v1/workspaces/default/conversations").then((reply) => reply.json()).then((reply) => reply.conversations));
  assert.equal(list.n_exchanges, 3);
  assert.deepEqual(page.problems, []);
});

test("each question of a conversation is asked with the strategy that was chosen for it", async () => {
  const page = await open(browser, server.address);
  await page.waitForSelector("[name=strategy] option >> nth=3", { state: "attached" });
  await ask(page, "Where was Ada Lovelace born?", 1);
  await page.selectOption("[name=strategy]", "naive");
  await ask(page, "When did she die?", 2);
  const strategies = await page.locator(".cost").evaluateAll((footers) => footers.map((footer) => footer.children[1].textContent));
  assert.deepEqual(strategies, ["weave", "naive"]);
});

test("the list opens a conversation, and deletes one after a question", async () => {
  const page = await open(browser, server.address);
  await ask(page, "What is Linear B?", 1);
  await page.click(".talks button");
  await page.waitForSelector(".talk-list li");
  assert.deepEqual(await violations(page), []);
  const n = await page.locator(".talk-list li").count();
  await page.click(".talk-list li button >> nth=0");
  await page.click("dialog .danger");
  await page.waitForFunction((count) => document.querySelectorAll(".talk-list li").length === count, n - 1);
  await page.click(".talk-list a >> nth=0");
  await page.waitForSelector(".answer:nth-of-type(2)");
  assert.match(await page.textContent(".answer > h1"), /Ada Lovelace/);
});

test("when a document is removed, the answers that quote it say so and show nothing of it", async () => {
  const page = await open(browser, server.address);
  await ask(page, "What was Fortuna Quist known for?", 1);
  await page.evaluate(async () => {
    const base = "api/v1/workspaces/default";
    const reply = await fetch(`${base}/documents/quist.md`, { method: "PUT", body: "Fortuna Quist was known for the lighthouse of Vardø." });
    const { job } = await reply.json();
    await (await fetch(`${base}/jobs/${job.id}/events`)).text();
  });
  await page.goto(`${server.address}/`);
  await page.waitForSelector("#question");
  await ask(page, "What was Fortuna Quist known for?", 1);
  assert.match(await page.textContent(".answer"), /lighthouse of Vardø/);
  await page.evaluate(() => fetch("api/v1/workspaces/default/documents/quist.md", { method: "DELETE" }));
  await page.reload();
  await page.waitForSelector(".answer .notice");
  assert.match(await page.textContent(".answer .notice"), /no longer there/);
  assert.doesNotMatch(await page.textContent("main"), /lighthouse/);
});
