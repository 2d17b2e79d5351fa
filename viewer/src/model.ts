// What the page is told: crates/view/src/model.rs.
//
// Nodes are told by index plus one into `nodes`: 0 is none.

export interface Share {
  part: number;
  whole: number;
  percent: number | null;
  of: string;
  basis: string | null;
  one_in: number | null;
}

export interface NodeAmount {
  node: number;
  seen: number;
  count: number | null;
}

export interface Times {
  count: number;
  median_ns: number;
}

export interface Moved {
  pages: number;
  ping_pongs: number;
  refused: number;
  first_ns: number | null;
  last_ns: number | null;
  cost_ns: number | null;
  routes: { from_node: number; to_node: number; pages: number }[];
  reasons: { cause: string; policy: string | null; pages: number }[];
  iterations_before: Times | null;
  iterations_during: Times | null;
  iterations_after: Times | null;
  remote_before: Share | null;
  remote_after: Share | null;
  guard: {
    moved: { samples: number; remote: number };
    held_back: { samples: number; remote: number };
  } | null;
}

/** A field of an element that is a structure. */
export interface Field {
  name: string;
  field_type: string;
  offset: number;
  bytes: number;
}

export interface ObjectReport {
  object: number | null;
  id: string;
  process: number | null;
  name: string;
  kind: string;
  element_type: string | null;
  element_bytes: number | null;
  dimensions: number[];
  fields?: Field[];
  file: string | null;
  line: number | null;
  function: string | null;
  bytes: number;
  address: number;
  allocations: number;
  birth_ns: number | null;
  death_ns: number | null;
  accesses: { seen: number; count: number | null; basis: string | null; one_in: number | null };
  remote: Share;
  used_by: NodeAmount[];
  accessed_on: NodeAmount[];
  avoidable_ps: number | null;
  memory_time_ps: number | null;
  first_touch: {
    node: number;
    thread: number | null;
    file: string | null;
    line: number | null;
    function: string | null;
    pages: number;
  }[];
  residency: { node: number; pages: number }[];
  moves: Moved | null;
}

/** Numbers of cells, packed: in base64 with the page, in bytes from the server. */
export type Plane = string | Uint8Array;

/** The planes of a level, in the order in which the server sends them. */
export const PLANES = ["home", "home_percent", "who", "who_percent", "who_nodes", "remote", "seen"] as const;

export interface Level {
  first_page: number;
  pages: number;
  page_shift: number;
  first_interval: number;
  intervals: number;
  time_shift: number;
  bands: number;
  columns: number;
  home: Plane;
  home_percent: Plane;
  who: Plane;
  who_percent: Plane;
  who_nodes: Plane;
  remote: Plane;
  seen: Plane;
  moves: [number, number, number, number][];
}

export interface Band {
  first: [number, number];
  last: [number, number];
  total: number;
  remote: number;
  users: [number, number][];
}

export interface Touch {
  page: number;
  pages: number;
  thread: number | null;
  node: number;
  time_ns: number | null;
  file: string | null;
  line: number | null;
  function: string | null;
}

export interface At {
  file: string | null;
  line: number | null;
  short: string | null;
}

export interface Finding {
  names: string;
  fault: string;
  at: string | null;
  touched: string;
  used: string;
  variables: { id: string; name: string; place: At }[];
  fixes: { text: string; at: At | null; expected: string | null }[];
}

export interface Findings {
  answer: string[];
  warnings: string[];
  findings: Finding[];
  together: string | null;
}

export interface Excerpt {
  file: string;
  line: number;
  first: number;
  lines: string[];
}

export interface ObjectModel {
  /** Place in the order of the recording plus one: set when the model is read. */
  place: number;
  report: ObjectReport;
  pages: number;
  levels: Level[];
  profile: Band[];
  profile_shift: number;
  touches: Touch[];
  touches_left_out: number;
}

export interface TimeModel {
  intervals: number;
  shift: number;
  begin_ns: number[];
  end_ns: number;
  timed: number[];
  iteration: (number | null)[];
}

export interface Region {
  region: number;
  kind: string;
  function: string | null;
  file: string | null;
  line: number | null;
  runs: number;
  time_ns: number;
}

export interface Model {
  schema: string;
  homenode: string;
  basis: string;
  label: string;
  answer: string[];
  findings: Findings | null;
  sources: Excerpt[];
  against: Model | null;
  pairs: [number, number][];
  changes: string[];
  summary: {
    whole: boolean;
    missing: string[];
    kind: string;
    command: string[];
    machine: string;
    pretended: boolean;
    policy: string | null;
    source: string;
    clock: string;
    page_bytes: number;
    threads: number;
    scope: string;
    accesses: { seen: number; count: number | null; basis: string | null; one_in: number | null };
    remote: Share;
    own_cost: { own_ns: number; cpu_ns: number } | null;
    verdict: string | null;
    coarsened: string[];
    notes: string[];
    iterations: { count: number; source: string; median_ns: number } | null;
  };
  moved: Moved | null;
  nodes: number[];
  links: {
    from: number;
    to: number;
    distance: number | null;
    latency_ps: number | null;
    mb_per_s: number | null;
  }[];
  time: TimeModel;
  regions: Region[];
  rounds: {
    count: number;
    each: number;
    groups: [number, number, number, number, number, number][];
    own_cost: [number, number, number][];
  };
  traffic: {
    time_shift: number;
    by_object: [number, number, number, number, number, number][];
    by_region: [number, number, number, number, number, number][];
    left_out: [number, number];
  };
  moves: {
    rows: number;
    sums: number[][];
    pages_not_by_object: number;
    told: number[][];
    policies: string[];
  };
  objects: ObjectModel[];
  others: ObjectReport[];
  objects_in_all: number;
  objects_without_picture: number;
  levels_left_out: number;
  stopped: boolean;
  /** A first look: one row of accesses in this number was read. */
  one_in: number | null;
}

