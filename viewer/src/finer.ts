// Finer pictures from the server, where there is one.

import type { Context } from "./context";
import { finer, type ObjectModel, Picture } from "./model";
import type { Range } from "./state";

const known = new Map<string, Picture | null>();
let waiting: number | undefined;

/** The recording has changed: what the server drew of it is out of date. */
export function forget(): void {
  known.clear();
}

/** A picture of the window that is finer than any the page came with, once the server has drawn
 * it. */
export function finerPicture(
  ctx: Context,
  object: ObjectModel,
  time: Range,
  pages: Range,
  drawn: () => void,
): Picture | null {
  if (!ctx.finer || ctx.selected() !== object) return null;
  const finest = ctx.pictures(object)[0];
  const { level } = finest;
  if (level.page_shift === 0 && ctx.model.time.shift === 0) return null;
  const columns: Range = [finest.columnOf(time[0]), finest.columnOf(time[1]) + 1];
  const few = columns[1] - columns[0] < 150 && level.time_shift > 0;
  const small = (pages[1] - pages[0]) / 2 ** level.page_shift < 100 && level.page_shift > 0;
  if (!few && !small) return null;
  // Windows in steps, so that a small pan asks for nothing new.
  const [from, to] = outward(pages, object.pages);
  const [first, end] = outward(columns, level.columns);
  const each = 2 ** level.time_shift;
  const query =
    `side=${ctx.side}&object=${object.report.object}&page=${from}&pages=${to - from}` +
    `&first=${first * each}&intervals=${(end - first) * each}`;
  const found = known.get(query);
  if (found !== undefined) return found;
  window.clearTimeout(waiting);
  waiting = window.setTimeout(() => void ask(ctx.finer ?? "", query, drawn), 150);
  return null;
}

/** The smallest window of a quarter of a power of two around a range. */
function outward(range: Range, limit: number): Range {
  const step = Math.max(1, 2 ** Math.floor(Math.log2(Math.max(1, range[1] - range[0]) / 2)));
  return [
    Math.max(0, Math.floor(range[0] / step) * step),
    Math.min(limit, Math.max(1, Math.ceil(range[1] / step) * step)),
  ];
}

async function ask(base: string, query: string, drawn: () => void): Promise<void> {
  known.set(query, null);
  try {
    const response = await fetch(`${base}/finer?${query}`);
    if (!response.ok) return;
    const answer = finer(await response.arrayBuffer());
    const level = answer.levels[0];
    if (level) known.set(query, new Picture(level, [...answer.begin_ns, answer.end_ns]));
    if (known.size > 64) known.delete(known.keys().next().value ?? "");
    drawn();
  } catch {
    // The server has ended: what the page came with stays.
    known.delete(query);
  }
}
