// What every view is handed.

import { type Model, type ObjectModel, type Picture, pictures } from "./model";
import type { State } from "./state";

export class Context {
  readonly model: Model;
  /** Where finer pictures come from; null in a file. */
  readonly finer: string | null;
  state: State;
  private readonly changed: (replace: boolean) => void;
  private readonly drawn = new Map<ObjectModel, Picture[]>();

  constructor(model: Model, finer: string | null, state: State, changed: (replace: boolean) => void) {
    this.model = model;
    this.finer = finer;
    this.state = state;
    this.changed = changed;
  }

  /** Changes the selection. `replace`: the step back in the browser's history skips it. */
  set(change: Partial<State>, replace = false): void {
    const other = "object" in change && change.object !== this.state.object;
    const fresh = other ? { pages: null, seenPages: null } : {};
    this.state = { ...this.state, ...fresh, ...change };
    this.changed(replace);
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
}
