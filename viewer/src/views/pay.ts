// Whether moving paid: times of iterations, beside what moved and what homenode itself cost.

import { byKeys, surface, timeAxis, valueAxis } from "../canvas";
import { key, theme } from "../colours";
import type { Context } from "../context";
import { basis, el, percent, plural, table, time, timeUnit, whole } from "../dom";
import type { Model, Moved, Times } from "../model";

export function pay(ctx: Context): HTMLElement {
  const { model } = ctx;
  const { rounds, summary } = model;
  const moved = ctx.selected()?.report.moves ?? model.moved;
  const canvas = el("canvas", { role: "img", "aria-label": `Times of ${rounds.count} iterations. Arrow keys read them out, Enter selects one.` });
  const place = el("div", { class: "plot" }, canvas);
  const tip = el("div", { class: "tip", hidden: true });
  place.append(tip);
  const draw = (): void => {
    const s = surface(canvas, 330);
    if (!s) return;
    const { pen } = s;
    const t = theme();
    const box = { x: 70, y: 24, w: s.width - 86, h: 180 };
    const full = range(ctx);
    const x = (ns: number): number => box.x + ((ns - full[0]) / (full[1] - full[0])) * box.w;
    const inside = rounds.groups.filter((g) => g[2] >= full[0] && g[1] <= full[1]);
    const longest = ctx.most("iterations", Math.max(1, ...inside.map((g) => g[5])));
    const [size, unit] = timeUnit(longest);
    const y = valueAxis(pen, box, [0, (longest / size) * 1.05], `time of an iteration, ${unit}`);
    if (ctx.state.time) {
      pen.fillStyle = t.line;
      const [a, b] = ctx.state.time.map(x);
      pen.fillRect(a, box.y, Math.max(2, b - a), box.h);
    }
    for (const [, from, to, shortest, median, longestOf] of inside) {
      const left = x(from);
      const wide = Math.max(2, x(to) - left - 1);
      pen.fillStyle = "#56b4e9";
      pen.fillRect(left, y(median / size), wide, box.y + box.h - y(median / size));
      if (longestOf > shortest) {
        pen.strokeStyle = t.ink;
        pen.beginPath();
        pen.moveTo(left + wide / 2, y(shortest / size));
        pen.lineTo(left + wide / 2, y(longestOf / size));
        pen.stroke();
      }
    }
    // What moved, below.
    const lower = { x: box.x, y: box.y + box.h + 26, w: box.w, h: 48 };
    const bars = new Map<number, number>();
    let most = 1;
    for (const [column, object, , , , outcome, , pages] of model.moves.sums) {
      if (outcome === 2 || (ctx.state.object !== null && object !== ctx.state.object + 1)) continue;
      const end = model.time.begin_ns[column + 1] ?? model.time.end_ns;
      const at = Math.round(x((model.time.begin_ns[column] + end) / 2) / 3);
      bars.set(at, (bars.get(at) ?? 0) + pages);
      most = Math.max(most, bars.get(at) ?? 0);
    }
    most = ctx.most("pages moved", most);
    const my = valueAxis(pen, lower, [0, most], "pages that moved", false, (n) => (n === 0 || n === most || n % 1 === 0 ? whole(n) : ""));
    pen.fillStyle = "#d55e00";
    for (const [at, pages] of bars) {
      const left = at * 3 - 1;
      if (left >= lower.x && left <= lower.x + lower.w) pen.fillRect(left, my(pages), 2.5, Math.max(1, lower.y + lower.h - my(pages)));
    }
    timeAxis(pen, lower, full);
  };
  canvas.addEventListener("pointermove", (event) => {
    const r = canvas.getBoundingClientRect();
    const full = range(ctx);
    const at = full[0] + ((event.clientX - r.left - 70) / (r.width - 86)) * (full[1] - full[0]);
    const g = rounds.groups.find(([, from, to]) => at >= from && at <= to);
    tip.hidden = !g;
    if (!g) return;
    const name = rounds.each === 1 ? `iteration ${g[0]}` : `${rounds.each} iterations from ${g[0]} on`;
    const text = rounds.each === 1 ? time(g[4]) : `${time(g[3])} to ${time(g[5])}, median ${time(g[4])}`;
    tip.replaceChildren(el("div", {}, name), el("div", {}, text));
    tip.style.left = `${Math.min(event.clientX - r.left + 14, r.width - 160)}px`;
    tip.style.top = `${event.clientY - r.top + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  canvas.addEventListener("click", (event) => {
    const r = canvas.getBoundingClientRect();
    const full = range(ctx);
    const at = full[0] + ((event.clientX - r.left - 70) / (r.width - 86)) * (full[1] - full[0]);
    const g = rounds.groups.find(([, from, to]) => at >= from && at <= to);
    if (g) ctx.set({ time: [g[1], g[2]] });
  });
  byKeys(canvas, () => 70, tip);
  queueMicrotask(draw);

  const lines: string[] = [];
  if (summary.verdict) lines.push(`The guard's verdict: ${summary.verdict}.`);
  if (moved?.iterations_before && moved.iterations_after) {
    const [a, b] = [moved.iterations_before.median_ns, moved.iterations_after.median_ns];
    const change = percent((100 * Math.abs(a - b)) / Math.max(1, a));
    lines.push(`An iteration took ${time(a)} before the first move and ${time(b)} after the moves: ${change} ${b <= a ? "less" : "more"}.`);
  }
  if (ctx.other && ctx.side === 1) lines.push(...against(ctx.other.model, model));
  if (lines.length === 0) lines.push(moved ? "Nothing tells iterations before and after the moves apart." : "Nothing moved.");
  const section = el(
    "section",
    {},
    ...lines.map((l) => el("p", { class: "lead" }, l)),
    rounds.count > 0
      ? el(
          "p",
          { class: "legend" },
          key("#56b4e9", rounds.each === 1 ? "one iteration" : `median of ${rounds.each} iterations; the line spans shortest to longest`),
          key("#d55e00", "pages that moved meanwhile"),
          el("span", { class: "entry" }, `${summary.clock} clock; iterations ${summary.iterations?.source ?? ""}`),
        )
      : el("p", { class: "empty" }, "This recording knows no iterations: the program told none, and none were found."),
    rounds.count > 0 ? place : null,
    el("div", { class: "columns" }, medians(moved), shares(moved), guard(moved)),
    own(ctx),
  );
  (section as HTMLElement & { redraw?: () => void }).redraw = draw;
  return section;
}

function range(ctx: Context): [number, number] {
  if (ctx.state.seenTime) return ctx.state.seenTime;
  const groups = [...ctx.model.rounds.groups, ...(ctx.other?.model.rounds.groups ?? [])];
  const from = groups.reduce((least, g) => Math.min(least, g[1]), groups[0]?.[1] ?? 0);
  return [from, groups.reduce((most, g) => Math.max(most, g[2]), from + 1)];
}

/** What the recording beside this one took for an iteration, and when the moves are earned back. */
function against(before: Model, after: Model): string[] {
  const [a, b] = [before.summary.iterations?.median_ns, after.summary.iterations?.median_ns];
  if (!a || !b || before.summary.clock !== after.summary.clock) return [];
  const change = percent((100 * Math.abs(a - b)) / a);
  const lines = [`An iteration takes ${time(a)} BEFORE and ${time(b)} AFTER: ${change} ${b <= a ? "less" : "more"}.`];
  const during = after.moved?.iterations_during;
  const cost = during ? during.count * (during.median_ns - a) : 0;
  if (during && cost > 0) {
    const longer = `While pages moved, ${plural(during.count, "iteration")} took ${time(cost)} longer than BEFORE`;
    lines.push(b < a ? `${longer}; ${plural(Math.ceil(cost / (a - b)), "later iteration")} earn that back.` : `${longer}.`);
  }
  const [all, rest] = [lasted(before), lasted(after)];
  if (before.rounds.count === after.rounds.count && all > 0 && rest > 0) {
    const [word, less] = rest < all ? ["Moving paid", "less"] : ["Moving did not pay", "more"];
    const share = percent((100 * Math.abs(all - rest)) / all);
    const clock = after.summary.clock === "modelled" ? " on the modelled machine" : "";
    lines.unshift(`${word}${clock}: all iterations took ${time(all)} BEFORE and ${time(rest)} AFTER, moves included: ${share} ${less}.`);
  }
  return lines;
}

/** What all iterations took together, in nanoseconds. */
function lasted(model: Model): number {
  const { groups } = model.rounds;
  return groups.length > 0 ? groups[groups.length - 1][2] - groups[0][1] : 0;
}

function medians(moved: Moved | null): HTMLElement | null {
  if (!moved) return null;
  const parts: [string, Times | null][] = [
    ["before the first move", moved.iterations_before],
    ["until 95 % of the pages had moved", moved.iterations_during],
    ["after that", moved.iterations_after],
  ];
  return table(
    "Iterations",
    ["When", "How many", "Median time"],
    parts.map(([when, t]) => [when, t ? whole(t.count) : "0", t ? time(t.median_ns) : "–"]),
    { numbers: [1, 2] },
  );
}

function shares(moved: Moved | null): HTMLElement | null {
  const parts = [["before", moved?.remote_before], ["after", moved?.remote_after]] as const;
  const known = parts.filter(([, s]) => s);
  if (known.length === 0) return null;
  return table(
    "Remote share around the moves",
    ["When", "Remote", "Of"],
    known.map(([when, s]) => [when, percent(s?.percent ?? null), s ? `${whole(s.whole)} ${s.of} (${basis(s)})` : ""]),
    { numbers: [1] },
  );
}

function guard(moved: Moved | null): HTMLElement | null {
  const g = moved?.guard;
  if (!g) return null;
  const row = (name: string, s: { samples: number; remote: number }): string[] => [
    name, whole(s.samples), whole(s.remote), percent(s.samples > 0 ? (100 * s.remote) / s.samples : null),
  ];
  return table(
    "The guard's samples: pages that moved against pages held back",
    ["Pages", "Samples", "Remote", "Remote share"],
    [row("moved", g.moved), row("held back", g.held_back)],
    { numbers: [1, 2, 3] },
  );
}

function own(ctx: Context): HTMLElement | null {
  const cost = ctx.model.summary.own_cost;
  if (!cost) return null;
  const share = cost.cpu_ns > 0 ? (100 * cost.own_ns) / cost.cpu_ns : null;
  return el(
    "p",
    {},
    `homenode itself took ${time(cost.own_ns)} of ${time(cost.cpu_ns)} of CPU time (${percent(share)}), ` +
      `told at ${plural(ctx.model.rounds.own_cost.length, "moment")}.`,
  );
}
