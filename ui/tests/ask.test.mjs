// Ask and Document: the story from a question to the marked sentence, in a real browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addDocument, browser, open, serveDemo, server, violations } from "./browser.mjs";

serveDemo();

const QUESTION = "Who built on the work of Alice Kober?";
const asked = `#/workspaces/default/ask?q=${encodeURIComponent(QUESTION)}`;

test("a question is answered, and a click on its citation opens the document at the marked sentence", async () => {
  const page = await open(browser, server.address);
  await page.fill("#question", QUESTION);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".sources");
  assert.match(await page.textContent("mark.highlight"), /built on the work of the scholar Alice Kober/);
  await page.click("a.citation >> nth=0");
  await page.waitForSelector("mark.cited");
  assert.match((await page.locator("mark.cited").allTextContents()).join(""), /built on the work of the scholar Alice Kober/);
  assert.ok(await page.locator("mark.cited").first().isVisible());
  await page.goBack();
  await page.waitForSelector(".sources");
  assert.deepEqual(page.problems, []);
});

test("a quote is shown at its number under the pointer and by keyboard, and goes with Escape", async () => {
  const page = await open(browser, server.address, asked);
  await page.waitForSelector(".sources");
  await page.locator("a.citation").first().focus();
  assert.match(await page.textContent(".peek"), /built on the work/);
  assert.equal(await page.getAttribute("a.citation >> nth=0", "aria-describedby"), "peek");
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".peek", { state: "detached" });
  await page.hover("a.citation >> nth=0");
  await page.hover(".peek"); // the pointer may move onto it
  await page.hover("h1");
  await page.waitForSelector(".peek", { state: "detached" });
});

test("a number in brackets that a quote contains is no citation", async () => {
  const text = "The glazing of Samarkand [1] was known for its cobalt [2].";
  await addDocument(server.address, "glazing.md", text);
  const page = await open(browser, server.address, `#/workspaces/default/ask?q=${encodeURIComponent("What was the glazing of Samarkand known for?")}`);
  const answer = page.locator(".markdown", { hasText: "cobalt" });
  await answer.first().waitFor();
  assert.match(await answer.first().textContent(), /Samarkand \[1\] was known for its cobalt \[2\]\. 1\s*$/);
  assert.equal(await answer.first().locator("a.citation").count(), 1);
  assert.deepEqual(page.problems, []);
  await fetch(`${server.address}/api/v1/workspaces/default/documents/glazing.md`, { method: "DELETE" });
});

test("a source shows the date that its document states", async () => {
  await addDocument(server.address, "fee.md", "---\nvalid_from: 2023-03\n---\nThe Samarkand kiln guild pays its potters 120 dinars a month.");
  const page = await open(browser, server.address, `#/workspaces/default/ask?q=${encodeURIComponent("What does the Samarkand kiln guild pay its potters?")}`);
  assert.equal(await page.locator(".sources li", { hasText: "fee.md" }).first().locator("time").textContent(), "2023-03");
  assert.deepEqual(page.problems, []);
  await fetch(`${server.address}/api/v1/workspaces/default/documents/fee.md`, { method: "DELETE" });
});

test("a quote is one source, and its number leads to what answers, not to the header of the table", async () => {
  const text = "# Kilns\n\n| kiln | city |\n|---|---|\n| Azure | Samarkand |\n| Ochre | Bukhara |\n";
  await addDocument(server.address, "kilns.md", text);
  const page = await open(browser, server.address, `#/workspaces/default/ask?q=${encodeURIComponent("Which city has the kiln Azure?")}`);
  await page.waitForSelector(".sources");
  assert.deepEqual(await page.locator(".sources li a").allTextContents(), ["Kilns"]);
  await page.click("a.citation");
  await page.waitForSelector("mark.cited");
  assert.match(await page.locator("mark.cited").allTextContents().then((pieces) => pieces.join(" ")), /Azure.*Samarkand/);
  assert.deepEqual(page.problems, []);
  await fetch(`${server.address}/api/v1/workspaces/default/documents/kilns.md`, { method: "DELETE" });
});

test("the page of a PDF is shown with the quote marked in it", async () => {
  const line = "BT /F 14 Tf 60 700 Td (The kiln of Khiva was built by Usta Murad.) Tj ET";
  const pdf = `%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [4 0 R] /Count 1 >> endobj
3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
4 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> /Contents 5 0 R >> endobj
5 0 obj << /Length ${line.length} >> stream
${line}
endstream endobj
trailer << /Root 1 0 R >>
%%EOF`;
  await addDocument(server.address, "khiva.pdf", pdf);
  const page = await open(browser, server.address, `#/workspaces/default/ask?q=${encodeURIComponent("Who built the kiln of Khiva?")}`);
  await page.click(".sources button:has-text('page 1')");
  const picture = page.locator("dialog img");
  await picture.waitFor();
  assert.match(await picture.getAttribute("alt"), /Page 1.*Usta Murad/);
  const colours = await picture.evaluate(async (image) => {
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const at = (x, y) => [...canvas.getImageData(x * image.naturalWidth, y * image.naturalHeight, 1, 1).data.slice(0, 3)];
    return [at(86 / 595, 1 - 705 / 842), at(0.9, 0.5)]; // between the first two words, and beside the text
  });
  assert.ok(colours[0][0] > 200 && colours[0][2] < 120, `yellow, not ${colours[0]}`);
  assert.deepEqual(colours[1], [255, 255, 255]);
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.deepEqual(page.problems, []);
  await fetch(`${server.address}/api/v1/workspaces/default/documents/khiva.pdf`, { method: "DELETE" });
});

