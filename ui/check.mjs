// Checks of the page: `node check.mjs words` compares the languages, `node check.mjs build` compresses and weighs the build.

import { readFileSync, readdirSync, writeFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const BUILD = new URL("../src/quipu/server/web", import.meta.url).pathname;
const WORDS = new URL("src/words", import.meta.url).pathname;
// Budgets in bytes after gzip; `total` counts files as they are, with their compressed copies.
const BUDGETS = { start: 60_000, graph: 45_000, total: 600_000, requests: 6 };

const problems = { words: checkWords, build: checkBuild }[process.argv[2]]();
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);

/** Every language has the same keys, the same values in braces, and every plural form that it needs. */
function checkWords() {
  const english = catalogue("en");
  return ["ru", "zh"].flatMap((code) => {
    const other = catalogue(code);
    const forms = new Intl.PluralRules(code).resolvedOptions().pluralCategories;
    const keys = new Set([...Object.keys(english), ...Object.keys(other)]);
    return [...keys].flatMap((key) => {
      if (!(key in english)) return [`${code}.json: nothing uses "${key}"`];
      if (!(key in other)) return [`${code}.json: "${key}" is missing`];
      const [expected, entry] = [english[key], other[key]];
      if (typeof entry !== typeof expected) return [`${code}.json: "${key}" is not of the same kind as in en.json`];
      if (typeof entry === "object" && forms.some((form) => !(form in entry))) return [`${code}.json: "${key}" needs ${forms.join(", ")}`];
      const isSame = values(entry).every((text) => String(braces(text)) === String(braces(values(expected)[0])));
      return isSame ? [] : [`${code}.json: "${key}" has other values in braces`];
    });
  });
}

function catalogue(code) {
  return JSON.parse(readFileSync(join(WORDS, `${code}.json`), "utf8"));
}

function values(entry) {
  return typeof entry === "string" ? [entry] : Object.values(entry);
}

function braces(text) {
  return [...new Set(text.match(/\{\w+\}/g))].sort();
}

/** The build is complete, within its budgets, and asks no other host. */
function checkBuild() {
  const names = files(BUILD);
  const found = [];
  for (const name of names.filter((name) => /\.(?:html|js|css|svg)$/.test(name))) {
    const text = readFileSync(join(BUILD, name));
    if (/\.(?:js|css|svg)$/.test(name)) writeFileSync(join(BUILD, `${name}.gz`), gzipSync(text, { level: 9 }));
    for (const [address] of text.toString().matchAll(/(?:src|href)="https?:\/\/[^"]*"|url\(https?:[^)]*\)|import\("https?:[^"]*"\)/g))
      found.push(`${name} asks another host: ${address}`);
  }
  const html = readFileSync(join(BUILD, "index.html"), "utf8");
  const start = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map((match) => match[1]);
  const weight = (list) => list.reduce((sum, name) => sum + gzipSync(readFileSync(join(BUILD, name)), { level: 9 }).length, 0);
  const script = start.filter((name) => name.endsWith(".js"));
  const graph = names.filter((name) => /assets\/(?:graph|sigma|renderer)[^/]*\.js$/.test(name));
  const total = files(BUILD).reduce((sum, name) => sum + statSync(join(BUILD, name)).size, 0);
  const weights = { start: weight(script), graph: weight(graph), total, requests: start.length + 3 }; // and the page itself, who asks, and how large the index is
  for (const [name, limit] of Object.entries(BUDGETS)) {
    console.log(`${name.padEnd(9)} ${weights[name].toLocaleString("en").padStart(9)}   at most ${limit.toLocaleString("en")}`);
    if (weights[name] > limit) found.push(`${name}: ${weights[name]} is more than ${limit}`);
  }
  return found;
}

function files(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}
