// What moved when, from where to where, and why.

import { line, surface, timeAxis, valueAxis } from "../canvas";
import { nodeColour, nodeLegend, nodeName, theme } from "../colours";
import type { Context } from "../context";
import { baseName, el, moment, plural, table, time, whole } from "../dom";
import { CAUSES, OUTCOMES } from "../model";

const MOST_ROWS = 300;

export function moves(ctx: Context): HTMLElement {
  const { model, state } = ctx;
  if (model.moves.rows === 0) {
    return el("section", {}, el("p", { class: "empty" }, "Nothing moved in this recording, and nothing was refused."));
  }
  const inTime = (from: number, to: number): boolean => !state.time || (to > state.time[0] && from < state.time[1]);
  const { time: axis } = model;
  const end = (c: number): number => axis.begin_ns[c + 1] ?? axis.end_ns;
  const sums = model.moves.sums.filter(
    ([column, object, from, to]) =>
      (state.object === null || object === state.object + 1) &&
      (state.node === null || from === state.node || to === state.node) &&
      inTime(axis.begin_ns[column], end(column)),
  );
  const arrived = sums.filter((s) => s[5] !== 2);
  const total = arrived.reduce((n, s) => n + s[7], 0);
  const back = arrived.filter((s) => s[5] === 1).reduce((n, s) => n + s[7], 0);
  const refused = sums.filter((s) => s[5] === 2).reduce((n, s) => n + s[7], 0);

  const canvas = el("canvas", { role: "img", "aria-label": `Pages that moved over time: ${total} in all.` });
  const place = el("div", { class: "plot" }, canvas);
  const draw = (): void => {
    const s = surface(canvas, 260);
    if (!s) return;
    const { pen } = s;
    const t = theme();
    const box = { x: 64, y: 24, w: s.width - 80, h: 186 };
    const full: [number, number] = state.seenTime ?? ctx.full();
    const slots = Math.max(1, Math.floor(box.w / 4));
    const slot = (ns: number): number => Math.floor(((ns - full[0]) / (full[1] - full[0])) * slots);
    const bars = new Map<number, Map<number, [number, number]>>();
    let most = 1;
    for (const [column, , , to, , outcome, , pages] of arrived) {
      const at = slot((axis.begin_ns[column] + end(column)) / 2);
      if (at < 0 || at >= slots) continue;
      const bar = bars.get(at) ?? new Map<number, [number, number]>();
      const [sum, again] = bar.get(to) ?? [0, 0];
      bar.set(to, [sum + pages, again + (outcome === 1 ? pages : 0)]);
      bars.set(at, bar);
      most = Math.max(most, [...bar.values()].reduce((n, [v]) => n + v, 0));
    }
    most = ctx.most("moves", most);
    const y = valueAxis(pen, box, [0, most], "pages that moved, by the node where they arrived", false, (n) =>
      Number.isInteger(n) ? whole(n) : "",
    );
    const wide = box.w / slots;
    for (const [at, bar] of bars) {
      let sum = 0;
      let again = 0;
      for (const [to, [pages, returned]] of [...bar].sort((a, b) => a[0] - b[0])) {
        pen.fillStyle = nodeColour(to);
        const top = y(sum + pages);
        pen.fillRect(box.x + at * wide, top, Math.max(2, wide - 1), Math.max(1, y(sum) - top));
        sum += pages;
        again += returned;
      }
      if (again > 0) {
        pen.fillStyle = t.mark;
        pen.textAlign = "center";
        pen.fillText("◆", box.x + (at + 0.5) * wide, y(sum) - 8);
      }
    }
    pen.strokeStyle = t.line;
    line(pen, box.x, box.y + box.h, box.x + box.w, box.y + box.h);
    timeAxis(pen, box, full);
  };
  queueMicrotask(draw);

  const heading =
    `${plural(total, "page")} moved, ${whole(back)} of them back to where they had been (ping-pong)` +
    `${refused > 0 ? `; ${plural(refused, "page")} refused` : ""}. A page that moved twice counts twice.`;
  const section = el(
    "section",
    {},
    el("p", { class: "lead" }, heading),
    nodeLegend(model, "New home:", [el("span", { class: "entry" }, "◆ some moved back (ping-pong)")]),
    place,
    routes(ctx, arrived),
    told(ctx),
    el("p", { class: "hint" }, "Moves are exact counts, whatever the basis of the accesses is."),
  );
  (section as HTMLElement & { redraw?: () => void }).redraw = draw;
  return section;
}

