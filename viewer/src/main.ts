// The page: header, views, and the selection that they share.

import { nodeName } from "./colours";
import { Context } from "./context";
import { count, el, moment, plural } from "./dom";
import { forget } from "./finer";
import { history } from "./history";
import { follow } from "./live";
import { type Model, read } from "./model";
import { format, parse, type Range, type State } from "./state";
import { findings } from "./views/findings";
import { locations } from "./views/locations";
import { machine } from "./views/machine";
import { moves, regionName } from "./views/moves";
import { pay } from "./views/pay";
import { residency } from "./views/residency";
import { structures } from "./views/structures";

type View = (ctx: Context) => HTMLElement;

const VIEWS: [string, string, View][] = [
  ["findings", "Findings", findings],
  ["residency", "Residency", residency],
  ["moves", "Moves", moves],
  ["locations", "Locations", locations],
  ["structures", "Data structures", structures],
  ["machine", "Machine", machine],
  ["pay", "Did it pay", pay],
];
const NAMES = VIEWS.map(([name]) => name);

/** A view that can be drawn anew without being made anew. */
type Shown = HTMLElement & { redraw?: () => void };

/** Shows a model in place of what was shown. What a person has chosen stays. */
function mount(app: HTMLElement, model: Model, finer: string | null, kept: Map<string, unknown>): void {
  mounted?.abort();
  mounted = new AbortController();
  const { signal } = mounted;
  const [scroll, focus] = [window.scrollY, focused(app)];
  forget();
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  const bar = el("div", { class: "bar", role: "group", "aria-label": "Selection" });
  const panel = el("div", { role: "tabpanel", id: "panel" });
  const side = el("div");
  app.replaceChildren(header(model), tabs, bar, panel, side);

  let drawn = "";
  let views: Shown[] = [];
  const changed = (change: Partial<State>, replace: boolean): void => {
    ctx.state = { ...ctx.state, ...change };
    const hash = format(ctx.state);
    if (hash !== location.hash) {
      if (replace) window.history.replaceState(null, "", hash);
      else window.history.pushState(null, "", hash);
    }
    render();
  };
  const ctx = new Context(model, 0, finer, parse(location.hash, NAMES), kept, changed);
  const both = [ctx];
  if (model.against) {
    const across = (change: Partial<State>, replace: boolean): void => {
      const { node } = change;
      const other: Partial<State> = "object" in change ? { object: beside.across(change.object ?? null) } : {};
      if (node !== undefined && node !== null) other.node = at(model.nodes, beside.model.nodes[node]);
      changed({ ...change, ...other }, replace);
    };
    const beside = new Context(model.against, 1, finer, ctx.state, kept, across);
    [ctx.other, beside.other, beside.scales] = [beside, ctx, ctx.scales];
    ctx.scales.redraw = () => views.forEach((view) => view.redraw?.());
    both.push(beside);
  }

  const buttons = VIEWS.map(([name, title], i) => {
    const button = el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel" }, title);
    button.title = `Key ${i + 1}`;
    button.addEventListener("click", () => ctx.set({ view: name }));
    button.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step === 0) return;
      const next = (i + step + VIEWS.length) % VIEWS.length;
      ctx.set({ view: VIEWS[next][0] });
      buttons[next].focus();
    });
    return button;
  });
  tabs.append(...buttons);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    const at = Number(event.key) - 1;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !VIEWS[at]) return;
    ctx.set({ view: VIEWS[at][0] });
  }, { signal });

  function render(): void {
    const { state } = ctx;
    if (ctx.other) {
      const node = state.node === null ? null : at(ctx.other.model.nodes, model.nodes[state.node]);
      ctx.other.state = { ...state, object: ctx.across(state.object), region: null, node };
    }
    buttons.forEach((button, i) => {
      const on = VIEWS[i][0] === state.view;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `tab-${state.view}`);
    // The pictures draw themselves anew: their place keeps its focus and its drag.
    const self = state.view === "residency" && drawn === "residency";
    if (self && views.every((view) => view.redraw)) views.forEach((view) => view.redraw?.());
    else {
      const make = VIEWS.find(([name]) => name === state.view)?.[2] ?? findings;
      views = both.map((c) => make(c));
      panel.replaceChildren(...(ctx.other ? beside(model, views, state.view) : views));
    }
    drawn = state.view;
    selection(ctx, bar);
    const key = `${state.object} ${state.pages?.join("-")}`;
    if (side.dataset.key !== key) {
      side.dataset.key = key;
      const shown = both.map((c) => history(c)).filter((h) => h !== null);
      side.replaceChildren(...shown);
    }
    side.hidden = !["residency", "locations", "structures", "moves"].includes(state.view);
  }
  const moved = (): void => {
    ctx.state = parse(location.hash, NAMES);
    render();
  };
  window.addEventListener("popstate", moved, { signal });
  window.addEventListener("hashchange", moved, { signal });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) views.forEach((view) => view.redraw?.());
    width = window.innerWidth;
  }, { signal });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawn = "";
    render();
  }, { signal });
  render();
  focus();
  window.scrollTo(0, scroll);
  document.documentElement.dataset.ready = "yes";
}

