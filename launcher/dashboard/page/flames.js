// Profiles: a flame graph of the stacks of all workers, and the same as files for other programs.
import { make } from "./elements.js";

const MOST_DEPTH = 80, ROW = 16;

// The flame graph of a profile: a box is as wide as its function was seen often, under the functions that called it.
export function flameGraph(root, full) {
  const boxes = [];
  let depth = 0;
  const draw = (node, x, width, level) => {
    if (width < 1.5 || level > MOST_DEPTH) return;
    depth = Math.max(depth, level);
    const share = `${node.name}: ${((100 * node.count) / root.count).toFixed(1)} % of ${root.count} samples`;
    const hue = [...node.name].reduce((sum, each) => (sum * 31 + each.codePointAt(0)) % 45, 7);
    const text = width > 40 ? make("text", { x: x + 3, y: level * ROW + 12 }, node.name.slice(0, Math.floor(width / 6))) : null;
    boxes.push(make("g", {}, make("title", {}, share), make("rect", { x, y: level * ROW, width, height: ROW, fill: `hsl(${hue + 20} 85% 68%)` }), text));
    let start = x;
    for (const child of [...node.children.values()].sort((a, b) => b.count - a.count)) {
      const part = (width * child.count) / node.count;
      draw(child, start, part, level + 1);
      start += part;
    }
  };
  if (root.count) draw(root, 0, full, 0);
  return make("svg", { class: "flame", viewBox: `0 0 ${full} ${(depth + 1) * ROW}`, role: "img", "aria-label": "Flame graph" }, boxes);
}

export const flameTree = () => ({ name: "all threads", count: 0, children: new Map() });

export function addStack(root, names, count) {
  let node = root;
  root.count += count;
  for (const name of names) {
    if (!node.children.has(name)) node.children.set(name, { name, count: 0, children: new Map() });
    node = node.children.get(name);
    node.count += count;
  }
}

const nameOf = (frame) => `${frame.function} ${frame.file.replace(/^.*\//, "")}`;

export function treeOf(profile, byWorker) {
  const root = flameTree();
  for (const worker of profile.workers.filter((each) => !each.error)) {
    const counts = new Map();
    for (const [, stack, , looks] of worker.runs) counts.set(stack, (counts.get(stack) ?? 0) + looks);
    for (const [stack, count] of counts) {
      const names = worker.stacks[stack].map((place) => nameOf(worker.frames[place]));
      addStack(root, byWorker ? [worker.worker, ...names] : names, count);
    }
  }
  return root;
}

// The profile as lines "worker;thread;function (file);... count", which flamegraph.pl, speedscope and others read.
export function foldedOf(profile) {
  const counts = new Map(), clean = (text) => text.replace(/[;\s]+/g, " ");
  for (const worker of profile.workers.filter((each) => !each.error)) {
    for (const [thread, stack, , looks] of worker.runs) {
      const frames = worker.stacks[stack].map((place) => worker.frames[place]).map((each) => clean(`${each.function} (${each.file}:${each.line})`));
      const line = [clean(worker.worker), clean(worker.threads[thread]), ...frames].join(";");
      counts.set(line, (counts.get(line) ?? 0) + looks);
    }
  }
  return [...counts].map(([line, count]) => `${line} ${count}\n`).join("");
}

// The profile as trace events: a process is a worker, and a function is there from the first look that saw it to the last one.
export function traceOf(profile) {
  const events = [];
  profile.workers.filter((each) => !each.error).forEach((worker, index) => {
    const pid = index + 1, about = (name, tid, text) => events.push({ ph: "M", name, pid, tid, args: { name: text } });
    about("process_name", 0, worker.worker);
    worker.threads.forEach((name, thread) => {
      about("thread_name", thread + 1, name);
      slicesOf(worker, thread).forEach(([place, begin, end]) => {
        const frame = worker.frames[place], time = (seconds) => (worker.began + seconds) * 1e6;
        events.push({ ph: "X", cat: "sample", name: frame.function, pid, tid: thread + 1, ts: time(begin), dur: (end - begin) * 1e6, args: { file: frame.file, line: frame.line } });
      });
    });
  });
  return { traceEvents: events, displayTimeUnit: "ms" };
}

function slicesOf(worker, thread) {
  const at = (look) => worker.times[look] ?? worker.seconds, open = [], slices = [];
  const close = (depth, end) => {
    while (open.length > depth) {
      const [place, begin] = open.pop();
      slices.push([place, begin, end]);
    }
  };
  let next = 0;
  for (const [, stack, first, looks] of worker.runs.filter((run) => run[0] === thread)) {
    if (first > next) close(0, at(next)); // between the two it ran none of the program's code
    const places = worker.stacks[stack];
    let same = 0;
    while (same < open.length && same < places.length && open[same][0] === places[same]) same += 1;
    close(same, at(first));
    for (const place of places.slice(same)) open.push([place, at(first)]);
    next = first + looks;
  }
  close(0, at(next));
  return slices;
}

export function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
