// Makes crates/view/assets from src: the page's program, its looks, and their hashes for the page's
// Content-Security-Policy. 'node build.mjs FOLDER' writes them elsewhere.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const to = process.argv[2] ?? join(here, "../crates/view/assets");

const packages = ["d3-scale", "d3-array", "d3-color", "d3-format", "d3-interpolate", "internmap"];
const licences = packages.map((name) => {
  const of = (file) => readFileSync(join(here, "node_modules", name, file), "utf8");
  const { version, license } = JSON.parse(of("package.json"));
  const [copyright] = of("LICENSE").match(/Copyright .*/) ?? [""];
  return ` * ${name} ${version}, ${license}, ${copyright}`;
});
const permission = readFileSync(join(here, "node_modules/d3-scale/LICENSE"), "utf8")
  .split("\n")
  .slice(1)
  .map((l) => ` * ${l}`.trimEnd());
const banner = [
  "/*! The page of homenode view, MIT OR Apache-2.0. Made by scripts/viewer.sh from viewer/.",
  " * It contains:",
  ...licences,
  ...permission,
  " */",
].join("\n");

const common = { absWorkingDir: here, bundle: true, minify: true, write: false, legalComments: "none", charset: "utf8" };
const [script] = (
  await build({ ...common, entryPoints: ["src/main.ts"], format: "iife", target: "es2020", banner: { js: banner } })
).outputFiles;
const [style] = (await build({ ...common, entryPoints: ["src/viewer.css"], target: "es2020" })).outputFiles;

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
if (/<\/script|<!--/i.test(script.text) || /<\/style/i.test(style.text)) throw new Error("would end its element");
writeFileSync(join(to, "viewer.js"), script.text);
writeFileSync(join(to, "viewer.css"), style.text);
writeFileSync(join(to, "viewer.csp"), `script-src ${hash(script.text)}; style-src ${hash(style.text)}\n`);
console.log(`viewer.js ${script.text.length} bytes, viewer.css ${style.text.length} bytes`);
