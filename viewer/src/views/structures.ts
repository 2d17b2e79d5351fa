// An array as its source declares it: a profile over its elements, and slices of its dimensions.

import { byKeys, surface, valueAxis } from "../canvas";
import { nodeColour, nodeLegend, shareColour, shareLegend, theme } from "../colours";
import type { Context } from "../context";
import { basis, count, el, whole } from "../dom";
import { excerpt } from "../source";
import type { Band, ObjectReport } from "../model";
import { fieldsOf } from "./fields";
import { describe } from "./locations";

type What = "used" | "first" | "last";
const WHATS: [What, string][] = [["used", "most used by"], ["last", "last home"], ["first", "first home"]];

/** Most dimensions with a slider. */
const MOST_DIMENSIONS = 8;

function told(band: Band | undefined, what: What): [number, number] {
  if (!band) return [0, 0];
  if (what !== "used") return what === "first" ? band.first : band.last;
  const [user] = band.users;
  return user ? [user[0], (100 * user[1]) / Math.max(1, band.total)] : [0, 0];
}

export function structures(ctx: Context): HTMLElement {
  const { model } = ctx;
  const o = ctx.selected() ?? model.objects[0] ?? null;
  if (!o) return el("section", {}, el("p", { class: "empty" }, "No object of this recording has a picture."));
  const { report } = o;
  const dims = report.dimensions.filter((d) => d > 0);
  const known = dims.length > 0 && report.element_bytes !== null;
  const single = dims.length === 0 && report.element_bytes !== null && (report.fields?.length ?? 0) > 0;
  const type = `${report.element_type ?? "element"}${dims.map((d) => `[${whole(d)}]`).join("")}`;
  const shape = known
    ? `${ctx.name(o)} is ${type}: ${whole(dims.reduce((a, b) => a * b, 1))} elements of ${report.element_bytes} bytes.`
    : single
    ? `${ctx.name(o)} is one ${report.element_type ?? "structure"} of ${whole(report.element_bytes ?? 0)} bytes.`
    : `The recording does not know the type of ${ctx.name(o)}: the profile is by page, and there are no slices.`;
  const profile = el("canvas", { role: "img", "aria-label": "Who touches which part of the object. Arrow keys read it out." });
  const tip = el("div", { class: "tip", hidden: true });
  const place = el("div", { class: "plot" }, profile, tip);
  const slice = el("canvas", { role: "img", "aria-label": "A slice of the array." });
  const slicePlace = el("div", { class: "plot slice" }, slice);
  // Kept while the page of a running program is made anew, and the same on both sides.
  const key = `slice ${report.id}`;
  const kept = (ctx.kept.get(key) ?? {}) as { what?: What; rowDim?: number; columnDim?: number; at?: number[] };
  ctx.kept.set(key, kept);
  const fits = kept.at?.length === dims.length && kept.at.every((a, d) => a < dims[d]);
  let what: What = kept.what ?? "used";
  let [rowDim, columnDim] = dims.length >= 2 ? [dims.length - 2, dims.length - 1] : [0, 0];
  if (fits) [rowDim, columnDim] = [kept.rowDim ?? rowDim, kept.columnDim ?? columnDim];
  const at = fits && kept.at ? kept.at : dims.map((d) => Math.floor(d / 2));
  const keep = (): void => {
    Object.assign(kept, { what, rowDim, columnDim, at });
  };
  const offset = report.address % model.summary.page_bytes;

  const bandOf = (element: number): Band | undefined => {
    const page = Math.floor((offset + element * (report.element_bytes ?? 1)) / model.summary.page_bytes);
    return o.profile[Math.floor(page / 2 ** o.profile_shift)];
  };

  const drawProfile = (): void => {
    const s = surface(profile, 190);
    if (!s) return;
    const { pen } = s;
    const t = theme();
    const box = { x: 60, y: 26, w: s.width - 76, h: 116 };
    // Touches a page, so that bands of any size compare.
    const size = 2 ** o.profile_shift;
    const pagesOf = (i: number): number => Math.max(1, Math.min(size, o.pages - i * size));
    const heights = o.profile.map((b, i) => b.total / pagesOf(i));
    const most = ctx.most("touches", heights.reduce((a, b) => Math.max(a, b), 1e-9));
    const y = valueAxis(pen, box, [0, most], `${report.remote.of} a page, by node (${basis(report.remote)})`, false, count);
    o.profile.forEach((band, i) => {
      const from = Math.floor(box.x + (box.w * i * size) / o.pages);
      const to = Math.ceil(box.x + (box.w * Math.min(o.pages, (i + 1) * size)) / o.pages);
      let sum = 0;
      // By node, so that neighbours stack alike.
      for (const [node, value] of [...band.users].sort((a, b) => a[0] - b[0])) {
        const next = sum + value / pagesOf(i);
        pen.fillStyle = nodeColour(node - 1);
        pen.fillRect(from, y(next), Math.max(1, to - from), y(sum) - y(next));
        sum = next;
      }
    });
    pen.fillStyle = t.faint;
    pen.textAlign = "center";
    const last = known ? `element 0 to ${whole(dims.reduce((a, b) => a * b, 1) - 1)}` : `page 0 to ${whole(o.pages - 1)}`;
    pen.fillText(last, box.x + box.w / 2, box.y + box.h + 16);
    pen.fillText("from the object's first byte to its last", box.x + box.w / 2, box.y + box.h + 32);
  };
  profile.addEventListener("pointermove", (event) => {
    const r = profile.getBoundingClientRect();
    const part = (event.clientX - r.left - 60) / (r.width - 76);
    tip.hidden = part < 0 || part >= 1;
    if (tip.hidden) return;
    const index = Math.floor((part * o.pages) / 2 ** o.profile_shift);
    tip.replaceChildren(...describe(ctx, o, index).map((line) => el("div", {}, line)));
    tip.style.left = `${Math.max(0, Math.min(event.clientX - r.left + 14, r.width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${event.clientY - r.top + 14}px`;
  });
  profile.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });

  const drawSlice = (): void => {
    keep();
    if (!known || dims.length < 2) return;
    const s = surface(slice, 380);
    if (!s) return;
    const { pen } = s;
    const t = theme();
    const box = { x: 60, y: 24, w: Math.min(s.width - 76, 700), h: 320 };
    const strides = dims.map((_, d) => dims.slice(d + 1).reduce((a, b) => a * b, 1));
    const fixed = at.reduce((sum, index, d) => (d === rowDim || d === columnDim ? sum : sum + index * strides[d]), 0);
    const [rows, columns] = [Math.min(dims[rowDim], box.h), Math.min(dims[columnDim], box.w)];
    for (let r = 0; r < rows; r++) {
      const row = Math.floor((r * dims[rowDim]) / rows) * strides[rowDim];
      let from = 0;
      let colour: string | null = null;
      for (let c = 0; c <= columns; c++) {
        const column = Math.floor((c * dims[columnDim]) / columns) * strides[columnDim];
        let next: string | null = null;
        if (c < columns) {
          next = shareColour(...told(bandOf(fixed + row + column), what));
        }
        if (next === colour) continue;
        if (colour !== null) {
          pen.fillStyle = colour;
          const left = Math.floor(box.x + (box.w * from) / columns);
          const top = Math.floor(box.y + (box.h * r) / rows);
          const right = Math.ceil(box.x + (box.w * c) / columns);
          pen.fillRect(left, top, right - left, Math.ceil(box.y + (box.h * (r + 1)) / rows) - top);
        }
        [from, colour] = [c, next];
      }
    }
    const integer = (n: number): string => (Number.isInteger(n) ? whole(n) : "");
    valueAxis(pen, box, [0, dims[rowDim]], `index of dimension ${rowDim + 1}`, true, integer);
    pen.fillStyle = t.faint;
    pen.textAlign = "left";
    pen.fillText("0", box.x, box.y + box.h + 14);
    pen.textAlign = "right";
    pen.fillText(whole(dims[columnDim] - 1), box.x + box.w, box.y + box.h + 14);
    pen.textAlign = "center";
    pen.fillText(`index of dimension ${columnDim + 1}`, box.x + box.w / 2, box.y + box.h + 14);
  };

  const fields = fieldsOf(ctx, o);
  const redraw = (): void => {
    drawProfile();
    drawSlice();
    fields?.draw();
  };
  byKeys(profile, () => 60, tip);
  queueMicrotask(redraw);

  /** The other side shows the same slice. */
  const both = (): void => {
    if (ctx.other) ctx.set({}, true);
  };
  const sliders = el("div", { class: "controls" });
  const build = (): void => {
    const choice = el(
      "fieldset",
      {},
      el("legend", {}, "Colour"),
      ...WHATS.map(([value, text]) => {
        const pick = (): void => {
          what = value;
          drawSlice();
          both();
        };
        const input = el("input", { type: "radio", name: `slice-${ctx.side}`, value, change: pick });
        input.checked = what === value;
        return el("label", {}, input, text);
      }),
    );
    sliders.replaceChildren(choice);
    if (dims.length <= 2) return;
    const turn = (d: number, other: number, set: (d: number) => void): void => {
      if (d !== other) set(d);
      build();
      drawSlice();
      both();
    };
    sliders.append(
      el("label", {}, "down ", pickDimension(rowDim, (d) => turn(d, columnDim, (n) => (rowDim = n)))),
      el("label", {}, "across ", pickDimension(columnDim, (d) => turn(d, rowDim, (n) => (columnDim = n)))),
    );
    dims.slice(0, MOST_DIMENSIONS).forEach((size, d) => {
      if (d === rowDim || d === columnDim) return;
      const value = el("output", {}, String(at[d]));
      const slide = (event: Event): void => {
        at[d] = Number((event.target as HTMLInputElement).value);
        value.textContent = String(at[d]);
        drawSlice();
      };
      const input = el("input", {
        type: "range",
        min: "0",
        max: String(size - 1),
        value: String(at[d]),
        "aria-label": `index of dimension ${d + 1}`,
        input: slide,
        change: both,
      });
      sliders.append(el("label", {}, `dimension ${d + 1}: `, input, value));
    });
  };
  const pickDimension = (chosen: number, pick: (d: number) => void): HTMLElement => {
    const select = el("select", { change: (event: Event) => pick(Number((event.target as HTMLSelectElement).value)) });
    dims.forEach((size, d) => {
      const option = el("option", { value: String(d) }, `dimension ${d + 1} (${whole(size)})`);
      option.selected = d === chosen;
      select.append(option);
    });
    return select;
  };
  if (known && dims.length >= 2) build();

  const coarse = o.profile_shift > 0 ? ` Each bar is ${2 ** o.profile_shift} pages.` : "";
  const section = el(
    "section",
    {},
    el("p", { class: "lead" }, shape),
    ctx.selected() ? null : el("p", { class: "hint" }, "Choose another object above."),
    nodeLegend(model, "Node:", shareLegend("of the touches or of the pages")),
    place,
    known && dims.length >= 2 ? el("h2", {}, "Slice") : null,
    known && dims.length >= 2 ? sliders : null,
    known && dims.length >= 2 ? slicePlace : null,
    fields?.part ?? null,
    sources(ctx, report),
    el("p", { class: "hint" }, `Accesses are known by page, so that elements of one page look alike.${coarse}`),
  );
  (section as HTMLElement & { redraw?: () => void }).redraw = redraw;
  return section;
}

/** The lines of the source that declare or allocate it, and those that touch it first. */
function sources(ctx: Context, report: ObjectReport): HTMLElement | null {
  const [touch] = report.first_touch;
  const parts = [
    ["Declared or allocated", excerpt(ctx, report.file, report.line)],
    ["Touched first", touch ? excerpt(ctx, touch.file, touch.line) : null],
  ] as const;
  const there = parts.filter(([, lines]) => lines !== null);
  if (there.length === 0) return null;
  return el(
    "div",
    { class: "columns" },
    ...there.map(([what, lines]) => el("div", {}, el("h2", {}, what), lines)),
  );
}
