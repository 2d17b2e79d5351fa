// What the recording says first, and its objects.

import { excerpt } from "../source";
import type { Context } from "../context";
import { baseName, basis, bytes, count, el, moment, percent, plural, table, time, whole } from "../dom";
import type { Finding, NodeAmount, ObjectModel, ObjectReport } from "../model";

/** Most objects without a picture that are listed. */
const MOST_OTHERS = 200;

/** Nodes with their shares, as in `node 1: 81 %`. */
function shares(all: { node: number; value: number }[], whole_: number): string {
  // A line of a cell breaks between nodes, not within one.
  const some = all.slice(0, 3).map((n) => `node ${n.node}: ${percent((100 * n.value) / whole_)}`.replace(/ /g, "\u00a0"));
  return some.join(", ") + (all.length > 3 ? ", …" : "");
}

function users(o: ObjectReport): string {
  const value = (n: NodeAmount): number => n.count ?? n.seen;
  const all = o.used_by.map((n) => ({ node: n.node, value: value(n) }));
  return o.remote.whole > 0 ? shares(all, o.remote.whole) : "–";
}

function homes(o: ObjectReport): string {
  const sum = o.residency.reduce((s, n) => s + n.pages, 0);
  return sum > 0 ? shares(o.residency.map((n) => ({ node: n.node, value: n.pages })), sum) : "–";
}

function place(o: { file: string | null; line: number | null; function: string | null }): string {
  const where = o.file === null ? null : `${baseName(o.file)}${o.line === null ? "" : `:${o.line}`}`;
  return [o.function, where].filter((x) => x !== null).join(", ") || "unknown place";
}

export function firstTouch(o: ObjectReport): string {
  const [first] = o.first_touch;
  if (!first) return "–";
  const pages = o.first_touch.reduce((s, t) => s + t.pages, 0);
  const who = first.thread === null ? `node ${first.node}` : `thread ${first.thread} on node ${first.node}`;
  const code = first.file === null && first.function === null ? "" : ` in ${place(first)}`;
  return `${who}${code}: ${percent((100 * first.pages) / pages)} of its pages`;
}

export function findings(ctx: Context): HTMLElement {
  const { model } = ctx;
  const { summary } = model;
  const answer = el("div", { class: "answer" }, ...model.answer.map((line) => el("p", {}, line)));
  const cells = (report: ObjectReport, name: string): string[] => [
    name,
    bytes(report.bytes),
    `${count(report.remote.whole)} ${report.remote.of}`,
    percent(report.remote.percent),
    basis(report.remote),
    users(report),
    homes(report),
    firstTouch(report),
    report.moves ? whole(report.moves.pages) : "0",
  ];
  const nameless = (report: ObjectReport): string =>
    report.object === null ? "memory that nobody knows" : report.name || "(no name)";
  const rows = model.objects.map((o) => cells(o.report, ctx.name(o)));
  const others = model.others.slice(0, MOST_OTHERS).map((report) => cells(report, nameless(report)));
  const heads = ["Object", "Size", "Touches", "Remote", "Basis", "Used by", "Lives on", "First touched by", "Pages moved"];
  const numbers = [1, 2, 3, 8];
  const objects = table("Objects, those with most remote touches first", heads, rows, {
    numbers,
    pick: (r) => ctx.set({ object: model.objects[r].report.object }),
    picked: (r) => model.objects[r].report.object === ctx.state.object,
  });
  const selected = ctx.selected();
  const facts = [
    ...(summary.verdict ? [`Whether moving pays, by the guard: ${summary.verdict}.`] : []),
    ...(summary.iterations
      ? [`${plural(summary.iterations.count, "iteration")} of the outer loop (${summary.iterations.source})${counted(ctx)}.`]
      : []),
    summary.scope === "timed"
      ? "Results count the iterations: initialisation and the program's end are left out."
      : "Results count everything: no iterations are known.",
    ...(summary.remote.basis === "presence"
      ? ["Presence: a node was seen at a page. How often it came is not known."]
      : []),
    ...summary.missing.map((m) => `Missing: ${m}.`),
    ...summary.coarsened.map((m) => `Coarsened: ${m}.`),
    ...summary.notes.filter((note) => !/^\d+ iterations? (found|told)$/.test(note)),
  ];
  return el(
    "section",
    {},
    answer,
    advice(ctx),
    selected ? detail(ctx, selected.report) : null,
    objects,
    others.length > 0
      ? el("details", {}, el("summary", {}, `${plural(others.length, "more object")} without a picture: not accessed, or too many to draw`), table("Other objects", heads, others, { numbers }))
      : null,
    el("h2", {}, "What to know of this recording"),
    el("ul", {}, ...facts.map((f) => el("li", {}, f))),
  );
}

/** From when to when iterations ran. */
function counted(ctx: Context): string {
  const { groups } = ctx.model.rounds;
  const last = groups[groups.length - 1];
  if (!last) return "";
  const span = ctx.model.time.end_ns / 100;
  return `, from ${moment(groups[0][1], span)} to ${moment(last[2], span)}`;
}