let mounted: AbortController | null = null;

/** The index of a node's number; none where it is not there. */
function at(nodes: number[], number: number | undefined): number | null {
  const index = number === undefined ? -1 : nodes.indexOf(number);
  return index < 0 ? null : index;
}

/** Both sides below each other, on one axis of time. */
function beside(model: Model, views: Shown[], view: string): HTMLElement[] {
  const labels = [model.label, model.against?.label ?? ""];
  const changes = view === "findings"
    ? [el("div", { class: "answer" }, ...model.changes.map((line) => el("p", {}, line)))]
    : [];
  const parts = views.map((v, i) => el("section", { class: "side" }, el("h2", {}, labels[i]), v));
  return [...changes, ...parts];
}

/** Gives the focus back to what stands where it was. */
function focused(app: HTMLElement): () => void {
  const had = document.activeElement;
  if (!(had instanceof HTMLElement) || !app.contains(had)) return () => undefined;
  const of = (): HTMLElement[] => [...app.querySelectorAll<HTMLElement>(had.tagName)];
  const [id, index] = [had.id, of().indexOf(had)];
  return () => (id ? document.getElementById(id) : of()[index])?.focus({ preventScroll: true });
}

function start(): void {
  const app = document.getElementById("app");
  const data = document.getElementById("model")?.textContent;
  if (!app) return;
  const finer = app.dataset.finer ?? null;
  const kept = new Map<string, unknown>();
  if (data) mount(app, read(data), finer, kept);
  if (finer) follow(app, finer, data ? 1 : 0, (model) => mount(app, model, finer, kept));
}

function header(model: Model): HTMLElement {
  const { summary } = model;
  const nodes = plural(model.nodes.length, "node") + (summary.pretended ? ", pretended" : "");
  const facts = [
    summary.machine, nodes, summary.threads > 0 ? plural(summary.threads, "thread") : "", summary.policy ?? "no policy", summary.kind,
    summary.source, `${summary.clock} clock`, `basis: ${model.basis}`,
  ];
  const warnings = [
    ...(model.one_in === null ? [] : [
      `A first look at one in ${count(model.one_in)} of the accesses. ` +
      "Shares are estimates, and counts are of that part. The rest is being read.",
    ]),
    ...(summary.whole ? [] : [`Not whole: ${summary.missing.join("; ")}`]),
    ...(summary.kind === "synthetic" ? ["Made by a generator: it stands for no program."] : []),
  ];
  return el(
    "header",
    {},
    el("h1", {}, summary.command.join(" ") || "a recording"),
    el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    ...warnings.map((w) => el("p", { class: "warning" }, w)),
  );
}

