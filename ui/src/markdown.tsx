// Markdown: text of documents and answers as safe HTML, with marked spans and numbered citations.
//
// A text is shown block by block (paragraph, list, table …). A block that did not change is not drawn again, so that a
// streamed answer costs the same for each piece. Offsets from the server count code points; those here are UTF-16.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import DOMPurify from "dompurify";
import { Marked } from "marked";

/**
 * Characters [start, end) of a text to be marked; `title` is shown when the pointer is over them, `href` makes them a link.
 * Those of the kind "citation" are a number in brackets.
 */
export interface Span {
  start: number;
  end: number;
  kind: "highlight" | "cited" | "unsupported" | "entity" | "citation";
  title?: string;
  href?: string;
}

/** Makes the element for a citation [n] in an answer; undefined leaves the text as it is. */
export type CitationElement = (number: number) => HTMLElement | undefined;

const marked = new Marked({ gfm: true, breaks: false });
marked.use({ renderer: { image: ({ text }) => escape(text) } }); // a picture would be asked from another host

// Marks of the beginning and the end of a span while Markdown is turned into HTML: private use, so no text has them.
const OPEN = 0xe000;
const CLOSE = 0xe800;
const MAX_SPANS = CLOSE - OPEN; // of one block
const MARKS = /[\ue000-\uefff]/;
const BLOCK_MARK = /^[ \t]*(?:(?:[-*+>]|#{1,6}|\d+[.)])[ \t]+|\|[ \t]*)+/; // a span begins behind the mark of a list or heading

const FENCE = /^[ \t>]*(?:`{3,}|~{3,}).*\n?/gm; // begins or ends code
const HIDDEN = /\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+["'][^"'\n]*["'])?\)|<[a-z/!][^<>]*>|^ {0,3}\[[^\]\n]+\]:[ \t]*\S+[ \t]*$/gim; // addresses and tags
const MARKS_IN_ADDRESS = /[\ue000-\uefff]|%EE(?:%[89AB][0-9A-F]){2}/gi; // of an address that is shown as it is

/** A text as Markdown, with marked spans; `citation` makes the elements of spans that cite. */
export function Markdown({ text, spans = [], citation }: { text: string; spans?: Span[]; citation?: CitationElement }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div class="markdown" dir="auto">
      {blocks.map((block) => {
        const inside = spans.filter((span) => span.start < block.start + block.raw.length && span.end > block.start);
        return <Block key={block.start} raw={block.raw} start={block.start} spans={shifted(inside, block).slice(0, MAX_SPANS)} citation={citation} />;
      })}
    </div>
  );
}

interface BlockText {
  raw: string;
  start: number;
}

function blocksOf(text: string): BlockText[] {
  let start = 0;
  return marked.lexer(text.replace(/[\ue000-\uefff]/g, "\ufffd")).map((token) => {
    const block = { raw: token.raw, start };
    start += token.raw.length;
    return block;
  });
}

function shifted(spans: Span[], block: BlockText): Span[] {
  return spans.map((span) => ({
    ...span,
    start: Math.max(0, span.start - block.start),
    end: Math.min(block.raw.length, span.end - block.start),
  }));
}

function Block({ raw, start, spans, citation }: { raw: string; start: number; spans: Span[]; citation?: CitationElement }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const fragment = safeHtml(withMarks(raw, spans));
    markSpans(fragment, spans, citation);
    element.current!.replaceChildren(fragment);
  }, [raw, citation, JSON.stringify(spans)]);
  return <div ref={element} data-start={start} data-end={start + raw.length} />;
}

/** Put marks around spans; one that would begin or end within an address, a tag or the fence of code does so behind or before it. */
function withMarks(raw: string, spans: Span[]): string {
  const hidden = spans.length ? Array.from(raw.matchAll(HIDDEN), ({ index, 0: { length } }) => [index, index + length] as const) : [];
  const around = (at: number) => hidden.find(([first, last]) => first < at && at < last) ?? [at, at];
  const fences = spans.length ? Array.from(raw.matchAll(FENCE), ({ index, 0: { length } }) => [index, index + length] as const) : [];
  const behindFence = (at: number) => fences.find(([first, last]) => first <= at && at < last)?.[1] ?? at;
  const beforeFence = (at: number) => fences.find(([first, last]) => first < at && at <= last)?.[0] ?? at;
  const inserts = spans.flatMap((span, index) => {
    const lineStart = span.start && raw.lastIndexOf("\n", span.start - 1) + 1;
    const behind = lineStart + (BLOCK_MARK.exec(raw.slice(lineStart))?.[0].length ?? 0);
    const end = around(raw.slice(0, beforeFence(raw.slice(0, span.end).trimEnd().length)).trimEnd().length)[0];
    const start = behindFence(around(Math.max(span.start, behind))[1]);
    return start < end ? [[start, String.fromCharCode(OPEN + index)] as const, [end, String.fromCharCode(CLOSE + index)] as const] : [];
  });
  let text = raw;
  for (const [at, mark] of inserts.sort((a, b) => b[0] - a[0])) text = text.slice(0, at) + mark + text.slice(at);
  return text;
}

function safeHtml(markdown: string): DocumentFragment {
  const html = withoutHandlers(marked.parse(markdown, { async: false }));
  const fragment = DOMPurify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true,
    FORBID_TAGS: ["style", "form", "input", "button", "img", "svg", "math", "video", "audio", "iframe", "picture"],
    FORBID_ATTR: ["style", "class", "id", "name", "target"],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  });
  for (const link of fragment.querySelectorAll("a[href]")) {
    link.setAttribute("href", link.getAttribute("href")!.replace(MARKS_IN_ADDRESS, ""));
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer");
  }
  for (const table of fragment.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "wide";
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

/** Rename event handlers in tags: a browser complains of each that it parses, although none would ever run. */
function withoutHandlers(html: string): string {
  return html.replace(/<[^>]*>/g, (tag) => tag.replace(/([\s"'/])on\w+\s*=/gi, "$1data-on="));
}

function markSpans(fragment: DocumentFragment, spans: Span[], citation?: CitationElement): void {
  const open = new Set<number>();
  for (const node of textNodes(fragment)) {
    if (!open.size && !MARKS.test(node.data)) continue;
    const parts: Node[] = [];
    for (const piece of node.data.split(/([\ue000-\uefff])/)) {
      const code = piece.charCodeAt(0);
      if (code >= CLOSE && code <= 0xefff) open.delete(code - CLOSE);
      else if (code >= OPEN && code < CLOSE) open.add(code - OPEN);
      else if (piece) parts.push(marksOf(piece, [...open].map((index) => spans[index]!), node, citation));
    }
    node.replaceWith(...parts);
  }
}

/** Put a piece of a text node into the elements of its spans: a link or citation innermost, unless it stands in a link. */
function marksOf(piece: string, spans: Span[], { parentElement }: Text, citation?: CitationElement): Node {
  if (!piece.trim()) return new Text(piece);
  const links = parentElement?.closest("a") ? [] : spans.filter(({ kind }) => kind === "entity");
  const marks = spans.filter(({ kind }) => kind !== "entity" && kind !== "citation");
  const isCitation = spans.some(({ kind }) => kind === "citation") && !parentElement?.closest("code, a");
  let inner: Node = (isCitation && citation?.(Number(piece.slice(1, -1)))) || new Text(piece);
  const [link, mark] = [links[0], marks.at(-1)];
  for (const span of [link, mark]) {
    if (!span) continue;
    const element = document.createElement(span.href ? "a" : "mark");
    element.className = span.kind;
    if (span.href) element.setAttribute("href", span.href);
    if (span.title) element.title = span.title;
    element.append(inner);
    inner = element;
  }
  return inner;
}

function textNodes(root: Node): Text[] {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const nodes: Text[] = [];
  while (walker.nextNode()) nodes.push(walker.currentNode as Text);
  return nodes;
}

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

/** Return a function from offsets in code points, as the server counts, to offsets in a JavaScript string. */
export function codePoints(text: string): (offset: number) => number {
  const wide: number[] = []; // the code point offsets of characters that are two units long
  if (/[\ud800-\udbff]/.test(text)) {
    let point = 0;
    for (const letter of text) {
      if (letter.length === 2) wide.push(point);
      point++;
    }
  }
  return (offset) => {
    let low = 0;
    let high = wide.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (wide[middle]! < offset) low = middle + 1;
      else high = middle;
    }
    return offset + low;
  };
}

/** Return the beginning of a text as one line without the marks of Markdown. */
export function shortened(text: string, limit = 320): string {
  const plain = text
    .replace(/^(?:#+\s.*\n+)+/, "")
    .replace(/([\p{L}\p{N}])[ \t]*\n\s*\n\s*/gu, "$1 — ") // a heading, or a line without a stop
    .replace(/!?\[([^\]]*)\]\([^)\s]*\)/g, "$1")
    .replace(/^[ \t]*(?:#+|[-*+>]|\|)[ \t]+|[`*]|^[|\-: ]+$/gm, "")
    .replace(/\s+/g, " ")
    .trim();
  return plain.length > limit ? `${plain.slice(0, limit).trimEnd()}…` : plain;
}
