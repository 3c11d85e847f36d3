// Hands a profile to Perfetto's page, as that documents: it is opened, asked PING until it says PONG, and then given the trace.
// https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui
import { byId, size } from "./elements.js";
import { download, traceOf } from "./flames.js";

const SITE = "https://ui.perfetto.dev";
const PING_MILLISECONDS = 50, MOST_MILLISECONDS = 60000;
const words = new URLSearchParams(location.search), token = words.get("token") ?? "", number = words.get("profile") ?? "";
const say = (text) => { byId("status").textContent = text; };

async function load() {
  const answer = await fetch(`/api/profile?${new URLSearchParams({ number })}`, { headers: { "X-Telegrad-Token": token } });
  const profile = answer.status === 403 ? { error: await answer.text() } : await answer.json();
  if (profile.error) throw new Error(profile.error);
  const text = JSON.stringify(traceOf(profile)), name = `telegrad-${profile.job}-${profile.number}.json`;
  byId("about").textContent = `Profile ${profile.number} of job ${profile.job}: ${profile.workers.length} workers, ${size(text.length)}.`;
  byId("save").addEventListener("click", () => download(name, text, "application/json"));
  byId("open").addEventListener("click", () => give(name, new TextEncoder().encode(text).buffer));
  byId("save").disabled = byId("open").disabled = false;
}

function give(title, buffer) {
  const other = window.open(SITE);
  if (other === null) return say("The browser has not opened the window.");
  say("Waits for ui.perfetto.dev…");
  const asking = setInterval(() => other.postMessage("PING", SITE), PING_MILLISECONDS);
  const end = (text) => { clearInterval(asking); clearTimeout(limit); removeEventListener("message", answered); say(text); };
  const limit = setTimeout(() => end("ui.perfetto.dev does not answer: download the profile, and open the file there."), MOST_MILLISECONDS);
  const answered = (event) => {
    if (event.origin !== SITE || event.source !== other || event.data !== "PONG") return;
    other.postMessage({ perfetto: { buffer, title, fileName: title, keepApiOpen: false } }, SITE);
    end("ui.perfetto.dev has the profile. You may close this tab.");
  };
  addEventListener("message", answered);
}

load().catch((error) => { byId("about").textContent = `There is no profile: ${error.message}`; });