/** Where an object lives since when, and since when iterations use it; as far as that is known. */
function since(ctx: Context, object: ObjectModel): string {
  const times = object.touches.flatMap((t) => (t.time_ns === null ? [] : [t.time_ns]));
  const begin = ctx.model.rounds.groups[0]?.[1];
  const span = ctx.model.time.end_ns / 100;
  const home = object.report.residency[0];
  const touched = times.length > 0 ? `, from its first touch at ${moment(Math.min(...times), span)} on` : "";
  const lives = home ? `${ctx.name(object)} lives mostly on node ${home.node}${touched}.` : "";
  const used = begin === undefined ? "" : `Iterations use it from ${moment(begin, span)} on.`;
  return [lives, used].filter(Boolean).join(" ");
}

/** What to change in the source, in the words of `homenode explain`. */
function advice(ctx: Context): HTMLElement {
  const { findings } = ctx.model;
  if (!findings) return el("p", { class: "hint" }, ctx.side === 0 ? "What to change is being looked for." : "");
  const list = findings.findings;
  return el(
    "section",
    { class: "advice", "aria-label": "What to change" },
    el("h2", {}, "What to change"),
    ...findings.answer.map((line) => el("p", {}, line)),
    ...findings.warnings.map((w) => el("p", { class: "warning" }, `! ${w}`)),
    ...list.map((f, i) => card(ctx, f, i)),
    findings.together ? el("p", {}, el("strong", {}, "All together: "), findings.together) : null,
  );
}

function card(ctx: Context, f: Finding, number: number): HTMLElement {
  const objects = f.variables.map((v) => ctx.model.objects.find((o) => o.report.id === v.id));
  const object = objects.find((o) => o !== undefined);
  const show = (view: string, text: string): HTMLElement | null => {
    if (!object) return null;
    const pick = (): void => ctx.set({ view, object: object.report.object });
    return el("button", { type: "button", click: pick }, text);
  };
  const fixes = f.fixes.flatMap((fix, i) => [
    el("dt", {}, i === 0 ? "fix" : "or"),
    el("dd", {}, el("code", {}, fix.text), i > 0 && fix.expected ? ` – ${fix.expected}` : ""),
    ...(i === 0 && fix.expected ? [el("dt", {}, "expected"), el("dd", { class: "expected" }, fix.expected)] : []),
  ]);
  const places = [f.fixes[0]?.at ?? null, f.variables[0]?.place ?? null].filter((at) => at !== null);
  const shown = new Set<string>();
  const lines = places.flatMap((at) => {
    const once = `${at.file}:${at.line}`;
    if (shown.has(once)) return [];
    shown.add(once);
    const found = excerpt(ctx, at.file, at.line);
    return found ? [found] : [];
  });
  return el(
    "article",
    { class: "card finding" },
    el("h3", {}, `${number + 1}. ${f.names}: ${f.fault}`),
    el("p", {}, [f.at, f.touched].filter(Boolean).join(" · ")),
    el("p", {}, f.used),
    object ? el("p", {}, since(ctx, object)) : null,
    el("dl", {}, ...fixes),
    lines.length > 0 ? el("div", { class: "columns" }, ...lines) : null,
    object
      ? el("div", { class: "controls" }, show("residency", "Its pages over time"), show("structures", "Who uses which part"), show("moves", "Its moves"))
      : null,
  );
}

/** What is known of one object. */
function detail(ctx: Context, o: ObjectReport): HTMLElement {
  const go = (view: string, text: string): HTMLElement =>
    el("button", { type: "button", click: () => ctx.set({ view }) }, text);
  const lines: [string, string][] = [
    ["Id", o.id],
    ["Made in", place(o)],
    ["Kind", [o.kind, o.element_type ?? "", o.dimensions.length ? o.dimensions.join(" × ") : ""].filter(Boolean).join(", ")],
    ["Size", `${bytes(o.bytes)}, allocated ${plural(o.allocations, "time")}`],
    ["Remote", `${percent(o.remote.percent)} of ${count(o.remote.whole)} ${o.remote.of} (${basis(o.remote)})`],
    ["Used by", users(o)],
    ["Lives on", homes(o)],
    ["First touch", firstTouch(o)],
  ];
  if (o.moves) {
    const [route] = o.moves.routes;
    const way = route ? `, most from node ${route.from_node} to node ${route.to_node}` : "";
    const reason = o.moves.reasons[0] ? `, by ${o.moves.reasons[0].cause}` : "";
    lines.push(["Moved", `${plural(o.moves.pages, "page")}${way}${reason}; ${o.moves.ping_pongs} went back`]);
  }
  if (o.birth_ns !== null) {
    lines.push(["Lived", `from ${time(o.birth_ns)} to ${o.death_ns === null ? "the end, or not known" : time(o.death_ns)}`]);
  }
  return el(
    "div",
    { class: "card" },
    el("h2", {}, ctx.name({ report: o })),
    el("dl", {}, ...lines.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    el(
      "div",
      { class: "controls" },
      go("residency", "Pages over time"),
      go("moves", "Moves"),
      go("locations", "First and last home"),
      go("structures", "Data structure"),
      go("machine", "Node × node"),
    ),
  );
}