/** What is selected, and the ways to change it without a mouse. */
function selection(ctx: Context, bar: HTMLElement): void {
  const { model, state } = ctx;
  const active = document.activeElement?.id ?? "";
  const choose = (
    id: string,
    label: string,
    options: [string, string][],
    chosen: string,
    pick: (value: string) => void,
  ): HTMLElement => {
    const select = el("select", { id, change: (e: Event) => pick((e.target as HTMLSelectElement).value) });
    for (const [value, text] of options) {
      const option = el("option", { value }, text);
      option.selected = value === chosen;
      select.append(option);
    }
    return el("label", {}, `${label} `, select);
  };
  const number = (text: string): number | null => (text === "" ? null : Number(text));
  const objects: [string, string][] = [
    ["", "all"],
    ...model.objects.map((o): [string, string] => [String(o.report.object), ctx.name(o)]),
  ];
  const regions: [string, string][] = [
    ["", "all"],
    ...model.regions.slice(0, 500).map((r): [string, string] => [String(r.region), regionName(ctx, r.region)]),
  ];
  const nodes: [string, string][] = [
    ["", "all"],
    ...model.nodes.map((_, i): [string, string] => [String(i), nodeName(model, i)]),
  ];
  const selected = ctx.selected();
  const parts: HTMLElement[] = [
    choose("sel-object", "Object", objects, String(state.object ?? ""), (v) => ctx.set({ object: number(v) })),
  ];
  if (selected) {
    const shown = state.pages ? `${state.pages[0]}-${state.pages[1] - 1}` : "";
    parts.push(typed("sel-pages", "Pages", shown, `0-${selected.pages - 1}`, (range) => {
      ctx.set({ pages: range && [range[0], Math.min(range[1] + 1, selected.pages)] });
    }));
  }
  const ms = (ns: number): string => (ns / 1e6).toFixed(3).replace(/\.?0+$/, "");
  const time = state.time ? `${ms(state.time[0])}-${ms(state.time[1])}` : "";
  parts.push(
    typed("sel-time", "Time (ms)", time, `0-${ms(model.time.end_ns)}`, (range) => {
      ctx.set({ time: range && [Math.floor(range[0] * 1e6), Math.ceil(range[1] * 1e6)] });
    }),
    choose("sel-node", "Node", nodes, String(state.node ?? ""), (v) => ctx.set({ node: number(v) })),
  );
  if (regions.length > 1) {
    parts.push(choose("sel-region", "Region", regions, String(state.region ?? ""), (v) => ctx.set({ region: number(v) })));
  }
  const any = state.object !== null || state.time || state.region !== null || state.node !== null;
  const clearAll = el("button", {
    type: "button",
    id: "sel-clear",
    click: () => ctx.set({ object: null, pages: null, time: null, region: null, node: null, seenTime: null }),
  }, "Clear");
  clearAll.disabled = !any;
  const missing = state.object !== null && !selected ? el("span", { class: "warning" }, "this object has no picture") : null;
  const said = state.time ? el("span", { class: "hint" }, moment(state.time[1] - state.time[0], 1e9)) : null;
  bar.replaceChildren(...parts, clearAll, ...(said ? [said] : []), ...(missing ? [missing] : []));
  if (active.startsWith("sel-")) document.getElementById(active)?.focus();
}

/** A field for a range as in `3-17`; one number is a range of one. */
function typed(id: string, label: string, value: string, all: string, pick: (range: Range | null) => void): HTMLElement {
  const input = el("input", { id, type: "text", value, placeholder: all, size: "14", inputmode: "decimal" });
  input.addEventListener("change", () => {
    const found = /^\s*([\d.]+)(?:\s*[-–]\s*([\d.]+))?\s*$/.exec(input.value);
    const [from, to] = [Number(found?.[1]), Number(found?.[2] ?? found?.[1])];
    const right = found !== null && from <= to;
    input.setAttribute("aria-invalid", String(!right && input.value.trim() !== ""));
    if (right) pick([from, to]);
    else if (input.value.trim() === "") pick(null);
  });
  return el("label", {}, `${label} `, input);
}

start();
