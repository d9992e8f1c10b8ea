// Documents: adding, following, finding and removing documents, in a real browser.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { browser, demoIndex, folder, open, removeFolder, serveDemo, server, startModel, startServer, violations } from "../browser.mjs";

const VIEW = "#/workspaces/default/documents";
const ROW = ".rows li";
serveDemo();

/** A file as Playwright puts it into an input. */
const file = (name, text) => ({ name, mimeType: "text/markdown", buffer: Buffer.from(text) });
const row = (page, name) => page.locator(ROW, { hasText: name });

test("files are added, followed to the end, and unchanged ones are said to be unchanged", async () => {
  const page = await open(browser, server.address, VIEW);
  await page.waitForSelector(ROW);
  const files = [file("notes-1.md", "# First note\n\nAda Lovelace met Mary Somerville."), file("notes-2.md", "# Second note\n\nMary Somerville taught Ada."), file("picture.png", "\x89PNG\r\n\x1a\n\0\0")];
  await page.setInputFiles("[name=files]", files);
  await page.waitForSelector(".card >> text=2 documents added.");
  assert.match(await page.textContent(".card .names"), /picture\.png/);
  await page.waitForSelector(".job >> text=2 of 2 documents");
  await page.waitForSelector(".job .badge.finished");
  assert.match(await row(page, "First note").textContent(), /ready/);
  assert.match(await page.textContent("h1"), /44 documents/);
  await page.setInputFiles("[name=files]", files.slice(0, 2));
  await page.waitForSelector(".card >> text=2 documents unchanged");
  assert.deepEqual(page.problems, []);
});

test("files that are dropped anywhere on the view are added with their names", async () => {
  const page = await open(browser, server.address, VIEW);
  await page.waitForSelector(ROW);
  await page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["# Dropped\n\nGrace Hopper wrote a compiler."], "dropped.md"));
    for (const type of ["dragover", "drop"]) document.querySelector(".rows").dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
  });
  await row(page, "Dropped").getByText("ready").waitFor();
});

test("a folder is added with its paths, without its hidden files", async () => {
  const chosen = mkdtempSync(join(tmpdir(), "quipu-folder-"));
  try {
    mkdirSync(join(chosen, "letters/.git"), { recursive: true });
    writeFileSync(join(chosen, "letters/one.md"), "# Letter one\n\nAda wrote to Babbage.");
    writeFileSync(join(chosen, "letters/.git/config.md"), "hidden");
    const page = await open(browser, server.address, VIEW);
    await page.waitForSelector(ROW);
    await page.setInputFiles("[name=folder]", join(chosen, "letters"));
    await row(page, "Letter one").getByText("letters/one.md").waitFor();
    await page.waitForSelector(".card >> text=1 document added.");
  } finally {
    removeFolder(chosen);
  }
});

test("a pasted text becomes a document that can be opened; a script in it stays text", async () => {
  const page = await open(browser, server.address, VIEW);
  await page.click("text=Paste text");
  await page.fill("dialog [name=title]", "<img src=x onerror=alert(1)>");
  await page.fill("dialog [name=text]", "Hello. <script>alert(1)</script><img src=x onerror=alert(1)>\n\n[here](javascript:alert(1))");
  await page.click("dialog .primary");
  await row(page, "<img src=x onerror=alert(1)>").getByText("ready").waitFor();
  await page.click(`${ROW} a >> text=<img src=x onerror=alert(1)>`);
  await page.waitForSelector(".document .markdown >> text=Hello.");
  assert.equal(await page.locator(".markdown img, .markdown script, .markdown a[href^=javascript]").count(), 0);
  assert.deepEqual(page.problems, []);
});

test("a file name full of markup is shown as it is, opens, and is removed after a look at what goes", async () => {
  const name = "\"><b onmouseover=alert(1)>&amp;' %2e%2e #?.md";
  const page = await open(browser, server.address, VIEW);
  await page.waitForSelector(ROW);
  await page.setInputFiles("[name=files]", [file(name, "# Markup\n\nZerubbabel Quux met Ada Lovelace.")]);
  await row(page, "Markup").getByText("ready").waitFor();
  await page.click(`${ROW} a >> text=Markup`);
  await page.waitForSelector(".document .markdown >> text=Zerubbabel");
  await page.goBack();
  await row(page, "Markup").getByRole("button", { name: "Remove" }).click();
  await page.waitForSelector("dialog .facts >> text=Entities that go");
  assert.match(await page.textContent("dialog"), /Zerubbabel Quux/);
  assert.match(await page.textContent("dialog .names"), /<b onmouseover/);
  await page.click("dialog .danger");
  await row(page, "Markup").waitFor({ state: "detached" });
  assert.deepEqual(page.problems, []);
});

