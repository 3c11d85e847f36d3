// The page: asks for the job's state once a second and shows it. Texts of programs are only ever set as text, never as markup.
import { contextsView } from "./backward.js";
import { download, flameGraph, foldedOf, traceOf, treeOf } from "./flames.js";
import { COLORS, byId, duration, make, number, place, put, short, size, table } from "./elements.js";

const token = new URLSearchParams(location.search).get("token") ?? "";
const VIEWS = ["Workers", "Calls", "References", "Contexts", "Curves", "Log", "Stacks", "Flames"];
const OF_ONE_WORKER = new Set(["References", "Log"]);
const page = { state: null, before: null, view: "Workers", worker: "", paused: false, profile: null, flames: null };

const former = (name) => page.before?.workers.find((each) => each.worker === name);

function rate(worker, key) {
  const old = former(worker.worker);
  const seconds = page.before ? page.state.at - page.before.at : 0;
  return old && seconds > 0 && worker[key] >= old[key] ? (worker[key] - old[key]) / seconds : null;
}

function kind(worker) {
  if (worker.process_state === "joining") return "slow";
  if (worker.error) return "bad";
  const causes = page.state.why.filter((each) => each.workers.includes(worker.worker));
  if (causes.some((each) => ["deadlock", "lost", "stuck"].includes(each.severity))) return "bad";
  if (causes.some((each) => each.severity === "slow") || worker.pool_waiting > 0) return "slow";
  return worker.pool_busy > 0 || (rate(worker, "cpu_seconds") ?? 0) > 0.5 ? "busy" : "good";
}

const LEGEND = { good: "idle", busy: "works", slow: "waits or is slow", bad: "stuck, lost or silent" };
const STUCK = { deadlock: "in a deadlock", lost: "lost", stuck: "stuck" };

function condition(worker) {
  if (worker.error) return worker.process_state || worker.error;
  const worst = page.state.why.find((each) => each.workers.includes(worker.worker) && each.severity in STUCK);
  return worst ? STUCK[worst.severity] : LEGEND[kind(worker)];
}

// -- views

function workersView() {
  const rows = page.state.workers.map((each) => {
    const share = rate(each, "cpu_seconds");
    const made = rate(each, "calls_made"), taken = rate(each, "requests_accepted");
    const loops = each.loops.filter((loop) => !loop.ended).map((loop) => `${loop.description || "loop"} ${loop.done}${loop.total ? `/${loop.total}` : ""}`);
    const name = make("button", { type: "button", click: () => choose(each.worker) }, each.worker);
    const end = page.state.actions ? make("button", { type: "button", click: () => kill(each.worker) }, "End") : null;
    return [name, make("span", { class: kind(each) }, condition(each)), each.host, share === null ? "" : `${(100 * share).toFixed(0)} %`,
      size(each.memory_bytes), `${each.pool_busy}/${each.pool_threads}`, each.pool_waiting, made === null ? "" : made.toFixed(0),
      taken === null ? "" : taken.toFixed(0), each.totals.owned ?? "", loops.join(", "), end ?? ""];
  });
  return table(["Worker", "State", "Host", "CPU", "Memory", "Pool", "Waiting", "Calls/s", "Served/s", "Owns", "Progress", ""], rows, [3, 4, 5, 6, 7, 8, 9]);
}

function callsView() {
  const rows = page.state.workers.flatMap((each) => each.calls.map((call) => [each.worker, call.to, call.what, `${call.seconds.toFixed(1)} s`, call.state]));
  return table(["From", "To", "Call", "Since", "State"], rows, [3]);
}

async function referencesView() {
  const found = await ask("worker", { name: page.worker });
  if (found.error && !found.owned) return make("p", { class: "quiet" }, found.error);
  const rows = (all, which) => all.map((each) => [each.rref_id, which === "owned" ? "" : each.owner, each.type, size(each.bytes), each.made ? "yes" : "no", each.holders.join(", ")]);
  const heads = ["Reference", "Owner", "Type", "Size", "Made", "Held by"];
  return make("div", {}, make("h2", {}, `Owned: ${found.totals.owned ?? 0}`), table(heads, rows(found.owned, "owned"), [3]),
    make("h2", {}, `Held: ${found.totals.held ?? 0}`), table(heads, rows(found.held, "held"), [3]));
}

function curvesView() {
  const series = new Map();
  for (const worker of page.state.workers) {
    for (const each of worker.logged) {
      if (!series.has(each.name)) series.set(each.name, []);
      series.get(each.name).push({ ...each, worker: worker.worker });
    }
  }
  if (!series.size) return make("p", { class: "quiet" }, "The program has logged nothing: telegrad.log(loss=..., step=...)");
  return make("div", {}, [...series].map(([name, lines]) => curve(name, lines)));
}

