// What every view is handed.

import { type Model, type ObjectModel, type Picture, pictures } from "./model";
import type { Range, State } from "./state";

/** What both sides of a page share: one scale for what is compared. */
class Scales {
  private readonly values = new Map<string, number[]>();
  redraw: (() => void) | null = null;
  private waiting = false;

  /** The largest of what both sides say. The other side is drawn anew when that changes. */
  most(name: string, side: number, mine: number): number {
    const known = this.values.get(name) ?? [0, 0];
    const before = Math.max(...known);
    known[side] = mine;
    this.values.set(name, known);
    const now = Math.max(...known);
    if (now !== before && this.redraw && !this.waiting) {
      this.waiting = true;
      queueMicrotask(() => {
        this.waiting = false;
        this.redraw?.();
      });
    }
    return now;
  }
}

export class Context {
  readonly model: Model;
  /** Where finer pictures come from; null in a file. */
  readonly finer: string | null;
  /** 0; 1 for the recording beside it. */
  readonly side: number;
  state: State;
  /** The recording beside this one. */
  other: Context | null = null;
  scales = new Scales();
  /** What a view remembers while it is made anew. */
  readonly kept: Map<string, unknown>;
  private readonly changed: (change: Partial<State>, replace: boolean) => void;
  private readonly drawn = new Map<ObjectModel, Picture[]>();

  constructor(
    model: Model,
    side: number,
    finer: string | null,
    state: State,
    kept: Map<string, unknown>,
    changed: (change: Partial<State>, replace: boolean) => void,
  ) {
    this.model = model;
    this.side = side;
    this.finer = finer;
    this.state = state;
    this.kept = kept;
    this.changed = changed;
  }

  /** Changes the selection. `replace`: the step back in the browser's history skips it. */
  set(change: Partial<State>, replace = false): void {
    const other = "object" in change && change.object !== this.state.object;
    const fresh = other ? { pages: null, seenPages: null } : {};
    this.changed({ ...fresh, ...change }, replace);
  }

  selected(): ObjectModel | null {
    const { object } = this.state;
    return object === null ? null : (this.model.objects.find((o) => o.report.object === object) ?? null);
  }

  pictures(object: ObjectModel): Picture[] {
    let all = this.drawn.get(object);
    if (!all) {
      all = pictures(this.model, object);
      this.drawn.set(object, all);
    }
    return all;
  }

  /** What people call an object, told apart from others of that name. */
  name(object: { report: { object: number | null; name: string } } | null): string {
    if (!object) return "memory that nobody knows";
    const { name, object: number } = object.report;
    const same = this.model.objects.filter((o) => o.report.name === name).length > 1;
    return `${name || "(no name)"}${same ? ` #${number}` : ""}`;
  }

  byNumber(number: number): ObjectModel | null {
    return this.model.objects.find((o) => o.report.object === number) ?? null;
  }

  /** From the first to the last moment of both recordings. */
  full(): Range {
    const of = (m: Model): Range => [m.time.begin_ns[0] ?? 0, m.time.end_ns];
    const mine = of(this.model);
    const [from, to] = this.other ? of(this.other.model) : mine;
    const begin = Math.min(mine[0], from);
    return [begin, Math.max(begin + 1, mine[1], to)];
  }

  /** The top of an axis that both sides have. */
  most(name: string, mine: number): number {
    return this.other ? this.scales.most(name, this.side, mine) : mine;
  }

  /** The number of the same object on the other side. */
  across(number: number | null): number | null {
    const here = this.side === 0 ? 0 : 1;
    const pairs = (this.side === 0 ? this : this.other)?.model.pairs ?? [];
    return pairs.find((p) => p[here] === number)?.[1 - here] ?? null;
  }
}
