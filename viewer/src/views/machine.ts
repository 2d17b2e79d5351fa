// Traffic from node to node.

import { localColour, nodeName, remoteColour, theme } from "../colours";
import type { Context } from "../context";
import { basis, count, el, moment, percent, table, whole } from "../dom";
import { regionName } from "./moves";

const MOST_NODES = 32;

export function machine(ctx: Context): HTMLElement {
  const { model, state } = ctx;
  const selected = ctx.selected();
  const share = (selected?.report ?? model.summary).remote;
  const sightings = share.of === "sightings";
  const place = selected ? selected.place : null;
  const { traffic } = model;
  const said: string[] = [];
  let rows: number[][];
  if (state.region !== null) {
    const wanted = state.region + 1;
    rows = traffic.by_region.filter(([region, object]) => region === wanted && (place === null || object === place));
    said.push(`in region ${regionName(ctx, state.region)}`);
    if (state.time) said.push("over all time that counts: regions are not told by interval");
  } else {
    const step = 2 ** (traffic.time_shift - model.time.shift);
    const begin = (c: number): number => model.time.begin_ns[Math.floor(c * step)] ?? model.time.end_ns;
    const { time } = state;
    const inside = (c: number): boolean => !time || (begin(c + 1) > time[0] && begin(c) < time[1]);
    rows = traffic.by_object.filter(([object, c]) => (place === null || object === place) && inside(c));
    if (time) {
      const columns = [...new Set(traffic.by_object.map((r) => r[1]))].filter(inside).sort((a, b) => a - b);
      const [from, to] = [columns[0], columns[columns.length - 1]];
      if (from !== undefined && to !== undefined) {
        said.push(`from ${moment(begin(from), model.time.end_ns)} to ${moment(begin(to + 1), model.time.end_ns)}, the intervals around the selection`);
      }
    }
  }
  if (selected) said.unshift(`to ${ctx.name(selected)}`);
  const n = model.nodes.length;
  const cells = new Map<string, number>();
  let total = 0;
  let remote = 0;
  const by = new Array<[number, number]>(n + 1).fill([0, 0]).map(() => [0, 0] as [number, number]);
  for (const [, , node, home, seen, counted] of rows) {
    const value = sightings ? seen : counted;
    cells.set(`${node} ${home}`, (cells.get(`${node} ${home}`) ?? 0) + value);
    total += value;
    by[Math.min(n, node)][node === home ? 0 : 1] += value;
    if (node !== home) remote += value;
  }
  const what = `${share.of} (${basis(share)})`;
  const lead = total === 0
    ? `No ${share.of} ${said.join(", ")} are recorded in the part that counts.`
    : `${percent((100 * remote) / total)} of ${count(total)} ${share.of} ${said.join(", ")} are remote (${basis(share)}).`;
  const shown = Math.min(n, MOST_NODES);
  // Of shares, so that both sides of a page have one scale.
  const most = (ctx.most("node by node", Math.max(0, ...cells.values()) / Math.max(1, total)) || 1) * Math.max(1, total);
  return el(
    "section",
    {},
    el("p", { class: "lead" }, lead),
    el(
      "p",
      { class: "legend" },
      el("strong", {}, `Share of all ${share.of}:`),
      " ",
      ...scale("remote", remoteColour, (100 * most) / Math.max(1, total)),
      " ",
      ...scale("local (outlined)", localColour, (100 * most) / Math.max(1, total)),
    ),
    matrix(ctx, shown, cells, total, most, what),
    n > shown ? el("p", { class: "hint" }, `The first ${shown} of ${n} nodes are shown.`) : null,
    el(
      "div",
      { class: "columns" },
      table(
        `By accessing node, in ${what}`,
        ["Node", "Local", "Remote", "Remote share"],
        model.nodes.slice(0, shown).map((_, i) => [
          nodeName(model, i),
          whole(by[i][0]),
          whole(by[i][1]),
          percent(by[i][0] + by[i][1] > 0 ? (100 * by[i][1]) / (by[i][0] + by[i][1]) : null),
        ]),
        { numbers: [1, 2, 3], pick: (r) => ctx.set({ node: r }) },
      ),
      regions(ctx, sightings),
    ),
    links(ctx),
    traffic.left_out[0] > 0
      ? el("p", { class: "hint" }, `${whole(traffic.left_out[0])} reports had no room in these sums.`)
      : null,
  );
}