function curve(name, lines) {
  const points = lines.map((each) => each.steps.map((step, index) => [step, each.values[index]]).filter(([step, value]) => Number.isFinite(step) && Number.isFinite(value)));
  const all = points.flat();
  if (!all.length) return make("p", { class: "quiet" }, `${name}: no finite value`);
  const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
  const range = (values) => [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  const [[left, right], [low, high]] = [range(xs), range(ys)];
  const x = (value) => 60 + (530 * (value - left)) / (right - left || 1);
  const y = (value) => 150 - (130 * (value - low)) / (high - low || 1);
  const drawn = points.map((each, index) => make("polyline", { class: "curve", stroke: COLORS[index % COLORS.length], points: each.map(([a, b]) => `${x(a)},${y(b)}`).join(" ") }));
  const words = lines.slice(0, 12).map((each, index) => make("li", {}, make("span", { "aria-hidden": "true" }, ""), `${each.worker}: ${number(each.last)} at step ${each.step}`));
  words.forEach((each, index) => { each.style.color = COLORS[index % COLORS.length]; });
  return make("section", {}, make("h2", {}, name), make("svg", { viewBox: "0 0 600 175", role: "img", "aria-label": `Curve of ${name}` },
    make("line", { class: "axis", x1: 60, y1: 150, x2: 590, y2: 150 }), make("line", { class: "axis", x1: 60, y1: 20, x2: 60, y2: 150 }),
    make("text", { x: 55, y: 24, "text-anchor": "end" }, short(high)), make("text", { x: 55, y: 150, "text-anchor": "end" }, short(low)),
    make("text", { x: 60, y: 168 }, left), make("text", { x: 590, y: 168, "text-anchor": "end" }, right), drawn), make("ul", {}, words));
}

async function logView() {
  const found = await ask("log", { name: page.worker });
  if (found.error) return make("p", { class: "quiet" }, found.error);
  const cut = found.cut ? make("p", { class: "quiet" }, `The first ${size(found.cut)} are left out.`) : null;
  return make("div", {}, cut, make("pre", {}, found.text || "Nothing is written yet."));
}

async function stacksView() {
  const groups = new Map();
  for (const each of (await ask("stacks", {})).stacks ?? []) {
    const key = JSON.stringify(each.stack);
    if (!groups.has(key)) groups.set(key, { stack: each.stack, threads: [] });
    groups.get(key).threads.push(`${each.worker} (${each.thread})`);
  }
  const found = [...groups.values()].sort((a, b) => b.threads.length - a.threads.length);
  return make("div", {}, found.map((each) => make("pre", {}, `${each.threads.join(", ")}\n  ${[...each.stack].reverse().join("\n  ")}`)));
}

function flamesView() {
  if (page.flames !== null) return page.flames; // it changes only when another profile is taken
  const seconds = make("select", { "aria-label": "Seconds" }, [1, 3, 5, 10, 30].map((each) => make("option", { value: each }, `${each} s`)));
  const group = make("input", { type: "checkbox", id: "by-worker", change: () => page.profile && showProfile() });
  const begin = make("button", { type: "button", click: () => takeProfile(Number(seconds.value), begin) }, "Take a profile");
  seconds.value = "3";
  page.flames = make("div", {}, make("p", { class: "bar" }, begin, " over ", seconds, make("label", {}, group, " by worker")), make("div", { id: "profile" },
    make("p", { class: "quiet" }, "Looks up to 100 times a second at the threads of each worker. Those in which none of the program's code runs are left out.")));
  return page.flames;
}

async function takeProfile(seconds, button) {
  button.disabled = true;
  byId("profile")?.replaceChildren(make("p", { class: "quiet" }, `Looks for ${seconds} s…`));
  try {
    const found = await ask("profile", { seconds }, "POST", 1000 * (seconds + 30));
    if (found.error) throw new Error(found.error);
    page.profile = found;
    showProfile();
  } catch (error) {
    page.flames.lastChild.replaceChildren(make("p", { class: "bad" }, error.message));
  } finally {
    button.disabled = false;
  }
}

function showProfile() {
  const profile = page.profile, name = `telegrad-${profile.job}-${profile.number}`;
  const root = treeOf(profile, page.flames.querySelector("#by-worker").checked);
  const silent = profile.workers.filter((each) => each.error).map((each) => make("p", { class: "bad" }, `${each.worker}: ${each.error}`));
  const folded = make("button", { type: "button", click: () => download(`${name}.folded`, foldedOf(profile), "text/plain") }, "Download folded stacks");
  const trace = make("button", { type: "button", click: () => download(`${name}.json`, JSON.stringify(traceOf(profile)), "application/json") }, "Download trace");
  const link = make("a", { href: `/perfetto?${new URLSearchParams({ token, profile: profile.number })}`, target: "_blank", rel: "noopener noreferrer" }, "Open in Perfetto (another site; asks first)");
  page.flames.lastChild.replaceChildren(make("p", { class: "quiet" }, `${root.count} samples of ${profile.workers.length} workers.`), ...silent, flameGraph(root, Math.max(byId("view").clientWidth, 320)), make("p", { class: "bar" }, folded, trace, link));
}

const SHOW = { Workers: workersView, Calls: callsView, References: referencesView, Contexts: () => contextsView(page.state.workers), Curves: curvesView, Log: logView, Stacks: stacksView, Flames: flamesView };

// -- the graph of workers, and why they wait

const MOST_NAMES = 40;

function spots(names, middle, many, radius) {
  // On a ring; very many are on several.
  const found = new Map(), apart = 2 * radius + 3;
  let ring = middle - (many ? 12 : names.length > 12 ? 84 : 56);
  for (let begin = 0; begin < names.length; ring -= apart) {
    const room = many ? Math.max(Math.floor((2 * Math.PI * ring) / apart), 8) : names.length, part = names.slice(begin, begin + room);
    part.forEach((name, index) => {
      const angle = (2 * Math.PI * index) / part.length - Math.PI / 2;
      found.set(name, names.length === 1 ? [middle, middle] : [middle + ring * Math.cos(angle), middle + ring * Math.sin(angle)]);
    });
    begin += room;
  }
  return found;
}

function nameOf(name, x, y, middle, radius, count) {
  // Below its spot; outside of the ring where spots are near to each other.
  if (count <= 12) return make("text", { x, y: y + radius + 13, "text-anchor": "middle" }, name.slice(0, 18));
  const [across, down] = [x - middle, y - middle], far = 1 + (radius + 5) / Math.hypot(across, down);
  const anchor = Math.abs(across) < 6 ? "middle" : across > 0 ? "start" : "end";
  return make("text", { x: middle + across * far, y: middle + down * far + 4, "text-anchor": anchor }, name.slice(0, 11));
}

function showGraph() {
  const workers = page.state.workers, many = workers.length > MOST_NAMES;
  const radius = many ? 6 : workers.length > 12 ? 9 : 14, width = 420, middle = width / 2;
  const spot = spots(workers.map((each) => each.worker), middle, many, radius);
  const links = new Map();
  for (const worker of workers) {
    for (const link of worker.links) {
      const ends = [worker.worker, link.to].sort().join("\n");
      const old = former(worker.worker)?.links.find((each) => each.to === link.to);
      const moved = old ? Math.max(link.sent_bytes - old.sent_bytes, 0) : 0;
      const entry = links.get(ends) ?? { a: worker.worker, b: link.to, moved: 0, waiting: 0, messages: 0, states: new Set() };
      entry.moved += moved; entry.waiting += link.queued_bytes; entry.messages += link.sent_messages + link.received_messages; entry.states.add(link.state);
      links.set(ends, entry);
    }
  }
  const lines = [...links.values()].filter((each) => spot.has(each.a) && spot.has(each.b) && (!each.states.has("not dialed") || each.messages)).map((each) => {
    const [[x1, y1], [x2, y2]] = [spot.get(each.a), spot.get(each.b)];
    const fine = [...each.states].every((state) => ["connected", "dialed by the other worker", "not dialed", "connecting"].includes(state));
    const words = `${each.a} and ${each.b}: ${[...each.states].join(", ")}; ${size(each.moved)}/s, ${size(each.waiting)} wait`;
    return make("line", { x1, y1, x2, y2, class: fine ? (each.waiting ? "waits" : "") : "broken", "stroke-width": (1 + Math.min(Math.log2(1 + each.moved / 1024) / 2, 6)).toFixed(1) }, make("title", {}, words));
  });
  const dots = workers.map((each) => {
    const [x, y] = spot.get(each.worker);
    const label = many ? null : nameOf(each.worker, x, y, middle, radius, workers.length);
    const press = (event) => { if (event.type === "click" || event.key === "Enter") choose(each.worker); };
    return make("g", { tabindex: 0, role: "button", class: each.worker === page.worker ? "chosen" : "", "aria-label": `${each.worker}: ${condition(each)}`, click: press, keydown: press },
      make("title", {}, `${each.worker}: ${condition(each)}`), make("circle", { cx: x, cy: y, r: radius, class: kind(each) }), label);
  });
  const graph = byId("graph"), focused = graph.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label").split(":")[0] : null;
  graph.setAttribute("viewBox", `0 0 ${width} ${width}`);
  put(graph, lines, dots);
  if (focused !== null) dots.find((each) => each.getAttribute("aria-label").startsWith(`${focused}:`))?.focus();
  put(byId("legend"), Object.entries(LEGEND).map(([name, words]) => make("li", {}, make("span", { class: name, "aria-hidden": "true" }, "● "), words)));
}

function showWhy() {
  const causes = page.state.why.slice(0, 20).map((each) => make("li", { class: each.severity },
    make("span", { class: each.severity === "busy" ? "busy" : each.severity === "slow" ? "slow" : "bad" }, each.text), each.at ? make("span", { class: "quiet" }, ` in ${place(each.at, page.state.folder)}`) : null,
    each.waiting.length ? make("div", { class: "quiet" }, `waiting for it: ${each.waiting.join(", ")}`) : null,
    each.chain.length ? make("ol", {}, each.chain.map((step) => make("li", {}, `${step.worker}: ${step.text}${step.at ? `, in ${place(step.at, page.state.folder)}` : ""}`))) : null));
  const left = page.state.why.length - causes.length;
  if (left) causes.push(make("li", { class: "quiet" }, `${left} more`));
  put(byId("why"), causes.length ? causes : [make("li", { class: "quiet" }, page.state.ended ? "The job has ended." : "Nothing waits.")]);
}

// -- what the user does

function choose(name) { page.worker = name; byId("worker").value = name; show(); }

async function kill(name) {
  if (!confirm(`End worker ${name}? The job then fails.`)) return;
  const found = await ask("kill", { name }, "POST");
  byId("status").textContent = found.error ?? Object.entries(found.ended).map((each) => each.join(": ")).join(", ");
}

function showTabs() {
  put(byId("tabs"), VIEWS.map((name) => make("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": name === page.view, tabindex: name === page.view ? 0 : -1, click: () => openView(name) }, name)));
  byId("choice").hidden = !OF_ONE_WORKER.has(page.view);
}

