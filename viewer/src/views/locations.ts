// First and last home of each page, and who uses it.

import { byKeys, cut, surface } from "../canvas";
import { nodeLegend, nodeName, shareColour, shareLegend, theme } from "../colours";
import type { Context } from "../context";
import { basis, el, percent, plural, table, whole } from "../dom";
import type { Band, ObjectModel } from "../model";

const FEW = 12;
const STRIP = 15;
const LABELS = ["first home", "last home", "most used by"];

type Told = [number, number];

function strips(band: Band): Told[] {
  const [user] = band.users;
  const used: Told = user ? [user[0], Math.floor((100 * user[1]) / Math.max(1, band.total))] : [0, 0];
  return [band.first, band.last, used];
}

/** Pages of an object by what is true of their band. */
function pagesWhere(o: ObjectModel, holds: (band: Band) => boolean): number {
  const size = 2 ** o.profile_shift;
  return o.profile.reduce((n, band, i) => (holds(band) ? n + Math.min(size, o.pages - i * size) : n), 0);
}

export function locations(ctx: Context): HTMLElement {
  const { model } = ctx;
  const selected = ctx.selected();
  const objects = selected ? [selected] : model.objects.slice(0, FEW);
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "First home, last home and main user of each page. Arrow keys read it out." });
  const tip = el("div", { class: "tip", hidden: true });
  const place = el("div", { class: "plot" }, canvas, tip);
  let gutter = 230;
  const each = 3 * STRIP + 14;

  const draw = (): void => {
    gutter = place.clientWidth < 700 ? 150 : 260;
    const s = surface(canvas, objects.length * each + 34);
    if (!s) return;
    const { pen } = s;
    const t = theme();
    const w = s.width - gutter - 10;
    objects.forEach((o, row) => {
      const top = 4 + row * each;
      pen.textAlign = "left";
      pen.fillStyle = t.ink;
      pen.fillText(cut(pen, ctx.name(o), gutter - 98), 2, top + STRIP * 1.5);
      pen.fillStyle = t.faint;
      pen.textAlign = "right";
      LABELS.forEach((label, i) => pen.fillText(label, gutter - 8, top + i * STRIP + STRIP / 2));
      const size = 2 ** o.profile_shift;
      o.profile.forEach((band, i) => {
        const from = Math.floor(gutter + (w * i * size) / o.pages);
        const to = Math.ceil(gutter + (w * Math.min(o.pages, (i + 1) * size)) / o.pages);
        strips(band).forEach(([node, share], strip) => {
          pen.fillStyle = shareColour(node, share);
          pen.fillRect(from, top + strip * STRIP, Math.max(1, to - from), STRIP - 2);
        });
      });
    });
    pen.fillStyle = t.faint;
    pen.textAlign = "center";
    const text = objects.length === 1 ? `pages 0 to ${whole(objects[0].pages - 1)} of the object` : "first to last page of each object";
    pen.fillText(text, gutter + w / 2, objects.length * each + 18);
  };
  canvas.addEventListener("pointermove", (event) => {
    const r = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - r.left, event.clientY - r.top];
    const o = objects[Math.floor((py - 4) / each)];
    const part = (px - gutter) / (r.width - gutter - 10);
    tip.hidden = !o || part < 0 || part >= 1;
    if (!o || tip.hidden) return;
    const at = Math.floor((part * o.pages) / 2 ** o.profile_shift);
    tip.replaceChildren(...describe(ctx, o, at).map((line) => el("div", {}, line)));
    tip.style.left = `${Math.max(0, Math.min(px + 14, place.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${py + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  canvas.addEventListener("click", (event) => {
    const r = canvas.getBoundingClientRect();
    const o = objects[Math.floor((event.clientY - r.top - 4) / each)];
    if (o) ctx.set({ object: o.report.object });
  });
  byKeys(canvas, () => gutter, tip);
  queueMicrotask(draw);

  const rows = objects.map((o) => {
    const known = pagesWhere(o, (b) => b.last[0] > 0);
    const moved = pagesWhere(o, (b) => b.first[0] > 0 && b.last[0] > 0 && b.first[0] !== b.last[0]);
    const used = pagesWhere(o, (b) => b.last[0] > 0 && b.users.length > 0);
    const right = pagesWhere(o, (b) => b.last[0] > 0 && b.users.length > 0 && b.users[0][0] === b.last[0]);
    return [
      ctx.name(o),
      whole(o.pages),
      known > 0 ? whole(known) : "–",
      known > 0 ? percent((100 * moved) / known) : "–",
      used > 0 ? percent((100 * right) / used) : "–",
      `${o.report.remote.of} (${basis(o.report.remote)})`,
    ];
  });
  const section = el(
    "section",
    {},
    nodeLegend(model, "Node:", shareLegend("of the pages or of the touches")),
    el(
      "p",
      { class: "hint" },
      "First and last home: the node with most of the pages in the first and in the last interval in which they lived. " +
        "Most used by: the node with most touches in the part that counts. A page lies best where its last home is the " +
        "node that uses it most.",
    ),
    place,
    table(
      selected ? "This object" : `The ${plural(objects.length, "object")} with most remote touches`,
      ["Object", "Pages", "With a home", "Moved at the end", "Lie best", "Touches are"],
      rows,
      { numbers: [1, 2, 3, 4], pick: (r) => ctx.set({ object: objects[r].report.object }) },
    ),
  );
  (section as HTMLElement & { redraw?: () => void }).redraw = draw;
  return section;
}

export function describe(ctx: Context, o: ObjectModel, at: number): string[] {
  const band = o.profile[at];
  if (!band) return [];
  const size = 2 ** o.profile_shift;
  const [from, to] = [at * size, Math.min(o.pages, (at + 1) * size)];
  const { of } = o.report.remote;
  const home = ([node, share]: Told): string =>
    node === 0 ? "not recorded" : `${nodeName(ctx.model, node - 1)} (${share} % of the pages)`;
  return [
    `${ctx.name(o)}, ${to - from === 1 ? `page ${whole(from)}` : `pages ${whole(from)} to ${whole(to - 1)}`}`,
    `first home: ${home(band.first)}`,
    `last home: ${home(band.last)}`,
    band.total === 0
      ? "nobody was seen to touch it in the part that counts"
      : `used by ${band.users.map(([n, v]) => `${nodeName(ctx.model, n - 1)}: ${percent((100 * v) / band.total)}`).join(", ")}` +
        ` of ${whole(band.total)} ${of} (${basis(o.report.remote)})`,
  ];
}
