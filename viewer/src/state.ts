// The selection that all views share. The address of the page keeps it.

export type Colour = "home" | "who" | "remote";
export type Range = [number, number];

export interface State {
  view: string;
  /** Number of the object in the recording. */
  object: number | null;
  /** First page, and the one behind the last. */
  pages: Range | null;
  /** Nanoseconds. */
  time: Range | null;
  region: number | null;
  /** Index of the node. */
  node: number | null;
  colour: Colour;
  /** What residency shows of the time, in nanoseconds, and of the object's pages. */
  seenTime: Range | null;
  seenPages: Range | null;
}

export const START: State = {
  view: "findings",
  object: null,
  pages: null,
  time: null,
  region: null,
  node: null,
  colour: "home",
  seenTime: null,
  seenPages: null,
};

const numberOf = (text: string | null): number | null => {
  if (text === null || !/^\d{1,16}$/.test(text)) return null;
  return Number(text);
};

const rangeOf = (text: string | null): Range | null => {
  const parts = (text ?? "").split("-").map(numberOf);
  const [a, b] = parts;
  return parts.length === 2 && a !== null && b !== null && a !== undefined && b !== undefined && a < b
    ? [a, b]
    : null;
};

export function parse(hash: string, views: string[]): State {
  const p = new URLSearchParams(hash.replace(/^#/, ""));
  const view = p.get("view") ?? "";
  const colour = p.get("colour") ?? "";
  return {
    view: views.includes(view) ? view : START.view,
    object: numberOf(p.get("object")),
    pages: rangeOf(p.get("pages")),
    time: rangeOf(p.get("time")),
    region: numberOf(p.get("region")),
    node: numberOf(p.get("node")),
    colour: colour === "who" || colour === "remote" ? colour : "home",
    seenTime: rangeOf(p.get("seen-time")),
    seenPages: rangeOf(p.get("seen-pages")),
  };
}

export function format(s: State): string {
  const p: string[] = [`view=${s.view}`];
  const range = (r: Range): string => `${Math.floor(r[0])}-${Math.ceil(r[1])}`;
  if (s.object !== null) p.push(`object=${s.object}`);
  if (s.pages) p.push(`pages=${range(s.pages)}`);
  if (s.time) p.push(`time=${range(s.time)}`);
  if (s.region !== null) p.push(`region=${s.region}`);
  if (s.node !== null) p.push(`node=${s.node}`);
  if (s.colour !== "home") p.push(`colour=${s.colour}`);
  if (s.seenTime) p.push(`seen-time=${range(s.seenTime)}`);
  if (s.seenPages) p.push(`seen-pages=${range(s.seenPages)}`);
  return `#${p.join("&")}`;
}
