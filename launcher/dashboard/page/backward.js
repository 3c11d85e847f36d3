// Contexts of distributed autograd, and their backwards as they go: workers as boxes, gradients between them as arrows.
import { make, table } from "./elements.js";

const BOX = { width: 156, height: 54, across: 32, down: 62 };
const MOST_IN_A_ROW = 4, MOST_BOXES = 40, MOST_PICTURES = 8;
const CLASS = { works: "busy", waits: "slow", idle: "good", over: "good", failed: "bad" };
const WORDS = { works: "works", waits: "waits for other workers", idle: "idle", over: "is over", failed: "has failed" };

export function contextsView(workers) {
  const contexts = new Map();
  for (const worker of workers) {
    for (const each of worker.contexts) {
      const found = contexts.get(each.context_id) ?? { id: each.context_id, creator: each.creator, workers: new Map(), passes: new Map() };
      found.workers.set(worker.worker, each.workers);
      for (const part of each.passes) {
        const key = `${part.root}\n${part.number}`;
        if (!found.passes.has(key)) found.passes.set(key, { root: part.root, number: part.number, parts: new Map() });
        found.passes.get(key).parts.set(worker.worker, part);
      }
      contexts.set(each.context_id, found);
    }
  }
  const all = [...contexts.values()], passes = all.flatMap((context) => [...context.passes.values()].map((pass) => ({ context, ...pass })));
  passes.sort((a, b) => ended(a) - ended(b));
  const rows = all.map((each) => [String(each.id), each.creator, [...each.workers.keys()].join(", "), each.passes.size ? "" : "no backward yet"]);
  const left = passes.length > MOST_PICTURES ? make("p", { class: "quiet" }, `${passes.length - MOST_PICTURES} more backwards are left out.`) : null;
  return make("div", {}, passes.slice(0, MOST_PICTURES).map(passView), left,
    all.length ? make("h2", {}, `Contexts: ${all.length}`) : null, table(["Context", "Made by", "On", ""], rows));
}

const ended = (pass) => ["over", "failed"].includes(state(pass)) ? 1 : 0;

function state(pass) {
  const parts = [...pass.parts.values()];
  if (parts.some((each) => each.state === "failed")) return "failed";
  if (pass.parts.get(pass.root)?.state === "over") return "over";
  return parts.some((each) => each.state === "works") ? "works" : "waits";
}

function passView(pass) {
  const parts = [...pass.parts.values()], sum = (key) => parts.reduce((total, each) => total + each[key], 0);
  const now = state(pass), failure = parts.find((each) => each.failure)?.failure;
  const heading = make("h2", {}, `Backward ${pass.number} of ${pass.root} `, make("span", { class: CLASS[now] }, WORDS[now]));
  const words = `In context ${pass.context.id}: ${sum("done")} of ${sum("nodes")} nodes have run, on ${parts.length} of ${pass.context.workers.size} workers.`;
  return make("section", { class: "backward" }, heading, make("p", { class: "quiet" }, words),
    failure ? make("p", { class: "bad" }, failure) : null, pictureOf(pass), partsTable(pass));
}

function partsTable(pass) {
  const rows = [...pass.parts].map(([name, part]) => {
    const waits = part.edges.filter((each) => each.fed < each.sent).map((each) => `${each.to} (${each.sent - each.fed})`);
    const left = part.operations.filter((each) => each.done < each.count).map((each) => `${each.name} ${each.count - each.done}`);
    return [name, make("span", { class: CLASS[part.state] }, part.state), `${part.done} of ${part.nodes}`, part.running, waits.join(", "), left.slice(0, 8).join(", ") + (left.length > 8 ? ", …" : "")];
  });
  return table(["Worker", "State", "Nodes", "Runs now", "Waits for gradients from", "Not done"], rows, [2]);
}

// -- the picture

function rowsOf(pass) {
  // The root is at the top; below each worker are those to which gradients go first from it.
  const names = new Set([...pass.context.workers.keys(), ...pass.parts.keys()]);
  const others = (name) => [...(pass.parts.get(name)?.edges.map((each) => each.to) ?? []), ...(pass.context.workers.get(name) ?? [])];
  const depth = new Map([[pass.root, 0]]), queue = [pass.root];
  for (const name of queue) {
    for (const other of others(name)) {
      if (names.has(other) && !depth.has(other)) { depth.set(other, depth.get(name) + 1); queue.push(other); }
    }
  }
  for (const name of names) if (!depth.has(name)) { depth.set(name, 1); queue.push(name); }
  const rows = [];
  for (const name of queue.slice(0, MOST_BOXES)) (rows[depth.get(name)] ??= []).push(name);
  return rows.filter(Boolean).flatMap((row) => Array.from({ length: Math.ceil(row.length / MOST_IN_A_ROW) }, (_, index) => row.slice(index * MOST_IN_A_ROW, (index + 1) * MOST_IN_A_ROW)));
}

