// Colours of nodes: seven of Okabe and Ito, and a purple. Colour-blind readers tell them apart:
// crates/view/tests/it/colours.rs simulates three kinds.

import { el } from "./dom";
import type { Model } from "./model";

const NODES = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#9600f0"];

export const dark = (): boolean => window.matchMedia("(prefers-color-scheme: dark)").matches;

export interface Theme {
  ground: string;
  ink: string;
  faint: string;
  line: string;
  mark: string;
}

export function theme(): Theme {
  return dark()
    ? { ground: "#17191c", ink: "#e8e8e8", faint: "#a0a4aa", line: "#3a3e44", mark: "#ffffff" }
    : { ground: "#ffffff", ink: "#1a1a1a", faint: "#5c6066", line: "#d4d7db", mark: "#000000" };
}

const parts = (hex: string): number[] => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** `amount` of the colour over the ground. */
export function blend(hex: string, ground: string, amount: number): string {
  const [a, b] = [parts(hex), parts(ground)];
  const mixed = a.map((x, i) => Math.round(x * amount + b[i] * (1 - amount)));
  return `rgb(${mixed.join(",")})`;
}

/** The colour of the node at an index. From the ninth on, colours come again in other shades. */
export function nodeColour(index: number): string {
  const base = NODES[index % NODES.length];
  const again = Math.floor(index / NODES.length);
  return again === 0 ? base : blendHex(base, dark() ? "#ffffff" : "#000000", again % 2 ? 0.35 : 0.6);
}

function blendHex(hex: string, with_: string, amount: number): string {
  const [a, b] = [parts(hex), parts(with_)];
  return `#${a.map((x, i) => Math.round(x * (1 - amount) + b[i] * amount).toString(16).padStart(2, "0")).join("")}`;
}

/** Shares below this many percent are drawn paler. */
export const CLEAR = 75;
/** Shares below this many percent are drawn as mixed. */
export const HALF = 50;

export const mixedColour = (): string => blend(theme().faint, theme().ground, 0.6);
export const nothingColour = (): string => blend(theme().faint, theme().ground, 0.12);

/** The colour of a cell: of the node (index plus one; 0 is none) with a share in percent. */
export function shareColour(node: number, share: number): string {
  if (node === 0) return nothingColour();
  if (share < HALF) return mixedColour();
  return share >= CLEAR ? nodeColour(node - 1) : blend(nodeColour(node - 1), theme().ground, 0.5);
}

/** What paler and grey mean. */
export function shareLegend(of: string): HTMLElement[] {
  return [
    key(blend(nodeColour(0), theme().ground, 0.5), `paler: ${HALF} to ${CLEAR} % ${of}`),
    key(mixedColour(), `mixed: no node has ${HALF} %`),
    key(nothingColour(), "nothing recorded"),
  ];
}

/** Remote share, from 0 to 100 percent: pale to dark (on dark ground: dark to bright). */
export function remoteColour(p: number): string {
  const t = theme();
  return blend(dark() ? "#ffb000" : "#8a2500", t.ground, 0.12 + (0.88 * p) / 100);
}

/** Local share, from 0 to 100 percent: a grey that is never as strong as what is remote. */
export function localColour(p: number): string {
  const t = theme();
  return blend(t.ink, t.ground, 0.06 + (0.34 * p) / 100);
}

export function nodeName(model: Model, index: number): string {
  return index < model.nodes.length ? `node ${model.nodes[index]}` : "a node that is not listed";
}

/** A square of a colour with its meaning. */
export function key(colour: string, meaning: string): HTMLElement {
  const square = el("span", { class: "key", "aria-hidden": "true" });
  square.style.background = colour;
  return el("span", { class: "entry" }, square, meaning);
}

/** Which colour is which node. */
export function nodeLegend(model: Model, meaning: string, more: (HTMLElement | string)[] = []): HTMLElement {
  const shown = model.nodes.slice(0, 16).map((_, i) => key(nodeColour(i), nodeName(model, i)));
  const rest = model.nodes.length - shown.length;
  return el(
    "p",
    { class: "legend" },
    el("strong", {}, meaning),
    " ",
    ...shown,
    rest > 0 ? el("span", { class: "entry" }, `and ${rest} more nodes; colours come again in other shades`) : null,
    ...more,
  );
}
