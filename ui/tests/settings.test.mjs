// Settings and usage: what is in force, what was spent, derivations, workspaces and snippets, in a real browser.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { demoIndex, open, removeFolder, startBrowser, startModel, startServer, violations } from "./browser.mjs";

const VIEW = "#/workspaces/default/settings";
let folder, server, model, browser;

before(async () => {
  folder = demoIndex();
  model = await startModel({});
  writeFileSync(join(folder, "quipu.toml"), 'currency = "EUR"\n\n[[price]]\nmodel = "custom/test"\ninput = 2.0\noutput = 8.0\n');
  server = await startServer(folder, { env: { ...model.env, QUIPU_CONFIG: join(folder, "quipu.toml") } });
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await model?.stop();
  if (folder) removeFolder(folder);
});

/** Wait until every part of the view has its answer. */
const ready = (page) => Promise.all([".setting-list li", "#derivations", ".settings [role=tabpanel] > *"].map((part) => page.waitForSelector(part)));

test("what models cost is shown by day, stage and model", async () => {
  const page = await open(browser, server.address, "#/workspaces/default/ask?q=Who+built+on+the+work+of+Alice+Kober%3F");
  await page.waitForSelector(".cost");
  await page.goto(`${server.address}/${VIEW}`);
  await page.waitForSelector(".spending tbody tr");
  assert.match(await page.textContent(".spending tfoot"), /€/);
  await page.click("[role=tab] >> text=Stage");
  await page.waitForSelector(".spending tbody th >> text=answer");
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector(".spending tbody th >> text=custom");
  assert.ok((await page.locator(".spending .bar").first().boundingBox()).width > 10);
  assert.deepEqual(page.problems, []);
});

test("a derivation is computed with its progress, dropped, and the settings say where they come from", async () => {
  const page = await open(browser, server.address, VIEW);
  await ready(page);
  const row = page.locator(".rows li", { hasText: "sentences" });
  await row.getByRole("button", { name: "Compute sentences" }).click();
  await page.waitForSelector(".job .badge.finished");
  await row.getByText("fresh", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Drop sentences" }).click();
  await page.click("dialog .danger");
  await row.getByText("not computed").waitFor();
  assert.match(await page.locator(".setting-list li", { hasText: "currency" }).textContent(), /EUR *quipu\.toml:1/);
  await page.fill(".settings [type=search]", "overview");
  await page.waitForFunction(() => !document.querySelector(".setting-list")?.textContent.includes("Directory of the index"));
  assert.deepEqual(page.problems, []);
});

test("the index is checked, and a snippet is copied that works", async () => {
  const page = await open(browser, server.address, VIEW, { permissions: ["clipboard-read", "clipboard-write"] });
  await ready(page);
  await page.click("text=Check everything");
  await page.waitForSelector("#check-result >> text=The index is sound.");
  await page.click("text=Copy");
  await page.waitForSelector(".toasts >> text=Copied.");
  const command = (await page.evaluate(() => navigator.clipboard.readText())).replace("…", "Who was Alice Kober?");
  const { stdout } = spawnSync("sh", ["-c", command], { encoding: "utf8" });
  assert.ok(JSON.parse(stdout).citations.length > 0, stdout);
  await page.click("[role=tab] >> text=MCP");
  const { mcpServers } = JSON.parse(await page.textContent("[role=tabpanel] pre"));
  assert.equal((await fetch(mcpServers.quipu.url, { method: "DELETE" })).status !== 404, true);
  assert.deepEqual(page.problems, []);
});

test("workspaces are created and deleted", async () => {
  const root = mkdtempSync(join(tmpdir(), "quipu-root-"));
  const demo = demoIndex();
  renameSync(join(demo, "index"), join(root, "letters"));
  const many = await startServer(demo, { root });
  try {
    const page = await open(browser, many.address, "#/workspaces/letters/settings");
    await ready(page);
    await page.fill(".settings [name=name]", "second");
    await page.click(".settings form button");
    await page.click(".settings .rows a >> text=second");
    await page.waitForSelector("h2 >> text=Workspace second");
    await page.getByRole("button", { name: "Delete second" }).click();
    await page.click("dialog .danger");
    await page.waitForSelector("h2 >> text=Workspace letters");
    assert.equal(await page.getByRole("button", { name: "Delete second" }).count(), 0);
    assert.deepEqual(page.problems, []);
  } finally {
    await many.stop();
    removeFolder(root);
    removeFolder(demo);
  }
});

test("a key that only reads sees what was spent, and no button that changes anything", async () => {
  const own = demoIndex();
  const made = spawnSync(process.env.QUIPU ?? "quipu", ["--index", join(own, "index"), "keys", "create", "reader", "--permission", "read"], { encoding: "utf8" });
  const reading = await startServer(own);
  try {
    const page = await open(browser, reading.address, VIEW);
    await page.fill("[name=key]", /quipu_\S+/.exec(made.stdout)[0]);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#derivations");
    assert.equal(await page.locator(".row-actions button, #checks, .setting-list, #workspaces").count(), 0);
    assert.match(await page.textContent("[role=tabpanel] pre"), /authorization: Bearer/);
    assert.match(await page.locator("section", { hasText: "Access" }).first().textContent(), /reader.*only reads/);
    assert.deepEqual(await violations(page), []);
  } finally {
    await reading.stop();
    removeFolder(own);
  }
});

for (const theme of ["light", "dark"])
  for (const [name, prepare] of [
    ["the settings", () => {}],
    ["every setting", (page) => page.check(".check input")],
    [
      "a dialog",
      async (page) => {
        await page.getByRole("button", { name: "Delete default" }).click();
        await page.waitForSelector("dialog .danger");
      },
    ],
    [
      "an error",
      async (page) => {
        await page.route("**/verify*", (route) => route.abort());
        await page.click("text=Check everything");
        await page.waitForSelector("main [role=alert]");
      },
    ],
  ])
    test(`axe finds nothing against ${name} in ${theme}, which is no wider than a telephone`, async () => {
      const page = await open(browser, server.address, VIEW, { colorScheme: theme, viewport: { width: 360, height: 740 } });
      await ready(page);
      await prepare(page);
      assert.deepEqual(await violations(page), []);
      const [needed, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= width, `${needed} pixels are needed`);
    });

for (const [language, words] of [["ru", ["Настройки и расходы", "Производные данные", "Копировать"]], ["zh", ["设置与用量", "派生数据", "复制"]]])
  test(`the settings are shown in ${language}`, async () => {
    const page = await open(browser, server.address, VIEW, { locale: language });
    await ready(page);
    const text = await page.textContent("main");
    for (const word of words) assert.ok(text.includes(word), word);
  });
