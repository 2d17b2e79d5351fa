// An array of structures by the fields of an element: where each lies, and what is known of its
// accesses.

import { cut, surface } from "../canvas";
import { blend, nodeColour, nothingColour, remoteColour, theme } from "../colours";
import type { Context } from "../context";
import { basis, el, percent, plural, table, whole } from "../dom";
import type { Field, ObjectModel } from "../model";

/** Accesses of the pages that hold one field alone. */
interface Sum {
  pages: number;
  total: number;
  remote: number;
}

/** The fields of an object's elements with the accesses of their pages; `shared`: of pages that
 * hold several fields, or padding. */
interface ByField {
  fields: Field[];
  sums: Sum[];
  shared: Sum;
}

const none = (): Sum => ({ pages: 0, total: 0, remote: 0 });

/** Accesses by field. Only a page that lies in one field of one element tells of that field. */
function byField(o: ObjectModel, fields: Field[], size: number, page: number): ByField {
  const sums = fields.map(none);
  const shared = none();
  const start = o.report.address % page;
  const each = 2 ** o.profile_shift;
  o.profile.forEach((band, i) => {
    const [first, end] = [i * each, Math.min(o.pages, (i + 1) * each)];
    const from = Math.max(0, first * page - start);
    const to = Math.min(o.report.bytes, end * page - start);
    const element = Math.floor(from / size) * size;
    const holds = (f: Field): boolean => f.offset <= from - element && to - element <= f.offset + f.bytes;
    const found = fields.flatMap((f, n) => (holds(f) ? [n] : []));
    const sum = found.length === 1 ? sums[found[0]] : shared;
    sum.pages += end - first;
    sum.total += band.total;
    sum.remote += band.remote;
  });
  return { fields, sums, shared };
}

/** Bytes of an element in no field. Fields of a union lie over one another. */
function padding(fields: Field[], size: number): number {
  let [at, free] = [0, 0];
  for (const f of [...fields].sort((a, b) => a.offset - b.offset)) {
    free += Math.max(0, f.offset - at);
    at = Math.max(at, f.offset + f.bytes);
  }
  return free + Math.max(0, size - at);
}

/** Why pages tell fields apart or do not. */
function words(ctx: Context, o: ObjectModel, found: ByField, size: number): string {
  const page = ctx.model.summary.page_bytes;
  const told = found.sums.some((s) => s.pages > 0);
  const { of } = o.report.remote;
  if (told) {
    const rest = found.shared.total > 0 ? ` ${whole(found.shared.total)} ${of} went to pages that hold several fields.` : "";
    return `Accesses are known by page. A field has the ${of} of the pages that hold nothing else.${rest}`;
  }
  const held = page / size;
  const many = held >= 2 ? `a page of ${whole(page)} bytes holds ${whole(Math.floor(held))} elements` : "no page holds one field alone";
  return `Accesses are known by page, and ${many}. So the recording does not say which field is used.`;
}

/** The part of the view on an array of structures; nothing of other arrays. */
export function fieldsOf(ctx: Context, o: ObjectModel): { part: HTMLElement; draw: () => void } | null {
  const { fields, element_bytes: size, remote, name } = o.report;
  if (!fields || fields.length === 0 || !size) return null;
  const found = byField(o, fields, size, ctx.model.summary.page_bytes);
  const told = found.sums.some((s) => s.pages > 0);
  const canvas = el("canvas", { role: "img", "aria-label": `An element of ${name || "the object"}, to scale. The table has its fields.` });
  const draw = (): void => {
    const s = surface(canvas, 64);
    if (!s) return;
    const { pen } = s;
    const t = theme();
    const x = (byte: number): number => 8 + ((s.width - 16) * byte) / size;
    fields.forEach((f, i) => {
      const [left, right] = [x(f.offset), x(f.offset + f.bytes)];
      const sum = found.sums[i];
      const plainColour = told ? nothingColour() : blend(nodeColour(0), t.ground, i % 2 ? 0.12 : 0.28);
      const share = sum.total > 0 ? (100 * sum.remote) / sum.total : null;
      pen.fillStyle = share === null ? plainColour : remoteColour(share);
      pen.fillRect(left, 8, Math.max(1, right - left), 28);
      pen.strokeStyle = t.faint;
      pen.lineWidth = 1;
      pen.strokeRect(left, 8, Math.max(1, right - left), 28);
      if (right - left < 24) return;
      pen.fillStyle = share !== null && share > 50 ? t.ground : t.ink;
      pen.textAlign = "center";
      pen.fillText(cut(pen, f.name, right - left - 6), (left + right) / 2, 22);
    });
    pen.fillStyle = t.faint;
    pen.textAlign = "left";
    pen.fillText("byte 0", 8, 50);
    pen.textAlign = "right";
    pen.fillText(whole(size), s.width - 8, 50);
  };
  const heads = ["Field", "Type", "From byte", "Bytes", "Share of an element"];
  const extra = told ? ["Pages of its own", `${remote.of} (${basis(remote)})`, "remote"] : [];
  const rows = fields.map((f, i) => {
    const { pages, total, remote: away } = found.sums[i];
    const own = pages > 0 ? [whole(pages), whole(total), percent(total > 0 ? (100 * away) / total : null)] : ["–", "–", "–"];
    const about = [f.name, f.field_type, whole(f.offset), whole(f.bytes), percent((100 * f.bytes) / size)];
    return told ? [...about, ...own] : about;
  });
  const free = padding(fields, size);
  const part = el(
    "div",
    {},
    el("h2", {}, "Fields of an element"),
    el("p", {}, words(ctx, o, found, size)),
    el("div", { class: "plot" }, canvas),
    told
      ? el("p", { class: "hint" }, "Colour: remote share of a field's own pages, pale to dark. Light grey: no pages of its own, or no accesses.")
      : null,
    table(`Fields of an element of ${name || "the object"}`, [...heads, ...extra], rows, { numbers: [2, 3, 4, 5, 6, 7] }),
    free > 0 ? el("p", { class: "hint" }, `${plural(free, "byte")} of each element ${free === 1 ? "is" : "are"} padding.`) : null,
  );
  return { part, draw };
}