function pictureOf(pass) {
  const rows = rowsOf(pass), most = Math.max(...rows.map((row) => row.length));
  const width = most * BOX.width + (most + 1) * BOX.across, height = rows.length * (BOX.height + BOX.down) - BOX.down + 8;
  const spots = new Map(rows.flatMap((row, down) => row.map((name, across) => {
    const left = (width - row.length * BOX.width - (row.length - 1) * BOX.across) / 2;
    return [name, [left + across * (BOX.width + BOX.across), 4 + down * (BOX.height + BOX.down)]];
  })));
  const arrows = flows(pass).filter((each) => spots.has(each.from) && spots.has(each.to)).map((each) => arrow(each, spots));
  const boxes = [...spots].map(([name, [x, y]]) => box(name, pass.parts.get(name), x, y));
  const found = make("svg", { class: "gradients", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Backward ${pass.number} of ${pass.root}` }, arrows, boxes);
  found.style.width = `${width}px`; // at most that of the page
  return found;
}

function flows(pass) {
  // A gradient goes from the receiver of a message to its sender. Each of them may know of messages that the other has not reached.
  const found = new Map();
  const flow = (from, to) => {
    const key = `${from}\n${to}`;
    if (!found.has(key)) found.set(key, { from, to, given: 0, total: 0, come: 0 });
    return found.get(key);
  };
  for (const [name, part] of pass.parts) {
    for (const each of part.edges) {
      if (each.received) Object.assign(flow(name, each.to), { given: each.given, total: Math.max(flow(name, each.to).total, each.received) });
      if (each.sent) Object.assign(flow(each.to, name), { come: each.fed, total: Math.max(flow(each.to, name).total, each.sent) });
    }
  }
  return [...found.values()];
}

function arrow(flow, spots) {
  const [[x1, y1], [x2, y2]] = [spots.get(flow.from), spots.get(flow.to)];
  const down = y2 > y1 ? 1 : y2 < y1 ? -1 : 0, side = x2 > x1 || (x2 === x1 && down > 0) ? 1 : -1;
  // Gradients that go down leave left of the middle, those that go up right of it: the two do not cover each other.
  const shift = BOX.width * 0.18 * (down ? -down : 0);
  const from = [x1 + BOX.width / 2 + (down ? shift : side * BOX.width / 2), y1 + (down > 0 ? BOX.height : down < 0 ? 0 : BOX.height * (side > 0 ? 0.35 : 0.65))];
  const to = [x2 + BOX.width / 2 + (down ? shift : -side * BOX.width / 2), y2 + (down < 0 ? BOX.height : down > 0 ? 0 : BOX.height * (side > 0 ? 0.35 : 0.65))];
  const done = flow.come >= flow.total, kind = done ? "done" : flow.given > flow.come ? "under-way" : "waits";
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]), tip = (turn) => `${to[0] - 8 * Math.cos(angle + turn)},${to[1] - 8 * Math.sin(angle + turn)}`;
  const label = `${flow.come}/${flow.total}`, words = `Gradients from ${flow.from} to ${flow.to}: ${flow.given} of ${flow.total} are computed, ${flow.come} have arrived`;
  const near = down < 0 ? 0.3 : down > 0 ? 0.7 : 0.5, along = (one, other) => one + near * (other - one); // labels are near the lower box: there the arrows lie apart
  return make("g", { class: kind }, make("title", {}, words), make("path", { d: `M${from} L${to} M${tip(0.45)} L${to} L${tip(-0.45)}` }),
    make("text", { x: along(from[0], to[0]) + (down ? -6 * down : 0), y: along(from[1], to[1]) + (down ? 4 : -5), "text-anchor": down > 0 ? "end" : down < 0 ? "start" : "middle" }, label));
}

function box(name, part, x, y) {
  const share = part && part.nodes ? part.done / part.nodes : 0, kind = part ? CLASS[part.state] : "unreached";
  const line = part ? (part.running ? `runs ${part.running}` : `${part.state} · ${part.done} of ${part.nodes}`) : "not reached yet";
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  return make("g", { class: `box ${kind}` }, make("title", {}, `${name}: ${line}`), make("rect", { class: "frame", x, y, width: BOX.width, height: BOX.height, rx: 6 }),
    make("rect", { class: "share", x: x + 6, y: y + BOX.height - 10, width: (BOX.width - 12) * share, height: 4, rx: 2 }),
    make("text", { class: "name", x: x + 8, y: y + 17 }, cut(name, 22)), make("text", { class: "line", x: x + 8, y: y + 34 }, cut(line, 25)));
}
