// Words: every text of the page in English, Russian and Chinese, with plural forms, and numbers and dates as each writes them.

import { signal } from "@preact/signals";
import english from "./words/en.json";

export type Key = keyof typeof english;
type Entry = string | Partial<Record<Intl.LDMLPluralRule, string>>;
type Values = Record<string, string | number>;

export const LANGUAGES = { en: "English", ru: "Русский", zh: "中文" } as const;
export type Language = keyof typeof LANGUAGES | "xx";

// The languages that start-up does not need are loaded when they are chosen.
const LOAD: Record<string, () => Promise<{ default: Record<string, Entry> }>> = {
  ru: () => import("./words/ru.json"),
  zh: () => import("./words/zh.json"),
};

export const language = signal<Language>("en");
const catalogue = signal<Record<string, Entry>>(english);

/** Show the page in the language that was chosen before, else in that of the browser. */
export async function startLanguage(): Promise<void> {
  const known = (code: string) => code in LANGUAGES || code === "xx";
  const codes = [localStorage.getItem("language") ?? "", ...navigator.languages].map((code) => code.slice(0, 2));
  await setLanguage((codes.find(known) ?? "en") as Language);
}

/** Show the page in a language. "xx" is for tests: it marks every text that comes from the catalogue. */
export async function setLanguage(code: Language): Promise<void> {
  catalogue.value = LOAD[code] ? (await LOAD[code]()).default : english;
  language.value = code;
  document.documentElement.lang = code === "xx" ? "en" : code;
  localStorage.setItem("language", code);
}

/** Return a text of the page; `{name}` in it becomes the value, and `n` chooses the plural form. */
export function t(key: Key, values: Values = {}): string {
  const entry: Entry = catalogue.value[key] ?? english[key];
  const form = typeof entry === "string" ? entry : (entry[pluralRule(Number(values.n))] ?? entry.other ?? "");
  const text = form.replace(/\{(\w+)\}/g, (_, name: string) => shown(values[name] ?? ""));
  return language.value === "xx" ? `⟦${text}⟧` : text;
}

function shown(value: string | number): string {
  return typeof value === "number" ? number(value) : value;
}

const locale = () => (language.value === "xx" ? "en" : language.value);

function pluralRule(n: number): Intl.LDMLPluralRule {
  return new Intl.PluralRules(locale()).select(n);
}

const numberFormats = new Map<string, Intl.NumberFormat>(); // one takes longer to make than a hundred numbers to write

/** Return a number as the language writes it. */
export function number(value: number, digits = 0): string {
  const key = `${locale()} ${digits}`;
  const format = numberFormats.get(key) ?? new Intl.NumberFormat(locale(), { maximumFractionDigits: digits });
  numberFormats.set(key, format);
  return format.format(value);
}

/** Return a size in bytes, as in 1.2 MB. */
export function bytes(value: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  let power = 0;
  while (value >= 1_000 && power < 3) (value /= 1_000), power++;
  const style = { style: "unit", unit: units[power], unitDisplay: power ? "short" : "long", maximumFractionDigits: power > 1 ? 1 : 0 } as const;
  return new Intl.NumberFormat(locale(), style).format(value);
}

/** Return a duration, as in 340 ms or 2.1 s. */
export function duration(ms: number): string {
  const unit = ms < 1_000 ? "millisecond" : ms < 120_000 ? "second" : "minute";
  const value = ms / { millisecond: 1, second: 1_000, minute: 60_000 }[unit];
  const digits = unit === "second" && value < 10 ? 1 : 0;
  return new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: digits }).format(value);
}

/** Return a moment (ISO 8601) as a date and time. */
export function moment(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }).format(date);
}

/** Return an amount of money, given in millionths. */
export function money(millionths: number, currency = "USD"): string {
  const style = { style: "currency", currency: currency || "USD", maximumFractionDigits: 4 } as const;
  return new Intl.NumberFormat(locale(), style).format(millionths / 1e6);
}