test("documents are found by how they begin, by status and in an order, and the address keeps it", async () => {
  const page = await open(browser, server.address, VIEW);
  await page.waitForSelector(ROW);
  await page.fill("[name=prefix]", "Ada Lovelace and");
  await page.waitForFunction(() => document.querySelectorAll(".rows li").length === 1);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll(".rows li").length === 1);
  await page.fill("[name=prefix]", "slips cut from old cards");
  await page.waitForSelector(".empty"); // no name begins so
  await page.click(".passages a >> text=Alice Kober");
  await page.waitForSelector("mark.cited >> text=slips");
  await page.goBack();
  await page.waitForSelector(".passages");
  await page.selectOption("[name=status]", "failed");
  await page.waitForSelector(".empty");
  await page.click(".empty a");
  await page.waitForFunction(() => document.querySelectorAll(".rows li").length > 10);
  await page.selectOption("[name=order]", "title");
  await page.waitForFunction(() => location.hash.includes("order=title"));
});

test("the arrow keys walk through the list, and the focus comes back from a dialog", async () => {
  const page = await open(browser, server.address, VIEW);
  await page.focus(`${ROW} a`);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => [...document.querySelectorAll(".rows a")].indexOf(document.activeElement)), 2);
  await page.focus(`${ROW} .row-actions button`);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog .facts");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^Remove /);
});

test("an upload that breaks off says so, and is continued without sending anything twice", async () => {
  const page = await open(browser, server.address, VIEW);
  await page.waitForSelector(ROW);
  await page.route("**/documents", (route) => (route.request().method() === "POST" ? route.abort() : route.continue()));
  await page.setInputFiles("[name=files]", [file("broken-off.md", "# Broken off\n\nAda.")]);
  await page.waitForSelector(".card [role=alert]");
  await page.unroute("**/documents");
  await page.click(".card [role=alert] button");
  await page.waitForSelector(".card >> text=1 document added.");
});

test("a reload in the middle of an upload tells how many files are missing", async () => {
  const page = await open(browser, server.address, VIEW);
  await page.waitForSelector(ROW);
  await page.route("**/documents", (route) => route.request().method() === "POST" || route.continue()); // no reply ever
  page.on("dialog", (dialog) => dialog.accept());
  await page.setInputFiles("[name=files]", [file("cut-1.md", "one"), file("cut-2.md", "two")]);
  await page.waitForSelector(".card progress");
  await page.reload();
  await page.waitForSelector(".interrupted >> text=2 files");
  await page.click(".interrupted button");
  await page.waitForSelector(".interrupted", { state: "detached" });
  await page.reload();
  await page.waitForSelector(ROW);
  assert.equal(await page.locator(".interrupted").count(), 0);
});

test("two tabs stay in step, also those of two people", async () => {
  const first = await open(browser, server.address, VIEW);
  const second = await first.context().newPage();
  await second.goto(`${server.address}/${VIEW}`);
  const third = await open(browser, server.address, VIEW); // in a browser of its own
  for (const page of [first, second, third]) await page.waitForSelector(ROW);
  await first.setInputFiles("[name=files]", [file("both.md", "# Seen by all\n\nAda.")]);
  for (const page of [second, third]) await row(page, "Seen by all").getByText("ready").waitFor();
  await row(first, "Seen by all").getByRole("button").click();
  await first.click("dialog .danger");
  for (const page of [second, third]) await row(page, "Seen by all").waitFor({ state: "detached" });
});

