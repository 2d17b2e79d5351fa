// Time × pages: where pages lived, or who touched them. From all memory to one page.

import { type Box, cut, line, surface, timeAxis, valueAxis } from "../canvas";
import { blend, key, nodeColour, nodeLegend, nodeName, nothingColour, remoteColour, shareColour, shareLegend, theme } from "../colours";
import type { Context } from "../context";
import { basis, count, el, moment, plural, whole } from "../dom";
import { finerPicture } from "../finer";
import { causes } from "../history";
import { type ObjectModel, type Picture } from "../model";
import type { Colour, Range } from "../state";

const GAP = 3;
const FEW = 24;
/** The largest count of a cell that the page is told. */
const MOST_SEEN = 2 ** 32 - 1;

interface Row {
  object: ObjectModel;
  y: number;
  h: number;
  pages: Range;
}

interface Spot {
  object: ObjectModel;
  page: number;
  time: number;
}

export function residency(ctx: Context): HTMLElement {
  const { model } = ctx;
  const canvas = el("canvas", {
    tabindex: "0",
    role: "application",
    "aria-label": "Pages over time. Arrow keys move the cursor, plus and minus zoom, Enter selects.",
    "aria-describedby": `residency-keys-${ctx.side}`,
  });
  const readout = el("div", { class: "readout", role: "status", "aria-live": "polite" });
  const tip = el("div", { class: "tip", hidden: true });
  const place = el("div", { class: "plot" }, canvas, tip);
  const legend = el("div");
  const colours: [Colour, string][] = [["home", "home node"], ["who", "who touches"], ["remote", "remote share"]];
  const switches = colours.map(([value, text]) =>
    el("label", {}, radio(`colour-${ctx.side}`, value, ctx.state.colour === value, () => ctx.set({ colour: value }, true)), text),
  );
  const back = el("button", { type: "button", click: () => ctx.set({ object: null, seenTime: null }) }, "All objects");
  const reset = el(
    "button",
    { type: "button", click: () => ctx.set({ seenTime: null, seenPages: null }) },
    "Show everything",
  );
  const more = el("button", { type: "button" }, "");
  const controls = el(
    "div",
    { class: "controls" },
    el("fieldset", {}, el("legend", {}, "Colour"), ...switches),
    back,
    reset,
    more,
  );
  const keys = el(
    "p",
    { class: "hint", id: `residency-keys-${ctx.side}` },
    "Wheel: zoom. Drag: pan. Shift and drag: select. Double click: open the object. Keys: arrows move the cursor, ",
    "Shift and arrows pan, + and − zoom, 0 shows everything, Enter selects, O opens the object, Escape clears.",
  );

  let all = ctx.kept.get("all objects") === true;
  let rows: Row[] = [];
  let box: Box = { x: 0, y: 0, w: 1, h: 1 };
  let seen: Range = [0, model.time.end_ns];
  let cursor = keptCursor(ctx);
  let shown: Picture | null = null;
  let brush: { from: [number, number]; to: [number, number] } | null = null;
  let drag: { x: number; y: number; time: Range; pages: Range | null } | null = null;

  const full: Range = ctx.full();
  const x = (ns: number): number => box.x + ((ns - seen[0]) / (seen[1] - seen[0])) * box.w;
  const timeAt = (px: number): number => seen[0] + ((px - box.x) / box.w) * (seen[1] - seen[0]);
  const rowAt = (py: number): Row | null => rows.find((r) => py >= r.y && py < r.y + r.h + GAP) ?? null;
  const pageAt = (row: Row, py: number): number => {
    const part = Math.max(0, Math.min(0.999999, (py - row.y) / row.h));
    return Math.floor(row.pages[0] + part * (row.pages[1] - row.pages[0]));
  };

  function layout(): number {
    const selected = ctx.selected();
    const gutter = place.clientWidth < 700 ? 92 : 170;
    box = { x: gutter, y: 18, w: Math.max(80, place.clientWidth - gutter - 14), h: 0 };
    seen = ctx.state.seenTime ?? full;
    rows = [];
    let y = box.y;
    // Large screens show more bands.
    const larger = Math.max(1, (window.innerHeight * 0.45) / 420);
    if (selected) {
      const pages: Range = ctx.state.seenPages ?? [0, selected.pages];
      const h = Math.round(380 * larger);
      rows.push({ object: selected, y, h, pages });
      y += h;
    } else {
      const objects = all ? model.objects : model.objects.slice(0, FEW);
      const roots = objects.map((o) => Math.sqrt(o.pages));
      const sum = roots.reduce((a, b) => a + b, 0) || 1;
      objects.forEach((object, i) => {
        const h = Math.round(Math.max(14, larger * Math.min(130, (420 * roots[i]) / sum)));
        rows.push({ object, y, h, pages: [0, object.pages] });
        y += h + GAP;
      });
    }
    box.h = Math.max(40, y - box.y);
    return box.y + box.h + 44;
  }

  function colourOf(p: Picture, cell: number): string | null {
    if (ctx.state.colour === "remote") {
      const remote = p.plane("remote")[cell];
      return remote === 0 ? null : remoteColour(remote - 1);
    }
    const home = ctx.state.colour === "home";
    const node = p.plane(home ? "home" : "who")[cell];
    if (node === 0) return null;
    const share = p.plane(home ? "home_percent" : "who_percent")[cell];
    const faded = ctx.state.node !== null && ctx.state.node !== node - 1;
    return faded ? blend(nodeColour(node - 1), theme().ground, 0.12) : shareColour(node, share);
  }

  /** The finest picture whose bands are no thinner than a pixel. */
  function choose(row: Row): Picture {
    const list = ctx.pictures(row.object);
    const finer = finerPicture(ctx, row.object, seen, row.pages, () => draw());
    if (finer) return finer;
    const fits = (p: Picture): boolean => (row.h * 2 ** p.level.page_shift) / (row.pages[1] - row.pages[0]) >= 1;
    return list.find(fits) ?? list[list.length - 1];
  }

  function drawRow(pen: CanvasRenderingContext2D, row: Row): void {
    const t = theme();
    const p = choose(row);
    shown = p;
    const { level } = p;
    const y = (page: number): number =>
      row.y + ((page - row.pages[0]) / (row.pages[1] - row.pages[0])) * row.h;
    pen.save();
    pen.beginPath();
    pen.rect(box.x, row.y, box.w, row.h);
    pen.clip();
    pen.fillStyle = nothingColour();
    pen.fillRect(box.x, row.y, box.w, row.h);
    const bands: Range = [p.bandOf(row.pages[0]), p.bandOf(row.pages[1] - 1)];
    const columns: Range = [p.columnOf(seen[0]), p.columnOf(seen[1])];
    const marks: [number, number, number][] = [];
    for (let band = bands[0]; band <= bands[1]; band++) {
      const [first, end] = p.pagesOf(band);
      // Whole pixels: thin bands that share one would blend into stripes that are not there.
      const top = Math.floor(y(first));
      const high = Math.max(1, Math.ceil(y(end)) - top);
      let from = columns[0];
      let colour = colourOf(p, band * level.columns + from);
      for (let c = columns[0] + 1; c <= columns[1] + 1; c++) {
        const next = c <= columns[1] ? colourOf(p, band * level.columns + c) : undefined;
        if (next === colour) continue;
        if (colour !== null) {
          pen.fillStyle = colour;
          const left = Math.floor(x(p.times[from]));
          pen.fillRect(left, top, Math.max(1, Math.ceil(x(p.times[c])) - left), high);
        }
        from = c;
        colour = next ?? null;
      }
    }
    for (const [band, column, moved, returned] of level.moves) {
      if (band < bands[0] || band > bands[1] || column < columns[0] || column > columns[1]) continue;
      const middle = (y(p.pagesOf(band)[0]) + y(p.pagesOf(band)[1])) / 2;
      // Where its interval begins, as the home of its end begins there.
      marks.push([x(p.times[column]), middle, returned > 0 ? 2 : moved > 0 ? 1 : 0]);
    }
    // Ping-pongs last: on top.
    marks.sort((a, b) => a[2] - b[2]);
    for (const [mx, my, kind] of marks) {
      if (kind === 2) diamond(pen, mx, my, 5, t.mark, t.ground);
      else if (kind === 1) {
        pen.strokeStyle = t.mark;
        pen.lineWidth = 1;
        line(pen, mx, my - 2.5, mx, my + 2.5);
      }
    }
    pen.restore();
  }

  function draw(): void {
    const s = surface(canvas, layout());
    if (!s) return;
    const { pen } = s;
    const t = theme();
    const selected = ctx.selected();
    for (const row of rows) {
      drawRow(pen, row);
      if (!selected) {
        pen.fillStyle = t.ink;
        pen.textAlign = "right";
        pen.fillText(cut(pen, ctx.name(row.object), box.x - 12), box.x - 8, row.y + row.h / 2);
      } else {
        const shownPages = { x: box.x, y: row.y, w: box.w, h: row.h };
        const label = `page of ${cut(pen, ctx.name(row.object), 220)}`;
        const integer = (n: number): string => (Number.isInteger(n) ? whole(n) : "");
        valueAxis(pen, shownPages, row.pages, label, true, integer);
      }
    }
    untimed(pen);
    selection(pen);
    timeAxis(pen, { ...box, h: box.h - (selected ? 0 : GAP) }, seen);
    if (brush) {
      pen.strokeStyle = t.mark;
      pen.setLineDash([4, 3]);
      const [a, b] = [brush.from, brush.to];
      pen.strokeRect(a[0], a[1], b[0] - a[0], b[1] - a[1]);
      pen.setLineDash([]);
    }
    if (cursor) {
      const row = rows.find((r) => r.object === cursor?.object);
      if (row) {
        const y = row.y + ((cursor.page + 0.5 - row.pages[0]) / (row.pages[1] - row.pages[0])) * row.h;
        pen.strokeStyle = t.mark;
        pen.lineWidth = 2;
        pen.strokeRect(x(cursor.time) - 4, y - 4, 8, 8);
      }
    }
  }

  /** What results leave out stands below a grey line. */
  function untimed(pen: CanvasRenderingContext2D): void {
    const { time } = model;
    pen.fillStyle = theme().faint;
    time.timed.forEach((timed, c) => {
      if (timed) return;
      const from = Math.max(box.x, x(time.begin_ns[c]));
      const to = Math.min(box.x + box.w, x(time.begin_ns[c + 1] ?? time.end_ns));
      if (to > from) pen.fillRect(from, box.y - 8, to - from, 4);
    });
  }

  function selection(pen: CanvasRenderingContext2D): void {
    const { pages, time } = ctx.state;
    if (!pages && !time) return;
    const [from, to] = time ?? full;
    pen.strokeStyle = theme().mark;
    pen.lineWidth = 1.5;
    pen.save();
    pen.beginPath();
    pen.rect(box.x - 1, box.y - 1, box.w + 2, box.h + 2);
    pen.clip();
    for (const row of rows) {
      if (pages && row.object.report.object !== ctx.state.object) continue;
      const [a, b] = pages ?? row.pages;
      const y = (page: number): number =>
        row.y + ((page - row.pages[0]) / (row.pages[1] - row.pages[0])) * row.h;
      pen.strokeRect(x(from), y(a), Math.max(2, x(to) - x(from)), Math.max(2, y(b) - y(a)));
    }
    pen.restore();
  }

  function describe(spot: Spot): string[] {
    const row = rows.find((r) => r.object === spot.object);
    if (!row) return [];
    const p = rows.length === 1 && shown ? shown : choose(row);
    const band = p.bandOf(spot.page);
    const column = p.columnOf(spot.time);
    const cell = band * p.level.columns + column;
    const [first, end] = p.pagesOf(band);
    const { report } = spot.object;
    const span = seen[1] - seen[0];
    const iteration = iterationAt(ctx, p.times[column]);
    const lines = [
      `${ctx.name(spot.object)}, ${end - first === 1 ? `page ${whole(first)}` : `pages ${whole(first)} to ${whole(end - 1)}`}`,
      `${moment(p.times[column], span)} to ${moment(p.times[column + 1], span)}${iteration}`,
    ];
    const home = p.plane("home")[cell];
    lines.push(
      home
        ? `home: ${nodeName(model, home - 1)} (${p.plane("home_percent")[cell]} % of the pages)`
        : "home: not recorded here",
    );
    const who = p.plane("who")[cell];
    lines.push(...causes(ctx, spot.object, [first, end], p.times[column + 1], span));
    if (who) {
      const seen = p.plane("seen")[cell];
      // A sighting says that a node came, not how often: it has no count.
      if (report.remote.basis !== "presence") {
        lines.push(`${report.remote.of}: ${whole(seen)}${seen === MOST_SEEN ? " or more" : ""} (${basis(report.remote)})`);
      }
      const nodes = p.plane("who_nodes")[cell];
      lines.push(
        `touched by ${plural(nodes, "node")}, most by ${nodeName(model, who - 1)}: ` +
          `${p.plane("who_percent")[cell]} % of ${report.remote.of} (${basis(report.remote)})`,
      );
      lines.push(`remote: ${p.plane("remote")[cell] - 1} % of these ${report.remote.of}`);
    } else {
      lines.push("nobody was seen to touch it here");
    }
    const [moved, returned] = p.moves(band, column);
    if (moved > 0) {
      lines.push(`${plural(moved, "page")} moved${returned > 0 ? `, ${whole(returned)} back again (ping-pong)` : ""}`);
    }
    return lines;
  }

  function spotAt(px: number, py: number): Spot | null {
    const row = rowAt(py);
    if (!row || px < box.x || px > box.x + box.w) return null;
    return { object: row.object, page: pageAt(row, py), time: timeAt(px) };
  }

  function local(event: MouseEvent): [number, number] {
    const r = canvas.getBoundingClientRect();
    return [event.clientX - r.left, event.clientY - r.top];
  }

  const clampRange = (r: Range, limit: Range, least: number): Range => {
    const size = Math.max(least, Math.min(limit[1] - limit[0], r[1] - r[0]));
    const from = Math.max(limit[0], Math.min(limit[1] - size, r[0]));
    return [from, from + size];
  };

  function show(time: Range, pages: Range | null): void {
    const selected = ctx.selected();
    const seenTime = clampRange(time, full, Math.max(1, (full[1] - full[0]) / 1e7));
    const seenPages = selected && pages ? clampRange(pages, [0, selected.pages], 1) : null;
    const same = (a: Range, b: Range): boolean => a[0] <= b[0] && a[1] >= b[1];
    ctx.set(
      {
        seenTime: same(seenTime, full) ? null : seenTime,
        seenPages: selected && seenPages && !same(seenPages, [0, selected.pages]) ? seenPages : null,
      },
      true,
    );
  }

  function zoom(factor: number, at: Spot | null, axes: "both" | "time" | "pages"): void {
    const around = (r: Range, middle: number): Range => [
      middle - (middle - r[0]) * factor,
      middle + (r[1] - middle) * factor,
    ];
    const time = axes === "pages" ? seen : around(seen, at?.time ?? (seen[0] + seen[1]) / 2);
    const row = ctx.selected() ? rows[0] : null;
    let pages = row?.pages ?? null;
    if (pages && axes !== "time") {
      pages = around(pages, at?.page ?? (pages[0] + pages[1]) / 2);
      pages = [Math.floor(pages[0]), Math.max(Math.floor(pages[0]) + 1, Math.ceil(pages[1]))];
    }
    show(time, pages);
  }

  function select(spot: Spot): void {
    const row = rows.find((r) => r.object === spot.object);
    if (!row) return;
    const p = choose(row);
    const [first, end] = p.pagesOf(p.bandOf(spot.page));
    const column = p.columnOf(spot.time);
    const keep = ctx.state.object === spot.object.report.object ? { seenPages: ctx.state.seenPages } : {};
    ctx.set({
      object: spot.object.report.object,
      pages: [first, end],
      time: [Math.floor(p.times[column]), Math.ceil(p.times[column + 1])],
      ...keep,
    });
  }

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const spot = spotAt(...local(event));
    const axes = event.shiftKey ? "pages" : event.altKey || !ctx.selected() ? "time" : "both";
    zoom(Math.exp(Math.sign(event.deltaY || event.deltaX) * 0.25), spot, axes);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    const [px, py] = local(event);
    canvas.setPointerCapture(event.pointerId);
    if (event.shiftKey) brush = { from: [px, py], to: [px, py] };
    else drag = { x: px, y: py, time: seen, pages: ctx.selected() ? rows[0].pages : null };
  });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = local(event);
    if (brush) {
      brush.to = [px, py];
      draw();
    } else if (drag && Math.abs(px - drag.x) + Math.abs(py - drag.y) > 3) {
      const dt = ((drag.x - px) / box.w) * (drag.time[1] - drag.time[0]);
      let pages = drag.pages;
      if (pages) {
        const dp = Math.round(((drag.y - py) / rows[0].h) * (pages[1] - pages[0]));
        pages = [pages[0] + dp, pages[1] + dp];
      }
      tip.hidden = true;
      show([drag.time[0] + dt, drag.time[1] + dt], pages);
    } else {
      hover(spotAt(px, py), px, py);
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const [px, py] = local(event);
    const moved = drag ? Math.abs(px - drag.x) + Math.abs(py - drag.y) : 0;
    if (brush) {
      finishBrush();
    } else if (moved <= 3) {
      const spot = spotAt(px, py);
      if (spot) select(spot);
    }
    brush = null;
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  canvas.addEventListener("dblclick", (event) => {
    const spot = spotAt(...local(event));
    if (spot) ctx.set({ object: spot.object.report.object, seenPages: null });
  });

  function finishBrush(): void {
    if (!brush) return;
    const [a, b] = [spotAt(...brush.from), spotAt(...brush.to)];
    if (!a || !b || Math.abs(brush.from[0] - brush.to[0]) < 3) return draw();
    const time: Range = [Math.floor(Math.min(a.time, b.time)), Math.ceil(Math.max(a.time, b.time))];
    if (a.object !== b.object) return ctx.set({ time });
    const pages: Range = [Math.min(a.page, b.page), Math.max(a.page, b.page) + 1];
    return ctx.set({ object: a.object.report.object, pages, time, seenPages: ctx.state.seenPages });
  }

  function hover(spot: Spot | null, px: number, py: number): void {
    tip.hidden = !spot;
    if (!spot) return;
    tip.replaceChildren(...describe(spot).map((text) => el("div", {}, text)));
    const left = px + 16 + tip.offsetWidth > place.clientWidth ? px - tip.offsetWidth - 12 : px + 16;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${py + 12}px`;
  }

  canvas.addEventListener("keydown", (event) => {
    const spot = cursor ?? (rows[0] && { object: rows[0].object, page: rows[0].pages[0], time: seen[0] });
    if (!spot) return;
    const row = rows.find((r) => r.object === spot.object) ?? rows[0];
    const p = choose(row);
    const span = seen[1] - seen[0];
    const arrows: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    };
    const arrow = arrows[event.key];
    if (arrow && event.shiftKey) {
      const pages = ctx.selected() ? rows[0].pages : null;
      const step = pages ? Math.max(1, Math.round((pages[1] - pages[0]) / 8)) * arrow[1] : 0;
      show(
        [seen[0] + (arrow[0] * span) / 8, seen[1] + (arrow[0] * span) / 8],
        pages && [pages[0] + step, pages[1] + step],
      );
    } else if (arrow) {
      moveCursor(spot, row, p, arrow);
    } else if (event.key === "+" || event.key === "=") zoom(0.6, cursor, "both");
    else if (event.key === "-") zoom(1 / 0.6, cursor, "both");
    else if (event.key === "0") ctx.set({ seenTime: null, seenPages: null }, true);
    else if (event.key === "Enter") select(spot);
    else if (event.key === "o" || event.key === "O") ctx.set({ object: spot.object.report.object });
    else if (event.key === "Escape") ctx.set({ object: null, pages: null, time: null });
    else return;
    event.preventDefault();
  });

  function moveCursor(spot: Spot, row: Row, p: Picture, [dx, dy]: [number, number]): void {
    const column = Math.max(0, Math.min(p.level.columns - 1, p.columnOf(spot.time) + dx));
    const time = (p.times[column] + p.times[column + 1]) / 2;
    let { object } = spot;
    let page = spot.page;
    if (dy !== 0) {
      const band = p.bandOf(spot.page) + dy;
      const at = rows.indexOf(row);
      const next = rows[at + dy];
      if (band >= 0 && band < p.level.bands) page = p.pagesOf(band)[0];
      else if (next) {
        object = next.object;
        page = dy > 0 ? next.pages[0] : next.pages[1] - 1;
      }
    }
    cursor = { object, page, time };
    ctx.kept.set(`cursor ${ctx.side}`, { id: object.report.id, page, time });
    readout.textContent = `${describe(cursor).join(". ")}.`;
    draw();
  }

  more.addEventListener("click", () => {
    all = !all;
    ctx.kept.set("all objects", all);
    update();
  });

  function update(): void {
    const selected = ctx.selected();
    back.hidden = !selected;
    reset.hidden = !ctx.state.seenTime && !ctx.state.seenPages;
    more.hidden = selected !== null || model.objects.length <= FEW;
    more.textContent = all ? `First ${FEW} objects` : `All ${model.objects.length} objects`;
    legend.replaceChildren(...describeColours(ctx));
    draw();
  }
  queueMicrotask(update);
  const view = el(
    "section",
    {},
    controls,
    legend,
    place,
    readout,
    keys,
    notes(ctx),
  );
  (view as HTMLElement & { redraw?: () => void }).redraw = update;
  return view;
}

/** Where the cursor was before the page was made anew. */
function keptCursor(ctx: Context): Spot | null {
  const kept = ctx.kept.get(`cursor ${ctx.side}`) as { id: string; page: number; time: number } | undefined;
  const object = kept && ctx.model.objects.find((o) => o.report.id === kept.id);
  return object ? { object, page: kept.page, time: kept.time } : null;
}

function radio(name: string, value: string, on: boolean, pick: () => void): HTMLInputElement {
  const input = el("input", { type: "radio", name, value, change: pick });
  input.checked = on;
  return input;
}

function diamond(pen: CanvasRenderingContext2D, x: number, y: number, r: number, fill: string, edge: string): void {
  pen.beginPath();
  pen.moveTo(x, y - r);
  pen.lineTo(x + r, y);
  pen.lineTo(x, y + r);
  pen.lineTo(x - r, y);
  pen.closePath();
  pen.fillStyle = fill;
  pen.fill();
  pen.strokeStyle = edge;
  pen.lineWidth = 1.5;
  pen.stroke();
}

function iterationAt(ctx: Context, ns: number): string {
  const { time } = ctx.model;
  let c = 0;
  while (c + 1 < time.begin_ns.length && time.begin_ns[c + 1] <= ns) c++;
  const i = time.iteration[c];
  return i === null || i === undefined ? "" : `, iteration ${i}`;
}

function describeColours(ctx: Context): HTMLElement[] {
  const marks = [
    ...shareLegend("of the cell"),
    el("span", { class: "entry" }, "| pages moved"),
    el("span", { class: "entry" }, "◆ pages moved back (ping-pong)"),
    el("span", { class: "entry" }, "▬ on top: not counted (initialisation, end)"),
  ];
  if (ctx.state.colour === "home") {
    const all = nodeLegend(ctx.model, "Home of most pages of a cell:", marks);
    return [all, el("p", { class: "hint" }, "Colour: where pages lie. From top to bottom: pages. From left to right: time.")];
  }
  if (ctx.state.colour === "who") {
    const all = nodeLegend(ctx.model, "Node with most touches of a cell:", marks);
    const share = (ctx.selected()?.report ?? ctx.model.summary).remote;
    const what = `${share.of} (${basis(share)})`;
    const presence = share.basis === "presence";
    const warning = presence ? " A sighting says that a node came, not how often." : "";
    return [all, el("p", { class: "hint" }, `Shares of ${what}.${warning}`)];
  }
  const steps = [0, 25, 50, 75, 100].map((p) => key(remoteColour(p), `${p} %`));
  const share = (ctx.selected()?.report ?? ctx.model.summary).remote;
  const label = `Remote share of ${share.of} (${basis(share)}):`;
  return [
    el("p", { class: "legend" }, el("strong", {}, label), " ", ...steps, ...marks.slice(2)),
  ];
}

function notes(ctx: Context): HTMLElement {
  const { model } = ctx;
  const texts: string[] = [];
  if (model.objects_without_picture > 0) {
    texts.push(`${count(model.objects_without_picture)} smaller or less remote objects have no picture.`);
  }
  if (model.levels_left_out > 0) {
    texts.push("This file holds no finer pictures; 'homenode view REC' without -o draws them when you zoom in.");
  }
  const box = model.objects.some((o) => o.levels[0]?.page_shift > 0);
  if (box && !ctx.finer) texts.push("A cell of a large object is several pages: its tooltip says which.");
  return el("div", {}, ...texts.map((t) => el("p", { class: "hint" }, t)));
}