/** Squares of a colour scale that ends at `most` percent. */
function scale(name: string, colour: (p: number) => string, most: number): HTMLElement[] {
  const squares = [1, 50, 100].map((p) => {
    const square = el("span", { class: "key" });
    square.style.background = colour(p);
    return el("span", { class: "entry" }, square, percent(p === 1 ? 0 : (p * most) / 100));
  });
  return [el("span", { class: "entry" }, `${name}:`), ...squares];
}

function matrix(
  ctx: Context,
  n: number,
  cells: Map<string, number>,
  total: number,
  most: number,
  what: string,
): HTMLElement {
  const { model } = ctx;
  const t = theme();
  const head = el("tr", {}, el("th", { scope: "col" }, "accesses by \\ memory of"));
  for (let home = 0; home < n; home++) head.append(el("th", { scope: "col", class: "n" }, nodeName(model, home)));
  const body = el("tbody");
  for (let node = 0; node < n; node++) {
    const row = el("tr", {}, el("th", { scope: "row" }, nodeName(model, node)));
    for (let home = 0; home < n; home++) {
      const value = cells.get(`${node} ${home}`) ?? 0;
      const share = total > 0 ? (100 * value) / total : 0;
      const cell = el(
        "td",
        { class: node === home ? "n local" : "n", title: `${nodeName(model, node)} to memory of ${nodeName(model, home)}: ${whole(value)} ${what}` },
        value === 0 ? "0" : percent(share),
      );
      const heat = (100 * value) / most;
      const colour = node === home ? localColour : remoteColour;
      cell.style.background = value === 0 ? t.ground : colour(heat);
      cell.style.color = node !== home && heat > 55 ? t.ground : t.ink;
      row.append(cell);
    }
    body.append(row);
  }
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Node by node" },
    el("table", { class: "matrix" }, el("caption", {}, `Share of all ${what}`), el("thead", {}, head), body),
  );
}

function regions(ctx: Context, sightings: boolean): HTMLElement {
  const { model } = ctx;
  const selected = ctx.selected();
  const place = selected ? selected.place : null;
  const sums = new Map<number, [number, number]>();
  for (const [region, object, node, home, seen, counted] of model.traffic.by_region) {
    if (place !== null && object !== place) continue;
    const value = sightings ? seen : counted;
    const [all, remote] = sums.get(region) ?? [0, 0];
    sums.set(region, [all + value, remote + (node === home ? 0 : value)]);
  }
  const list = [...sums].sort((a, b) => b[1][1] - a[1][1]).slice(0, 40);
  return table(
    `By region of the source, in ${sightings ? "sightings" : "accesses"}`,
    ["Region", "All", "Remote", "Remote share", "Runs"],
    list.map(([region, [all, remote]]) => [
      region === 0 ? "outside of regions, or not known" : regionName(ctx, region - 1),
      whole(all),
      whole(remote),
      percent(all > 0 ? (100 * remote) / all : null),
      region === 0 ? "–" : whole(model.regions.find((r) => r.region === region - 1)?.runs ?? 0),
    ]),
    {
      numbers: [1, 2, 3, 4],
      pick: (r) => ctx.set({ region: list[r][0] === 0 ? null : list[r][0] - 1 }),
      picked: (r) => ctx.state.region !== null && list[r][0] === ctx.state.region + 1,
    },
  );
}

function links(ctx: Context): HTMLElement | null {
  const { model } = ctx;
  const known = model.links.filter((l) => l.latency_ps !== null || l.distance !== null || l.mb_per_s !== null);
  if (known.length === 0) return null;
  const source = model.summary.pretended
    ? "The nodes are pretended: every access really took this machine's local time."
    : "Distances are the kernel's; 10 is local.";
  const list = known.slice(0, 64);
  return el(
    "details",
    {},
    el("summary", {}, "Distances and links between nodes"),
    el("p", { class: "hint" }, source),
    table(
      "Links",
      ["From", "To memory of", "Distance", "Latency", "Bandwidth"],
      list.map((l) => [
        `node ${l.from}`,
        `node ${l.to}`,
        l.distance === null ? "–" : String(l.distance),
        l.latency_ps === null ? "not known" : `${(l.latency_ps / 1000).toFixed(1)} ns`,
        l.mb_per_s === null ? "not known or unlimited" : `${whole(l.mb_per_s)} MB/s`,
      ]),
      { numbers: [2, 3, 4] },
    ),
  );
}