function openView(name) { page.view = name; showTabs(); byId(`tab-${name}`).focus(); showView(); }

byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) openView(VIEWS[(VIEWS.indexOf(page.view) + step + VIEWS.length) % VIEWS.length]);
});
byId("worker").addEventListener("change", (event) => choose(event.target.value));
byId("pause").addEventListener("click", () => {
  page.paused = !page.paused;
  byId("pause").setAttribute("aria-pressed", page.paused);
  byId("pause").textContent = page.paused ? "Go on" : "Pause";
});
byId("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});

// -- once a second

async function ask(what, parameters, method = "GET", milliseconds = 15000) {
  const answer = await fetch(`/api/${what}?${new URLSearchParams(parameters)}`, { method, headers: { "X-Telegrad-Token": token }, signal: AbortSignal.timeout(milliseconds) });
  if (answer.status === 403) throw new Error((await answer.text()).trim());
  return answer.json();
}

const controls = (view) => [...view.querySelectorAll("button, a, input, select")];

async function showView() {
  if (page.state === null) return; // nothing has been answered yet
  const wanted = page.view, found = await SHOW[wanted]();
  if (wanted !== page.view) return; // another view was opened meanwhile
  const view = byId("view"), [top, left] = [view.scrollTop, view.scrollLeft];
  view.setAttribute("aria-labelledby", `tab-${wanted}`);
  if (view.childNodes.length === 1 && view.firstChild === found) return;
  const focused = controls(view).indexOf(document.activeElement);
  put(view, found);
  controls(view)[focused]?.focus({ preventScroll: true });
  [view.scrollTop, view.scrollLeft] = [top, left];
}

async function show() {
  showGraph();
  showWhy();
  await showView();
}

function take(state) {
  if (page.state && state.at > page.state.at) page.before = page.state;
  page.state = state;
  const names = state.workers.map((each) => each.worker);
  if (!names.includes(page.worker)) page.worker = names[0] ?? "";
  if ([...byId("worker").options].map((each) => each.value).join("\n") !== names.join("\n")) put(byId("worker"), names.map((name) => make("option", { value: name }, name)));
  byId("worker").value = page.worker;
  byId("job").textContent = `${state.program} · job ${state.job} · ${names.length} workers · ${duration(state.seconds)}`;
  document.title = `${state.program} · telegrad`;
}

async function tick() {
  if (!page.paused && !document.hidden) {
    try {
      take(await ask("state", {}));
      await show();
      byId("status").textContent = page.state.ended ? "The job has ended." : "";
    } catch (error) {
      byId("status").textContent = `No answer from telegrad dashboard: ${error.message}`;
    }
  }
  setTimeout(tick, 1000);
}

showTabs();
tick();
