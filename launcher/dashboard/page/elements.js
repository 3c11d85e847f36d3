// Elements of the page, tables, and words for numbers and places. Texts of programs are only ever set as text.
export const COLORS = Array.from({ length: 8 }, (_, index) => `var(--curve${index})`); // page.css has them, light and dark
const DRAWN = ["svg", "g", "line", "path", "circle", "text", "polyline", "rect", "title"];
export const byId = (id) => document.getElementById(id);

export function put(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((each) => each !== null));
  return parent;
}

export function make(tag, properties = {}, ...children) {
  const found = DRAWN.includes(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") found.addEventListener(name, value);
    else if (value !== null) found.setAttribute(name, value);
  }
  found.append(...children.flat().filter((each) => each !== null).map((each) => (each instanceof Node ? each : String(each))));
  return found;
}

export function table(heads, rows, numbers = []) {
  const cell = (tag, value, index) => make(tag, { class: numbers.includes(index) ? "number" : "" }, value ?? "");
  const head = make("tr", {}, heads.map((each, index) => cell("th", each, index)));
  const body = rows.map((row) => make("tr", {}, row.map((each, index) => cell("td", each, index))));
  return rows.length ? make("table", {}, make("thead", {}, head), make("tbody", {}, body)) : make("p", { class: "quiet" }, "None.");
}

export const size = (bytes) => {
  if (bytes === null || bytes === undefined) return "";
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit < 4) { bytes /= 1024; unit += 1; }
  return `${bytes.toFixed(unit ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
};
export const duration = (seconds) => {
  const [days, hours, minutes, rest] = [seconds / 86400, (seconds / 3600) % 24, (seconds / 60) % 60, seconds % 60].map(Math.floor);
  const two = (value) => String(value).padStart(2, "0");
  return days ? `${days}d${two(hours)}h` : hours ? `${hours}h${two(minutes)}m` : minutes ? `${minutes}m${two(rest)}s` : `${rest}s`;
};
// A place in the program; a file below the job's folder is named from there.
export const place = (at, folder) => (at ? `${at.function} at ${at.file.startsWith(`${folder}/`) ? at.file.slice(folder.length + 1) : at.file}:${at.line}` : "");
export const number = (value) => (value === null ? "" : Number(value).toPrecision(5).replace(/\.?0+$/, ""));
export const short = (value) => (value === 0 || (Math.abs(value) >= 0.001 && Math.abs(value) < 1e6) ? String(Number(value.toPrecision(4))) : value.toExponential(1));
