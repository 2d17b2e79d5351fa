// What the page of a large recording costs a person, in a browser without a graphics card:
//
//   node viewer/bench.mjs target/release/homenode RECORDING [--warm]
//
// Prints, a line each: seconds until the page shows a picture, and everything; frames a second
// while a person zooms and drags; how long the server takes for a finer picture; the memory
// of the server. 'cargo xtask dataset --gib 10 -o RECORDING' makes a recording to look at.
// --warm keeps what an earlier opening left beside the recording.

import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [homenode, recording, option] = process.argv.slice(2);
if (!recording) throw new Error("name homenode's binary and a recording");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => {
  try {
    return readFileSync(path).length > 0;
  } catch {
    return false;
  }
});

/** Starts the server; its process and the page's address. */
async function serve() {
  const server = spawn(homenode, ["view", recording, "--no-browser"], { stdio: ["ignore", "pipe", "pipe"] });
  const url = await new Promise((found, failed) => {
    let said = "";
    const look = (data) => {
      said += data;
      const address = /http:\/\/127\.0\.0\.1:\S+/.exec(said);
      if (address) found(address[0]);
    };
    server.stdout.on("data", look);
    server.stderr.on("data", look);
    server.on("exit", () => failed(new Error(`homenode view ended: ${said}`)));
  });
  return { server, url };
}

async function stop(server) {
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  const peak = Number(/VmHWM:\s*(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  const ended = new Promise((done) => server.removeAllListeners("exit").on("exit", done));
  server.kill("SIGINT");
  await ended;
  return peak;
}

const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(2)} s`;
const at = (sorted, percent) => sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0;
const milliseconds = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const [half, most, all] = [50, 95, 100].map((percent) => at(sorted, percent).toFixed(1));
  return `median ${half} ms, 95th percentile ${most} ms, longest ${all} ms of ${sorted.length}`;
};

const browser = await chromium.launch({
  executablePath: browserPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-3d-apis", "--disable-dev-shm-usage"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
page.setDefaultTimeout(0);

/** Opens the page, and says when a person sees what. */
async function opened(name) {
  const begun = performance.now();
  const { server, url } = await serve();
  await page.goto(url);
  await page.waitForSelector("html[data-ready=yes] #panel");
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  const picture = seconds(begun);
  const look = await page.locator(".warning", { hasText: "first look" }).count();
  console.log(`${name}: first paint after ${picture}${look > 0 ? ", a first look" : ""}`);
  await page.waitForFunction(() => document.querySelector(".top")?.hidden === true, null, { polling: 250 });
  console.log(`${name}: everything after ${seconds(begun)}`);
  return { server, url };
}

if (option !== "--warm") {
  for (const file of ["view.tiles", "view.pyramid"]) rmSync(join(recording, file), { force: true });
  const { server } = await opened("cold");
  console.log(`cold: the server had at most ${(await stop(server)).toFixed(0)} MiB`);
}

const { server, url } = await opened("warm");
const largest = await page.evaluate(() => document.querySelectorAll("#sel-object option")[1]?.value ?? "");
await page.goto("about:blank");
await page.goto(`${url}#view=residency&object=${largest}`);
await page.waitForSelector("html[data-ready=yes] canvas");
await page.evaluate(() => {
  window.frames_ms = [];
  let before = performance.now();
  const frame = (now) => {
    window.frames_ms.push(now - before);
    before = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
});
const frames = async (what, act) => {
  await page.evaluate(() => (window.frames_ms.length = 0));
  const begun = performance.now();
  await act();
  const took = performance.now() - begun;
  const all = await page.evaluate(() => window.frames_ms);
  const rate = (1000 * all.length) / took;
  console.log(`${what}: ${rate.toFixed(0)} frames a second; a frame: ${milliseconds(all)}`);
};
const box = await page.locator("canvas").first().boundingBox();
const [x, y] = [box.x + box.width * 0.6, box.y + Math.min(box.height * 0.5, 300)];
await page.mouse.move(x, y);
await frames("zooming", async () => {
  for (let n = 0; n < 40; n++) {
    await page.mouse.wheel(0, n % 20 < 14 ? -100 : 100);
    await page.waitForTimeout(16);
  }
});
await frames("dragging", async () => {
  await page.mouse.down();
  for (let n = 0; n < 240; n++) await page.mouse.move(x + 200 * Math.sin(n / 20), y + 60 * Math.sin(n / 13));
  await page.mouse.up();
});
// A person looks closer at different places, and waits for the finer picture.
for (let n = 0; n < 24; n++) {
  await page.mouse.move(box.x + 200 + ((n * 397) % Math.max(1, box.width - 240)), y + ((n * 53) % 120) - 60);
  await page.mouse.wheel(0, n % 8 === 7 ? 900 : -100);
  await page.waitForTimeout(250);
}
await page.waitForLoadState("networkidle");
const asked = await page.evaluate(() =>
  performance.getEntriesByType("resource").filter((e) => e.name.includes("/finer?")).map((e) => e.duration));
console.log(`a finer picture: ${milliseconds(asked)}`);
await page.screenshot({ path: new URL("../target/view-bench.png", import.meta.url).pathname });
console.log(`warm: the server had at most ${(await stop(server)).toFixed(0)} MiB`);
await browser.close();