test("code that answers is marked within its fences", async () => {
  const text = "# Kilnctl\n\nTo fire the kiln of Samarkand, run this:\n\n```sh\nkilnctl fire --degrees 900\n```\n\nIt takes a day.";
  await addDocument(server.address, "kilnctl.md", text);
  const page = await open(browser, server.address, `#/workspaces/default/ask?q=${encodeURIComponent("Which kilnctl command fires the kiln with --degrees 900?")}`);
  await page.waitForSelector(".sources");
  assert.match(await page.textContent(".markdown pre"), /^kilnctl fire --degrees 900\n$/);
  assert.doesNotMatch((await page.locator(".markdown").allTextContents()).join(""), /```/);
  await page.goto(`${server.address}/#/workspaces/default/documents/kilnctl.md?start=${text.indexOf("```sh")}&end=${text.length - 18}`);
  await page.waitForSelector("pre mark.cited");
  assert.equal(await page.textContent("pre mark.cited"), "kilnctl fire --degrees 900");
  assert.deepEqual(page.problems, []);
  await fetch(`${server.address}/api/v1/workspaces/default/documents/kilnctl.md`, { method: "DELETE" });
});

test("an answer is copied with its sources", async () => {
  const page = await open(browser, server.address, asked, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.waitForSelector(".sources");
  await page.click(".cost button");
  await page.waitForSelector(".toasts p");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /built on the work[^]*\[1\] Michael Ventris and Linear B \(linear-b\.md\)/);
});

test("the start offers questions about what the documents name most", async () => {
  const page = await open(browser, server.address);
  await page.waitForSelector(".suggestions button >> nth=3");
  assert.deepEqual(await violations(page), []);
  const question = await page.locator(".suggestions button").first().textContent();
  await page.locator(".suggestions button").first().click();
  await page.waitForSelector(".answer .sources");
  assert.equal(await page.textContent(".answer h1"), question);
});

test("the evidence, the prompt and the reply stand behind tabs that the arrow keys reach", async () => {
  const page = await open(browser, server.address, asked);
  await page.waitForSelector(".sources");
  await page.focus("[role=tab][aria-selected=true]");
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector(".passages li");
  assert.ok((await page.locator(".passages li").count()) > 3);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent("[role=tabpanel] pre"), /"generator": "extractive"/);
});

test("what the documents do not say is answered with what comes nearest", async () => {
  const page = await open(browser, server.address, "#/workspaces/default/ask?q=What+is+the+capital+of+Mongolia%3F");
  await page.waitForSelector(".answer .notice");
  await page.waitForSelector(".passages li");
});

test("options limit the documents and change the search; a wrong one is an error with its remedy", async () => {
  const page = await open(browser, server.address, asked);
  await page.waitForSelector(".sources");
  await page.click(".question-bar .quiet");
  await page.waitForSelector("dialog[open] fieldset >> nth=1");
  assert.deepEqual(await violations(page), []);
  await page.fill("dialog input[name=documents]", "alice-*");
  await page.fill("dialog input[name='o.chunk_top_k']", "3");
  await page.click("dialog .primary");
  await page.waitForFunction(() => location.hash.includes("documents=alice"));
  await page.waitForSelector(".sources");
  for (const source of await page.locator(".sources a").allTextContents()) assert.equal(source, "Alice Kober and Her Card Files");
  await page.click("[role=tab] >> nth=1");
  await page.waitForSelector(".passages li");
  assert.ok((await page.locator(".passages li").count()) <= 3);
  const wrong = await open(browser, server.address, `${asked}&where=%3D%3D`);
  assert.match(await wrong.textContent("[role=alert]"), /not a condition/);
  const refused = await open(browser, server.address, `${asked}&o.top_k=0`);
  assert.match(await refused.textContent("[role=alert]"), /top_k/);
});

for (const theme of ["light", "dark"])
  for (const [name, view, ready] of [
    ["the start", "", ".empty"],
    ["an answer", asked, ".sources"],
    ["a document", "#/workspaces/default/documents/linear-b.md?start=519&end=852", "mark.cited"],
    ["an error", "#/workspaces/default/documents/none.md", "[role=alert]"],
  ])
    test(`axe finds nothing against ${name} in ${theme}, which is no wider than a telephone`, async () => {
      const page = await open(browser, server.address, view, { colorScheme: theme, viewport: { width: 360, height: 740 } });
      await page.waitForSelector(ready);
      assert.deepEqual(await violations(page), []);
      const [needed, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= width, `${needed} pixels are needed`);
    });

for (const [language, word] of [["ru", "Спросить"], ["zh", "提问"]])
  test(`the page speaks the language of the browser: ${language}`, async () => {
    const page = await open(browser, server.address, "", { locale: language });
    assert.equal(await page.textContent(".question .primary"), word);
    assert.equal(await page.getAttribute("html", "lang"), language);
  });