function routes(ctx: Context, sums: number[][]): HTMLElement {
  const all = new Map<string, { from: number; to: number; cause: number; pages: number; back: number }>();
  for (const [, , from, to, cause, outcome, , pages] of sums) {
    const id = `${from} ${to} ${cause}`;
    const r = all.get(id) ?? { from, to, cause, pages: 0, back: 0 };
    r.pages += pages;
    if (outcome === 1) r.back += pages;
    all.set(id, r);
  }
  const list = [...all.values()].sort((a, b) => b.pages - a.pages).slice(0, 40);
  return table(
    "Flows between nodes, in pages",
    ["From", "To", "Why", "Pages", "Moved back"],
    list.map((r) => [
      nodeName(ctx.model, r.from), nodeName(ctx.model, r.to), CAUSES[r.cause] ?? "", whole(r.pages), whole(r.back),
    ]),
    { numbers: [3, 4] },
  );
}

function told(ctx: Context): HTMLElement {
  const { model, state } = ctx;
  const matches = (m: number[]): boolean => {
    const [at, , object, page, pages, from, to, , , region] = m;
    return (
      (state.object === null || object === state.object + 1) &&
      (!state.pages || (page < state.pages[1] && page + pages > state.pages[0])) &&
      (!state.time || (at >= state.time[0] && at < state.time[1])) &&
      (state.region === null || region === state.region + 1) &&
      (state.node === null || from === state.node || to === state.node)
    );
  };
  const found = together(model.moves.told.filter(matches));
  const list = found.slice(0, MOST_ROWS);
  const span = model.time.end_ns;
  const rows = list.map(([at, , object, page, pages, from, to, cause, outcome, region, cost, policy]) => {
    const name = object === 0 ? "memory that nobody knows" : ctx.name(ctx.byNumber(object - 1));
    return [
      moment(at, span / 100).replace(" ", "\u00a0"),
      name,
      pages === 1 ? whole(page) : `${whole(page)}–${whole(page + pages - 1)}`,
      whole(pages),
      `${nodeName(model, from)} → ${nodeName(model, to)}`.replace(/ /g, "\u00a0"),
      (CAUSES[cause] ?? "") + (policy > 0 ? ` (${model.moves.policies[policy - 1] ?? ""})` : ""),
      OUTCOMES[outcome] ?? "",
      region === 0 ? "–" : regionName(ctx, region - 1),
      cost === 0 ? "not measured" : time(cost - 1),
    ];
  });
  const left = model.moves.rows - model.moves.told.length;
  const more = [
    found.length > list.length ? `the first ${list.length} of ${found.length}` : "",
    left > 0 ? `${whole(left)} more are in the sums above alone` : "",
  ].filter(Boolean);
  return table(
    `Moves in the order of time, neighbouring pages together${more.length ? ` (${more.join("; ")})` : ""}`,
    ["When", "Object", "Page numbers", "How many", "Way", "Why", "Result", "Region", "Cost"],
    rows,
    {
      numbers: [3],
      pick: (r) => {
        const [at, , object, page, pages] = list[r];
        if (object === 0) return;
        const wide = Math.max(1, (model.time.end_ns - (model.time.begin_ns[0] ?? 0)) / 400);
        ctx.set({
          view: "residency",
          object: object - 1,
          pages: [page, page + pages],
          time: [Math.max(0, Math.floor(at - wide)), Math.ceil(at + wide)],
        });
      },
    },
  );
}

/** Moves of neighbouring pages as one, if interval, way and reason are the same. */
function together(told: number[][]): number[][] {
  const alike = (m: number[]): string => [m[1], m[2], m[5], m[6], m[7], m[8], m[9], m[11]].join(" ");
  const groups = new Map<string, number[][]>();
  for (const m of told) {
    const group = groups.get(alike(m));
    if (group) group.push(m);
    else groups.set(alike(m), [m]);
  }
  const all: number[][] = [];
  for (const group of groups.values()) {
    let last: number[] | undefined;
    for (const m of group.sort((a, b) => a[3] - b[3])) {
      if (last && last[3] + last[4] === m[3]) {
        last[0] = Math.min(last[0], m[0]);
        last[4] += m[4];
        // A cost is stored plus one, so that 0 says that nobody measured it.
        last[10] = last[10] > 0 && m[10] > 0 ? last[10] + m[10] - 1 : 0;
      } else {
        last = [...m];
        all.push(last);
      }
    }
  }
  return all.sort((a, b) => a[0] - b[0] || a[3] - b[3]);
}

export function regionName(ctx: Context, number: number): string {
  const r = ctx.model.regions.find((region) => region.region === number);
  if (!r) return `region ${number}`;
  const where = r.file === null ? "" : ` ${baseName(r.file)}${r.line === null ? "" : `:${r.line}`}`;
  return `${r.function ?? r.kind}${where}`;
}
