// Elements and texts. Texts of a recording become text nodes, never markup.

type Child = Node | string | null | false | undefined;

/** An element with attributes and children. Strings become text. */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string | boolean | ((event: never) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value as EventListener);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false) element.setAttribute(key, value);
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

export function clear(element: Element): void {
  element.replaceChildren();
}

/** A table with a heading each column. Cells that are numbers stand right. */
export function table(
  caption: string,
  heads: string[],
  rows: (string | Node)[][],
  options: { numbers?: number[]; pick?: (row: number) => void; picked?: (row: number) => boolean } = {},
): HTMLElement {
  const right = new Set(options.numbers ?? []);
  const head = el("tr", {}, ...heads.map((h, i) => el("th", { scope: "col", class: right.has(i) ? "n" : "" }, h)));
  const body = rows.map((cells, r) => {
    const row = el("tr", options.picked?.(r) ? { class: "picked" } : {});
    cells.forEach((cell, i) => {
      const first = i === 0 && options.pick !== undefined;
      const inner = first
        ? el("button", { class: "link", type: "button", click: () => options.pick?.(r) }, cell)
        : cell;
      row.append(el("td", { class: right.has(i) ? "n" : "" }, inner));
    });
    return row;
  });
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...body)),
  );
}

const trim = (n: number): string => {
  const digits = Math.abs(n) >= 100 ? 0 : Math.abs(n) >= 10 ? 1 : 2;
  return n.toFixed(digits).replace(/\.0+$|(\.\d*?)0+$/, "$1");
};

export function count(n: number): string {
  for (const [size, letter] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]] as const) {
    if (n >= size) return trim(n / (letter === " k" ? 1e3 : size)) + letter;
  }
  return Number.isInteger(n) ? String(n) : trim(n);
}

/** A number with groups of three digits. */
export function whole(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function bytes(n: number): string {
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const) {
    if (n >= size) return `${trim(n / size)} ${unit}`;
  }
  return `${n} B`;
}

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]] as const;

export function time(ns: number): string {
  for (const [size, unit] of TIMES) if (ns >= size) return `${trim(ns / size)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

/** The unit for an axis up to so many nanoseconds, and its size. */
export function timeUnit(span: number): [number, string] {
  for (const [size, unit] of TIMES) if (span >= 2 * size) return [size, unit];
  return [1, "ns"];
}

/** A moment as precisely as the part of the axis needs. */
export function moment(ns: number, span: number): string {
  const [size, unit] = timeUnit(Math.max(ns, span));
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(span / size / 500))));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.split("/").pop() || path;
}

export function percent(p: number | null): string {
  if (p === null) return "–";
  if (p > 0 && p < 0.05) return "< 0.1 %";
  return `${p >= 99.95 || p === 0 ? p.toFixed(0) : p.toFixed(1)} %`;
}

export function plural(n: number, word: string): string {
  return `${whole(n)} ${word}${n === 1 ? "" : "s"}`;
}

/** What numbers are worth: always said beside them. */
export function basis(b: { basis: string | null; one_in?: number | null }): string {
  if (b.basis === null) return "nothing recorded";
  if (b.basis === "sampled" && b.one_in) return `sampled, one in ${b.one_in}`;
  if (b.basis === "presence") return "presence, not counts";
  return b.basis;
}
