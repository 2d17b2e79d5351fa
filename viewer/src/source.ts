// Lines of the source, where homenode found the file.

import type { Context } from "./context";
import { baseName, el } from "./dom";

/** The lines around a place; nothing where the file was not found. */
export function excerpt(ctx: Context, file: string | null, line: number | null): HTMLElement | null {
  const found = ctx.model.sources.find((s) => s.file === file && s.line === line);
  if (!found) return null;
  const rows = found.lines.map((text, i) => {
    const number = found.first + i;
    const row = el("span", { class: number === line ? "line marked" : "line" });
    row.append(el("span", { class: "number" }, `${number === line ? "▸" : " "}${String(number).padStart(5)} `), `${text}\n`);
    return row;
  });
  const name = `${baseName(found.file)}:${found.line}`;
  return el(
    "figure",
    { class: "source" },
    el("figcaption", {}, name),
    el("pre", { tabindex: "0", "aria-label": `Source around ${name}` }, ...rows),
  );
}
