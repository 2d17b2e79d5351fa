// A canvas in the size of its place, and axes on it.

import { scaleLinear } from "d3-scale";
import { theme } from "./colours";
import { timeUnit } from "./dom";

export interface Surface {
  canvas: HTMLCanvasElement;
  pen: CanvasRenderingContext2D;
  width: number;
  height: number;
}

export const FONT = "12px system-ui, sans-serif";

/** Fits the canvas to its place, in the screen's own pixels. */
export function surface(canvas: HTMLCanvasElement, height: number): Surface | null {
  const pen = canvas.getContext("2d");
  const width = Math.max(200, canvas.parentElement?.clientWidth ?? 600);
  if (!pen) return null;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  return { canvas, pen, width, height };
}

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** An axis of time under a box. */
export function timeAxis(pen: CanvasRenderingContext2D, box: Box, range: [number, number]): void {
  const t = theme();
  const [size, unit] = timeUnit(range[1]);
  const scale = scaleLinear().domain([range[0] / size, range[1] / size]).range([box.x, box.x + box.w]);
  const ticks = scale.ticks(Math.max(2, Math.floor(box.w / 90)));
  const text = scale.tickFormat(Math.max(2, Math.floor(box.w / 90)));
  pen.fillStyle = t.faint;
  pen.strokeStyle = t.faint;
  pen.lineWidth = 1;
  pen.textAlign = "center";
  const bottom = box.y + box.h;
  for (const tick of ticks) {
    const x = Math.round(scale(tick)) + 0.5;
    line(pen, x, bottom, x, bottom + 5);
    pen.fillText(text(tick).replace(/,/g, "\u202f"), Math.min(x, box.x + box.w - 12), bottom + 14);
  }
  line(pen, box.x, bottom + 0.5, box.x + box.w, bottom + 0.5);
  pen.fillText(`time since the program's start, ${unit}`, box.x + box.w / 2, bottom + 30);
}

/** An axis at the left of a box; the values grow upwards unless `down`. */
export function valueAxis(
  pen: CanvasRenderingContext2D,
  box: Box,
  range: [number, number],
  label: string,
  down = false,
  text?: (n: number) => string,
): (value: number) => number {
  const t = theme();
  const scale = scaleLinear()
    .domain(range)
    .range(down ? [box.y, box.y + box.h] : [box.y + box.h, box.y]);
  const count = Math.max(2, Math.floor(box.h / 40));
  const plain = scale.tickFormat(count);
  const form = text ?? ((n: number) => plain(n).replace(/,/g, "\u202f"));
  pen.fillStyle = t.faint;
  pen.strokeStyle = t.faint;
  pen.lineWidth = 1;
  pen.textAlign = "right";
  for (const tick of scale.ticks(count)) {
    const y = Math.round(scale(tick)) + 0.5;
    line(pen, box.x - 5, y, box.x, y);
    pen.fillText(form(tick), box.x - 8, y);
  }
  line(pen, box.x - 0.5, box.y, box.x - 0.5, box.y + box.h);
  pen.textAlign = "left";
  pen.fillText(label, 2, Math.max(8, box.y - 10));
  return (value) => scale(value);
}

export function line(pen: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

/** The keyboard as a mouse: arrows move over the picture, Enter clicks, Escape leaves. */
export function byKeys(canvas: HTMLCanvasElement, left: () => number, tip: HTMLElement): void {
  canvas.tabIndex = 0;
  tip.setAttribute("role", "status");
  let at: [number, number] | null = null;
  const point = (type: string, r: DOMRect): void => {
    const where = { clientX: r.left + (at?.[0] ?? 0), clientY: r.top + (at?.[1] ?? 0), bubbles: true };
    canvas.dispatchEvent(type === "click" ? new MouseEvent(type, where) : new PointerEvent(type, where));
  };
  canvas.addEventListener("keydown", (event) => {
    const r = canvas.getBoundingClientRect();
    const arrows: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    };
    const arrow = arrows[event.key];
    if (arrow) {
      const step = event.shiftKey ? 10 : 1;
      const from = at ?? [left() + 1, Math.min(40, r.height / 2)];
      const x = at ? from[0] + (arrow[0] * step * (r.width - left())) / 100 : from[0];
      const y = at ? from[1] + arrow[1] * 16 * step : from[1];
      at = [Math.max(left() + 1, Math.min(r.width - 18, x)), Math.max(1, Math.min(r.height - 1, y))];
      point("pointermove", r);
    } else if (event.key === "Enter" && at) point("click", r);
    else if (event.key === "Escape") {
      at = null;
      point("pointerleave", r);
    } else return;
    event.preventDefault();
  });
  canvas.addEventListener("blur", () => {
    tip.hidden = true;
  });
}

/** A text that is cut to a width, in its middle: names differ at their ends. */
export function cut(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  const tail = text.slice(-5);
  let end = text.length - 5;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…${tail}`).width > width) end--;
  return `${text.slice(0, end)}…${tail}`;
}
