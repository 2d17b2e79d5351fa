// The way of the selected page: first touch, homes, moves and their causes.

import { nodeName } from "./colours";
import type { Context } from "./context";
import { baseName, el, moment, percent, plural, table, time, whole } from "./dom";
import { CAUSES, type ObjectModel, OUTCOMES, type Touch } from "./model";
import type { Range } from "./state";

interface Answer {
  touch: Touch | null;
  stays: [number, number, number][];
  moves: [number, number, number, number, number, number][];
  more_moves: number;
}

type Event_ = [number, string, string];

function ofTouch(ctx: Context, touch: Touch, exact: boolean): Event_ {
  const where = touch.file === null ? "" : ` ${baseName(touch.file)}${touch.line === null ? "" : `:${touch.line}`}`;
  const code = touch.function === null && !where ? "" : ` in ${touch.function ?? ""}${where}`;
  const thread = touch.thread === null ? "" : ` by thread ${touch.thread}`;
  const what = `first touched${thread} on ${nodeName(ctx.model, touch.node - 1)}${code}`;
  // The time is that of the run's first page.
  const why = !exact && touch.pages > 1 && touch.time_ns !== null ? "time of the first page of its run" : "";
  return [touch.time_ns ?? -1, what, why];
}

function ofMove(ctx: Context, m: number[]): Event_ {
  const [at, from, to, cause, outcome, cost] = m;
  const way = `from ${nodeName(ctx.model, from)} to ${nodeName(ctx.model, to)}`;
  const what = outcome === 2 ? `move ${way} refused` : `moved ${way}${outcome === 1 ? " (back again: ping-pong)" : ""}`;
  const price = cost === 0 ? "" : `, cost ${time(cost - 1)} with its run`;
  return [at, what, `${CAUSES[cause] ?? ""}${OUTCOMES[outcome] === "refused" ? "" : price}`];
}

/** The history of the first selected page. */
export function history(ctx: Context): HTMLElement | null {
  const object = ctx.selected();
  const { pages } = ctx.state;
  if (!object || !pages) return null;
  const page = pages[0];
  const body = el("div", {}, el("p", { class: "hint" }, "reading…"));
  const card = el(
    "section",
    { class: "card", "aria-label": "History of a page" },
    el("h2", {}, `Page ${whole(page)} of ${ctx.name(object)}`),
    pages[1] - pages[0] > 1
      ? el("p", { class: "hint" }, `The first of ${plural(pages[1] - pages[0], "selected page")}.`)
      : null,
    body,
  );
  const fill = (events: Event_[], notes: string[]): void => {
    events.sort((a, b) => a[0] - b[0]);
    const span = ctx.model.time.end_ns / 100;
    const rows = events.map(([at, what, why]) => [at < 0 ? "not known" : moment(at, span), what, why]);
    body.replaceChildren(
      rows.length > 0
        ? table("What happened to it", ["When", "What", "Why"], rows)
        : el("p", { class: "empty" }, "Nothing is told of this page."),
      el("p", {}, homes(ctx, object, page)),
      ...notes.map((n) => el("p", { class: "hint" }, n)),
    );
  };
  if (ctx.finer) void ask(ctx, object, page, fill);
  else fromFile(ctx, object, page, fill);
  return card;
}

/** Why pages live where they do at a time: their last move until then, else their first touch. */
export function causes(ctx: Context, object: ObjectModel, [first, end]: Range, until: number, span: number): string[] {
  const number = (object.report.object ?? -1) + 1;
  let last: number[] | null = null;
  for (const m of ctx.model.moves.told) {
    const [at, , of, page, pages, , , , outcome] = m;
    const holds = of === number && page < end && first < page + pages;
    if (holds && at < until && OUTCOMES[outcome] !== "refused" && (!last || at >= last[0])) last = m;
  }
  if (last) {
    const [at, , , , , from, to, cause] = last;
    const way = `from ${nodeName(ctx.model, from)} to ${nodeName(ctx.model, to)} by ${CAUSES[cause] ?? "an unknown cause"}`;
    return [end - first === 1 ? `moved ${way} at ${moment(at, span)}` : `last move of some of them: ${way} at ${moment(at, span)}`];
  }
  // A move that the page was not told may have come since.
  if (ctx.model.moves.rows > ctx.model.moves.told.length) return [];
  const touch = object.touches.find((t) => t.page <= first && end <= t.page + t.pages);
  return touch ? [`not moved since ${end - first === 1 ? "it was" : "they were"} ${ofTouch(ctx, touch, true)[1]}`] : [];
}

/** What the picture says of its band. */
function homes(ctx: Context, object: ObjectModel, page: number): string {
  const size = 2 ** object.profile_shift;
  const band = object.profile[Math.floor(page / size)];
  if (!band) return "";
  const of = size === 1 ? "It" : `Its ${size} pages from ${whole(Math.floor(page / size) * size)} on`;
  const verb = size === 1 ? "was" : "were";
  if (band.total === 0) return `${of} ${verb} not seen to be touched in the part that counts.`;
  const by = band.users.map(([n, v]) => `${nodeName(ctx.model, n - 1)} ${percent((100 * v) / band.total)}`);
  return `${of} ${verb} touched ${whole(band.total)} times as ${object.report.remote.of}: ${by.join(", ")}.`
    .replace("times as sightings", "times by sight (presence, not counts)")
    .replace("times as accesses", "times");
}

function fromFile(ctx: Context, object: ObjectModel, page: number, fill: (e: Event_[], n: string[]) => void): void {
  const events: Event_[] = [];
  const holds = (first: number, pages: number): boolean => first <= page && page < first + pages;
  const touch = object.touches.find((t) => holds(t.page, t.pages));
  if (touch) events.push(ofTouch(ctx, touch, false));
  for (const m of ctx.model.moves.told) {
    const [at, , number, first, pages, from, to, cause, outcome, , cost] = m;
    if (number === (object.report.object ?? -1) + 1 && holds(first, pages)) {
      events.push(ofMove(ctx, [at, from, to, cause, outcome, cost]));
    }
  }
  const notes: string[] = [];
  const left = ctx.model.moves.rows - ctx.model.moves.told.length;
  if (left > 0) notes.push(`This file tells ${whole(ctx.model.moves.told.length)} moves one by one; ${whole(left)} more may hold this page.`);
  if (!touch && object.touches_left_out > 0) notes.push("This file has no room for this page's first touch.");
  fill(events, notes);
}

async function ask(ctx: Context, object: ObjectModel, page: number, fill: (e: Event_[], n: string[]) => void): Promise<void> {
  try {
    const response = await fetch(`${ctx.finer}/history?side=${ctx.side}&object=${object.report.object}&page=${page}`);
    if (!response.ok) throw new Error(String(response.status));
    const answer = (await response.json()) as Answer;
    const events = answer.moves.map((m) => ofMove(ctx, m));
    if (answer.touch) events.push(ofTouch(ctx, answer.touch, false));
    const notes = answer.more_moves > 0 ? [`${whole(answer.more_moves)} more moves are not listed.`] : [];
    fill(events, notes);
  } catch {
    fromFile(ctx, object, page, (events, notes) =>
      fill(events, [...notes, "The server does not answer: this is what the page came with."]),
    );
  }
}
