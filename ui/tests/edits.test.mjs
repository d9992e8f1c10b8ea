// Edits: an entity is corrected, merged with another one, hidden, and all of it is undone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addDocument, browser, open, serveDemo, server, violations } from "./browser.mjs";

serveDemo();

const view = (name) => `#/workspaces/default/entities/${encodeURIComponent(name)}`;
const heading = (page, name) => page.locator("h1", { hasText: name }).waitFor();

test("a corrected entity shows its new name, type and description, and undoing brings the old ones back", async () => {
  const page = await open(browser, server.address, view("alice kober"));
  await heading(page, "Alice Kober");
  await page.click("text=Edit …");
  await page.fill("dialog input[name=name]", "Alice E. Kober");
  await page.fill("dialog input[name=type]", "Classicist");
  await page.fill("dialog textarea", "She studied Linear B.");
  await page.fill("dialog input[name=reason]", "her full name");
  await page.click("dialog .primary");
  await heading(page, "Alice E. Kober");
  await page.waitForFunction(() => document.querySelectorAll(".edit-list button").length === 3); // they come by themselves,
  await page.waitForFunction(() => document.querySelectorAll(".relation-list p a").length > 3); // each leads to the sentence that states it
  assert.match(await page.textContent(".facts"), /Classicist/);
  assert.match(await page.textContent(".facts"), /Alice Kober/);
  assert.deepEqual(await page.locator(".descriptions li").allTextContents(), ["She studied Linear B."]);
  assert.match(await page.textContent(".edit-list"), /her full name/);
  assert.deepEqual(await violations(page), []);
  for (let n = 3; n > 0; n--) {
    await page.waitForFunction((count) => document.querySelectorAll(".edit-list button").length === count, n);
    await page.locator(".edit-list button").first().click();
  }
  await page.waitForFunction(() => document.querySelector(".edit-list") && !document.querySelector(".edit-list button"));
  await heading(page, "Alice Kober");
  await page.waitForFunction(() => !document.querySelector(".facts").textContent.includes("Classicist"));
  assert.deepEqual(page.problems, []);
});

test("two entities are shown side by side and become one under the chosen name", async () => {
  const page = await open(browser, server.address, view("alice kober"), { width: 360, height: 800 });
  await heading(page, "Alice Kober");
  await page.click("text=Merge with …");
  await page.fill("#merge-prefix", "michael ventris");
  await page.keyboard.press("Enter");
  await page.locator(".choice-list button", { hasText: "Michael Ventris" }).first().click();
  await page.waitForSelector(".both .side:nth-of-type(2)");
  assert.deepEqual(await violations(page), []);
  await page.check('.both input[value="Michael Ventris"]');
  await page.click("dialog .primary");
  await heading(page, "Michael Ventris");
  assert.match(await page.textContent(".facts"), /Alice Kober/);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.locator(".edit-list button").first().click();
  await page.waitForFunction(() => !document.querySelector(".facts").textContent.includes("Alice Kober"));
  assert.deepEqual(page.problems, []);
});

test("a hidden entity is gone from the list, and what the server refuses is said in the dialog", async () => {
  const page = await open(browser, server.address, view("alice kober"));
  await heading(page, "Alice Kober");
  await page.click("text=Edit …");
  await page.fill("dialog input[name=name]", "Michael Ventris");
  await page.click("dialog .primary");
  assert.match(await page.textContent("dialog .problem"), /another entity/);
  await page.keyboard.press("Escape");
  await page.click("text=Hide");
  await page.click("dialog .danger");
  await page.waitForSelector(".entity-list");
  await page.fill("#prefix", "alice kober");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("prefix=alice"));
  await page.waitForFunction(() => document.querySelector(".entities .empty, .entities .entity-list"));
  assert.ok(!(await page.locator(".entity-list a").allTextContents()).includes("Alice Kober"));
  const { edits } = await (await fetch(`${server.address}/api/v1/workspaces/default/edits?k=1`)).json();
  assert.equal(edits[0].edit.kind, "hide");
  await fetch(`${server.address}/api/v1/workspaces/default/edits/${edits[0].id}`, { method: "DELETE" });
});

test("a possible duplicate is shown with its reason, merged, brought back, and told apart", async () => {
  const edits = `${server.address}/api/v1/workspaces/default/edits`;
  const body = JSON.stringify({ kind: "create", entities: ["AliceKober"], description: "Written as one word." });
  await fetch(edits, { method: "POST", headers: { "content-type": "application/json" }, body });
  const page = await open(browser, server.address, view("alice kober"));
  const pair = page.locator("section", { hasText: "Possible duplicates" });
  await pair.locator("text=equal without spaces").waitFor();
  assert.deepEqual(await violations(page), []);
  await pair.locator("button", { hasText: "Merge" }).click();
  await page.waitForSelector(".both");
  await page.click("dialog .primary");
  await page.waitForFunction(() => document.querySelector(".facts").textContent.includes("AliceKober"));
  await page.locator(".edit-list button", { hasText: "Undo" }).first().click();
  await pair.locator("button", { hasText: "Not the same" }).click();
  await pair.waitFor({ state: "detached" });
  assert.deepEqual(page.problems, []);
});

test("what a removal does to edits is shown before it", async () => {
  const api = `${server.address}/api/v1/workspaces/default`;
  await addDocument(server.address, "ochre.md", "Ottoline Ferch ground ochre with Bertrand Quill in the town of Lindau.");
  const page = await open(browser, server.address, view("ottoline ferch"));
  await heading(page, "Ottoline Ferch");
  const body = JSON.stringify({ kind: "retype", entities: ["ottoline ferch"], type: "Painter" });
  await fetch(`${api}/edits`, { method: "POST", headers: { "content-type": "application/json" }, body });
  await page.goto(`${server.address}/#/workspaces/default/documents`);
  await page.locator(".rows li", { hasText: "ochre" }).getByRole("button", { name: "Remove" }).click();
  await page.locator("dialog li", { hasText: "Ottoline Ferch → Painter" }).waitFor();
  assert.match(await page.textContent("dialog"), /Edits that lose what they change: 1/);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.problems, []);
});