test("a server that goes away and comes back is noticed without a reload", async () => {
  const own = demoIndex();
  let mortal = await startServer(own);
  try {
    const page = await open(browser, mortal.address, VIEW);
    await page.waitForSelector(ROW);
    const ended = new Promise((resolve) => mortal.process.on("exit", resolve));
    mortal.process.kill("SIGKILL");
    await ended;
    await page.waitForSelector(".offline");
    assert.deepEqual(await violations(page), []);
    mortal = await startServer(own, { port: new URL(mortal.address).port });
    await page.waitForSelector(".offline", { state: "detached" });
    await page.setInputFiles("[name=files]", [file("afterwards.md", "# Afterwards\n\nAda.")]);
    await row(page, "Afterwards").getByText("ready").waitFor();
  } finally {
    await mortal.stop();
    removeFolder(own);
  }
});

/** Run a test with a server whose model reads documents by a script, after it has read one without a fault. */
async function withModel(script, run) {
  const model = await startModel({});
  const own = mkdtempSync(join(tmpdir(), "quipu-page-"));
  writeFileSync(join(own, "quipu.toml"), 'currency = "EUR"\n\n[[price]]\nmodel = "custom/test"\ninput = 2.0\noutput = 8.0\n');
  const reading = await startServer(own, { env: { ...model.env, QUIPU_CONFIG: join(own, "quipu.toml") } });
  const follow = (script) => fetch(`${model.address}/script`, { method: "PUT", body: JSON.stringify(script) });
  try {
    const page = await open(browser, reading.address, VIEW);
    await page.waitForSelector(".empty");
    await page.click("text=Paste text");
    await page.fill("dialog [name=text]", "# Read first\n\nMary Somerville taught Ada.");
    await page.click("dialog .primary");
    await page.click("dialog:has(.facts) .primary");
    await row(page, "Read first").getByText("ready").waitFor();
    await page.click(".job >> text=Close");
    await follow(script);
    await run(page, follow);
    assert.deepEqual(page.problems, []);
  } finally {
    await reading.stop();
    await model.stop();
    removeFolder(own);
  }
}

test("a job is shown again after a reload, and can be cancelled", () =>
  withModel({ latency: { mean_s: 60 } }, async (page) => {
    await page.setInputFiles("[name=files]", [file("slow-1.md", "# Slow one\n\nAda."), file("slow-2.md", "# Slow two\n\nAda.")]);
    await page.waitForSelector("dialog .facts >> text=Calls of the model");
    assert.deepEqual(await violations(page), []);
    await page.click("dialog .primary");
    await page.waitForSelector(".job .badge.running");
    await page.reload();
    await page.waitForSelector(".job .badge.running");
    await page.click(".job >> text=Cancel");
    await row(page, "slow-1.md").waitFor({ state: "detached" });
  }));

test("what would cost more than the cap is not added", () =>
  withModel({}, async (page) => {
    await page.setInputFiles("[name=files]", [file("dear.md", "# Dear\n\nAda Lovelace met Charles Babbage.")]);
    await page.waitForSelector("dialog .facts >> text=€");
    await page.fill("dialog [name=cap]", "0.000001");
    await page.waitForSelector("dialog [role=alert] >> text=above");
    assert.ok(await page.isDisabled("dialog .primary"));
    assert.deepEqual(await violations(page), []);
    await page.fill("dialog [name=cap]", "5");
    await page.click("dialog .primary");
    await row(page, "Dear").getByText("ready").waitFor();
    await page.waitForSelector(".job .badge.finished");
    assert.match(await page.textContent(".job"), /tokens.*€/); // what it cost in the end
  }));

test("what a model could not read is listed with its reason, and only that is read again", () =>
  withModel({ faults: [{ name: "filtered", probability: 1 }] }, async (page, follow) => {
    await page.setInputFiles("[name=files]", [file("refused.md", "# Refused\n\nAda Lovelace met Charles Babbage.")]);
    await page.click("dialog .primary");
    await page.waitForSelector(`${ROW} .error`);
    await page.waitForSelector(".job .names >> text=refused.md");
    assert.deepEqual(await violations(page), []);
    await follow({});
    await page.click(".job >> text=Retry what failed");
    await row(page, "Refused").getByText("ready").waitFor();
    assert.equal(await page.locator(`${ROW} .error`).count(), 0);
  }));

