// A page from the server asks how far it is: while the recording is read, and while the program
// runs.

import { count, el, percent, plural, time } from "./dom";
import { type Model, read } from "./model";

interface Pulse {
  processes: number;
  time_ns: number;
  intervals: number;
  iterations: number;
  last_iteration_ns: number | null;
  moved: number;
  refused: number;
  sightings: number;
  remote: number;
  own_ns: number;
  cpu_ns: number;
}

interface Progress {
  version: number;
  doing: string;
  done: number | null;
  pulse: Pulse | null;
  ended: boolean;
}

/** Milliseconds between questions: while something happens, and after that. */
const OFTEN = 250;
const SELDOM = 2000;

/** Keeps the page up to date. `version`: what it came with. */
export function follow(app: HTMLElement, base: string, version: number, show: (model: Model) => void): void {
  const line = el("p", { class: "live" });
  const state = el("p", { class: "live", role: "status" });
  const bar = el("progress", { max: "1000", "aria-label": "How much of it is done" });
  const pause = el("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const top = el("div", { class: "top" }, state, bar, line, pause);
  document.body.prepend(top);
  let paused = false;
  let shown = version;
  let news = 0;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
  });
  let pressed = false;
  document.addEventListener("pointerdown", () => (pressed = true));
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => (pressed = false));
  /** Whoever chooses, types or drags is not disturbed. */
  const busy = (): boolean =>
    paused || pressed || (shown > 0 && document.activeElement?.matches("select, input") === true && app.contains(document.activeElement));

  const say = (text: string): void => {
    if (state.textContent !== text) state.textContent = text;
  };
  const look = async (): Promise<number> => {
    const answer = await fetch(`${base}/progress`);
    if (!answer.ok) throw new Error(String(answer.status));
    const p = (await answer.json()) as Progress;
    if (p.version > shown && !busy()) {
      const model = await fetch(`${base}/model`);
      if (!model.ok) throw new Error(String(model.status));
      show(read(await model.text()));
      // What was shown may be newer than what was told: then it is shown twice.
      shown = p.version;
      news++;
      document.documentElement.dataset.news = String(news);
    }
    document.documentElement.dataset.version = String(shown);
    const done = p.doing === "" || (p.pulse !== null && shown > 0);
    bar.hidden = done;
    if (p.done === null) bar.removeAttribute("value");
    else bar.value = p.done;
    line.textContent = p.pulse ? sums(p.pulse) : "";
    pause.hidden = !p.pulse || p.ended;
    say(p.ended ? "The program has ended. This is all of it." : p.doing === "" ? "" : `${p.doing}…`);
    top.hidden = p.doing === "" && !p.pulse && !p.ended;
    return p.doing === "" ? SELDOM : OFTEN;
  };
  const loop = async (): Promise<void> => {
    let wait = OFTEN;
    try {
      wait = await look();
    } catch {
      // It may come back: a tunnel that broke, a machine that slept.
      top.hidden = false;
      bar.hidden = true;
      say("homenode does not answer: the page shows what it was told last. It goes on when homenode answers.");
      wait = 1000;
    }
    window.setTimeout(() => void loop(), wait);
  };
  void loop();
}

function sums(p: Pulse): string {
  const parts = [
    time(p.time_ns),
    p.iterations > 0
      ? `${plural(p.iterations, "iteration")}${p.last_iteration_ns === null ? "" : `, the last one ${time(p.last_iteration_ns)}`}`
      : plural(p.intervals, "interval"),
    `${count(p.moved)} pages moved${p.refused > 0 ? `, ${count(p.refused)} refused` : ""}`,
    p.sightings > 0 ? `${percent((100 * p.remote) / p.sightings)} of ${count(p.sightings)} sightings remote` : "nobody was seen yet",
    p.cpu_ns > 0 ? `homenode itself ${percent((100 * p.own_ns) / p.cpu_ns)} of CPU time` : "",
  ];
  return parts.filter(Boolean).join(" · ");
}