/** Words for numbers in `moves`: crates/view/src/tiles/moves.rs. */
export const CAUSES = ["next touch", "policy", "plan", "guard's undo", "kernel", "program"];
export const OUTCOMES = ["moved", "ping-pong", "refused"];

/** Numbers of cells: runs of equal values, seven bits a byte, the lowest first. */
export function unpack(plane: Plane, cells: number): Uint32Array {
  const bytes = typeof plane === "string" ? Uint8Array.from(atob(plane), (c) => c.charCodeAt(0)) : plane;
  const out = new Uint32Array(cells);
  let at = 0;
  let i = 0;
  const next = (): number => {
    let value = 0;
    let shift = 0;
    for (;;) {
      const byte = bytes[i++];
      value += (byte & 0x7f) * 2 ** shift;
      shift += 7;
      if (!(byte & 0x80) || i >= bytes.length) return value;
    }
  };
  while (i < bytes.length && at < cells) {
    const run = next();
    out.fill(next(), at, Math.min(cells, at + run));
    at += run;
  }
  return out;
}

export interface Finer {
  levels: Level[];
  begin_ns: number[];
  end_ns: number;
}

/** A finer picture as the server sends it: the length of a JSON text (four bytes, the lowest
 * first), the text, and the planes. In the text, a plane is the number of its bytes. */
export function finer(buffer: ArrayBuffer): Finer {
  const bytes = new Uint8Array(buffer);
  let at = 4 + new DataView(buffer).getUint32(0, true);
  const answer = JSON.parse(new TextDecoder().decode(bytes.subarray(4, at))) as Finer;
  for (const level of answer.levels) {
    for (const name of PLANES) {
      const length = Number(level[name]);
      level[name] = bytes.subarray(at, at + length);
      at += length;
    }
  }
  return answer;
}

/** A level whose planes are unpacked when they are first needed. */
export class Picture {
  readonly level: Level;
  /** When each column begins; one more for the end of the last. */
  readonly times: number[];
  private planes = new Map<string, Uint32Array>();
  private moveIndex: Map<number, [number, number]> | null = null;

  constructor(level: Level, times: number[]) {
    this.level = level;
    this.times = times;
  }

  plane(name: (typeof PLANES)[number]): Uint32Array {
    let plane = this.planes.get(name);
    if (!plane) {
      plane = unpack(this.level[name], this.level.bands * this.level.columns);
      this.planes.set(name, plane);
    }
    return plane;
  }

  /** Pages that moved in a cell, and those that moved back. */
  moves(band: number, column: number): [number, number] {
    if (!this.moveIndex) {
      this.moveIndex = new Map();
      for (const [b, c, moved, back] of this.level.moves) {
        this.moveIndex.set(b * this.level.columns + c, [moved, back]);
      }
    }
    return this.moveIndex.get(band * this.level.columns + column) ?? [0, 0];
  }

  bandOf(page: number): number {
    const band = Math.floor((page - this.level.first_page) / 2 ** this.level.page_shift);
    return Math.max(0, Math.min(this.level.bands - 1, band));
  }

  /** First page of a band, and the one behind its last. */
  pagesOf(band: number): [number, number] {
    const size = 2 ** this.level.page_shift;
    const first = this.level.first_page + band * size;
    return [first, Math.min(first + size, this.level.first_page + this.level.pages)];
  }

  columnOf(time: number): number {
    let low = 0;
    let high = this.level.columns;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle;
      else high = middle;
    }
    return low;
  }
}

/** A model from its text. Objects of the recording beside it stand in the order of the first
 * one's. */
export function read(text: string): Model {
  const model = JSON.parse(text) as Model;
  for (const m of [model, model.against]) m?.objects.forEach((o, i) => (o.place = i + 1));
  const of = new Map(model.pairs.map(([mine, other]) => [other, model.objects.findIndex((o) => o.report.object === mine)]));
  const order = (o: ObjectModel): number => of.get(o.report.object ?? -1) ?? model.objects.length + o.place;
  model.against?.objects.sort((a, b) => order(a) - order(b));
  return model;
}

/** The pictures of an object that came with the page, finest first. */
export function pictures(model: Model, object: ObjectModel): Picture[] {
  const base = model.time;
  return object.levels.map((level) => {
    const step = 2 ** (level.time_shift - base.shift);
    const times: number[] = [];
    for (let c = 0; c < level.columns; c++) times.push(base.begin_ns[Math.floor(c * step)] ?? base.end_ns);
    times.push(base.end_ns);
    return new Picture(level, times);
  });
}