test("of ten thousand documents a page is shown within 300 ms, with at most 1,500 elements", async () => {
  const own = mkdtempSync(join(tmpdir(), "quipu-page-"));
  mkdirSync(join(own, "notes"));
  for (let n = 0; n < 10_000; n++) writeFileSync(join(own, "notes", `${String(n).padStart(5, "0")}.txt`), `Note ${n}.`);
  const made = spawnSync(process.env.QUIPU ?? "quipu", ["--index", join(own, "index"), "add", join(own, "notes")], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  const large = await startServer(own);
  try {
    const page = await open(browser, large.address, VIEW);
    await page.waitForSelector("h1 >> text=10,000 documents");
    const times = [];
    for (const order of ["id", "title", "updated"]) {
      await page.goto(`${large.address}/${VIEW}?order=${order}`);
      await page.waitForSelector(`nav.actions a:only-child[href*="order=${order}"]`);
      for (let n = 0; n < 3; n++)
        times.push(
          await page.evaluate(async () => {
            const first = () => document.querySelector(".rows a")?.href;
            const [before, start] = [first(), performance.now()];
            document.querySelector("nav.actions a:last-child").click();
            while (first() === before) await new Promise(requestAnimationFrame);
            return performance.now() - start;
          }),
        );
    }
    const nElements = await page.evaluate(() => document.querySelectorAll("*").length);
    console.log(`a page of 10,000 documents: ${times.map((ms) => ms.toFixed(0)).join(", ")} ms, ${nElements} elements`);
    assert.ok(Math.min(...times) <= 300, `${times} ms`);
    assert.ok(nElements <= 1_500, `${nElements} elements`);
  } finally {
    await large.stop();
    removeFolder(own);
  }
});

test("a key that only reads sees no button that writes", async () => {
  const own = demoIndex();
  const made = spawnSync(process.env.QUIPU ?? "quipu", ["--index", join(own, "index"), "keys", "create", "reader", "--permission", "read"], { encoding: "utf8" });
  const key = /quipu_\S+/.exec(made.stdout)[0];
  const reading = await startServer(own);
  try {
    const page = await open(browser, reading.address, VIEW);
    await page.fill("[name=key]", key);
    await page.keyboard.press("Enter");
    await page.waitForSelector(ROW);
    assert.equal(await page.locator(".drop, .row-actions, .rows input").count(), 0);
    assert.deepEqual(await violations(page), []);
  } finally {
    await reading.stop();
    removeFolder(own);
  }
});

for (const theme of ["light", "dark"])
  for (const [name, view, prepare] of [
    ["the list", VIEW, (page) => page.waitForSelector(ROW)],
    ["no match", `${VIEW}?prefix=nothing-begins-so`, (page) => page.waitForSelector(".empty")],
    ["an error", `${VIEW}?order=title&after=nonsense`, (page) => page.waitForSelector("main [role=alert]")],
    [
      "the preview of a removal, in a dialog",
      VIEW,
      async (page) => {
        await page.click(`${ROW} .row-actions button`);
        await page.waitForSelector("dialog .facts");
      },
    ],
    [
      "the form for a text",
      VIEW,
      async (page) => {
        await page.click("text=Paste text");
        await page.waitForSelector("dialog textarea");
      },
    ],
    [
      "uploads and jobs",
      VIEW,
      async (page) => {
        await page.waitForSelector(ROW);
        await page.setInputFiles("[name=files]", [file(`axe-${theme}.md`, `# For axe ${theme}\n\nAda.`), file("picture.png", "\x89PNG\r\n\x1a\n\0\0")]);
        await page.waitForSelector(".job .badge.finished");
        await page.check(`${ROW} input >> nth=0`);
        await page.waitForSelector(".chosen");
      },
    ],
  ])
    test(`axe finds nothing against ${name} in ${theme}, which is no wider than a telephone`, async () => {
      const page = await open(browser, server.address, view, { colorScheme: theme, viewport: { width: 360, height: 740 } });
      await prepare(page);
      assert.deepEqual(await violations(page), []);
      const [needed, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= width, `${needed} pixels are needed`);
    });

for (const [language, words] of [["ru", ["Документы", "Выбрать файлы", "Удалить"]], ["zh", ["文档", "选择文件", "移除"]]])
  test(`the documents are shown in ${language}`, async () => {
    const page = await open(browser, server.address, VIEW, { locale: language });
    await page.waitForSelector(ROW);
    const text = await page.textContent("main");
    for (const word of words) assert.ok(text.includes(word), word);
  });
