// Asks the server once a second and shows what it says. Whatever comes from outside is put in as text.

import { ZoneMap, className } from "./zones.js";

const SOON = 1000, HIDDEN = 15000, LONGEST = 10000;
const $ = (id) => document.getElementById(id);
let keys = null, tag = null, failures = 0, timer = 0, newest = null, asking = null, opener = null;

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= 1024 && unit < 5) { n /= 1024; unit++; }
  return (unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + " " + units[unit];
}
const count = (n) => n.toLocaleString("en");
const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");
const milliseconds = (ms) => ms === null ? "–" : ms < 10 ? ms.toFixed(1) + " ms" : ms < 10000 ? Math.round(ms) + " ms" : (ms / 1000).toFixed(0) + " s";
function duration(s) {
  if (s < 90) return plural(Math.round(s), "second");
  if (s < 5400) return plural(Math.round(s / 60), "minute");
  if (s < 172800) return plural(Math.round(s / 3600), "hour");
  return plural(Math.round(s / 86400), "day");
}

async function ask(path, options = {}) {
  const headers = { "X-ZoneStore": "page", ...options.headers };
  if (keys) headers.Authorization = "Basic " + keys;
  // Nothing that takes so long still comes.
  return fetch(path, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(8000), ...options, headers });
}

// No keys, keys without the right, too many wrong ones.
const AWAY = [401, 403, 429];

// Once a second, less often while nobody looks or the server does not answer.
function again(pause) {
  clearTimeout(timer);
  timer = setTimeout(poll, document.hidden ? HIDDEN : pause);
}

async function poll() {
  clearTimeout(timer);
  try {
    const response = await ask("status.json");
    if (AWAY.includes(response.status)) {
      refused(response.status, await response.text());
      return;
    }
    if (!response.ok) throw new Error((await response.text()).trim() || "status " + response.status);
    const told = await response.json();
    failures = 0;
    show(told);
    const zones = told.drive && told.drive.zones;
    if (zones && told.drive.zones_tag !== tag) await askZones();
    if ($("fact").dataset.missing) chosen(map.at);
    again(SOON);
  } catch (error) {
    failures++;
    gone(error);
    again(Math.min(LONGEST, SOON * 2 ** Math.min(failures, 4)));
  }
}

async function askZones() {
  const response = await ask("zones.json", tag ? { headers: { "If-None-Match": tag } } : {});
  if (!response.ok) return;
  tag = response.headers.get("ETag");
  map.show(await response.json());
}

function refused(status, why) {
  const gave = keys !== null;
  keys = null;
  if (gave) {
    // Perhaps everybody may look: then only the keys were wrong.
    if ($("keys").hidden) askForKeys(SIGN_IN, true);
    $("keys-wrong").textContent = why.trim();
    again(0);
    return;
  }
  $("all").hidden = true;
  $("sign").hidden = true;
  $("keys-away").hidden = true;
  state("signed out", "warn");
  alerts([]);
  if ($("keys").hidden || document.activeElement === document.body) askForKeys(SIGN_IN, false);
  if (status !== 401) $("keys-wrong").textContent = why.trim();
}

const SIGN_IN = "Sign in with the access key and the secret key of this server.";

function askForKeys(why, isOptional) {
  if (!$("keys").contains(document.activeElement)) opener = document.activeElement;
  $("keys").hidden = false;
  $("keys-away").hidden = !isOptional;
  $("keys-why").textContent = why;
  $("keys-wrong").textContent = "";
  $("access").focus();
}

// Who was in the form goes back to where they came from, or to what has been shown since.
function closeKeys() {
  const form = $("keys"), had = form.contains(document.activeElement);
  form.hidden = true;
  if (!had) return;
  for (const place of [opener, $("sign"), $("all")]) {
    if (place && place !== document.body && place.checkVisibility()) { place.focus(); return; }
  }
}

// Such a button says that it does nothing now, and keeps the focus that it has.
function enable(id, can) {
  if (can) $(id).removeAttribute("aria-disabled");
  else $(id).setAttribute("aria-disabled", "true");
}
const isEnabled = (button) => button.getAttribute("aria-disabled") !== "true";

// What went wrong with an order. That nobody answered holds only until somebody does.
function wrong(words, isSilence) {
  const place = $("cleaner-wrong");
  place.textContent = words;
  place.dataset.silence = isSilence ? "yes" : "";
}

function state(words, kind) {
  const pill = $("state");
  if (pill.textContent !== words) pill.textContent = words;
  pill.className = "pill " + kind;
}

function alerts(lines) {
  const box = $("alerts"), text = lines.join("\n");
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  box.replaceChildren(...lines.map((line) => element("p", line)));
}

function gone(error) {
  state("server gone", "bad");
  const why = error instanceof TypeError || error.name === "TimeoutError" ? "The server does not answer." : String(error.message || error);
  alerts([why + " What is below is what it said last; this page goes on asking."]);
  $("all").classList.add("old");
}

function figures(id, pairs) {
  const list = $(id);
  if (list.children.length !== pairs.length) {
    list.replaceChildren(...pairs.map(([name]) => {
      const pair = element("div");
      pair.append(element("dt", name), element("dd"));
      return pair;
    }));
  }
  pairs.forEach(([, value], at) => { list.children[at].lastChild.textContent = value; });
}

function show(told) {
  $("all").hidden = false;
  $("all").classList.remove("old");
  $("sign").hidden = keys !== null;
  if (keys !== null) closeKeys();
  if ($("cleaner-wrong").dataset.silence) wrong("", false);
  state(told.not_ready ? "not ready" : "ready", told.not_ready ? "bad" : "good");
  $("version").textContent = "ZoneStore " + told.version + ", served for " + duration(told.uptime_seconds) + ".";
  const lines = [];
  if (told.not_ready) lines.push("Objects cannot be stored: " + told.not_ready);
  const drive = told.drive;
  if (!drive) lines.push("The drive has not answered yet.");
  else {
    if (drive.age_seconds > 5) lines.push("The drive and its store were last seen " + duration(drive.age_seconds) + " ago.");
    for (const problem of drive.problems) lines.push("Not told: " + problem);
  }
  alerts(lines);
  showTraffic(told.requests);
  showLog(told.requests.log);
  showBuckets(told.buckets);
  if (!drive) return;
  showSpace(drive.space, drive.zones);
  showCleaner(drive);
  showHealth(drive.health);
  showCaches(drive.caches);
  if (drive.zones) showZones(drive.zones);
}

function line(points, most, high) {
  let path = "", drawn = false;
  points.forEach((value, at) => {
    if (value === null) { drawn = false; return; }
    const y = high - 2 - (most > 0 ? value / most : 0) * (high - 6);
    path += (drawn ? "L" : "M") + at + " " + y.toFixed(1);
    // A second by itself is a dot.
    if (!drawn) path += "h0.6";
    drawn = true;
  });
  return path;
}

function chart(id, lines, most) {
  const svg = $(id), name = "http://www.w3.org/2000/svg", wide = 120, high = 64;
  if (!svg.firstChild) {
    svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    svg.setAttribute("preserveAspectRatio", "none");
    for (const kind of Object.keys(lines)) {
      const path = document.createElementNS(name, "path");
      path.setAttribute("class", kind);
      svg.append(path);
    }
  }
  Object.values(lines).forEach((points, at) => {
    const padding = new Array(wide - points.length).fill(null);
    svg.children[at].setAttribute("d", line(padding.concat(points), most, high));
  });
}

function showTraffic(requests) {
  const history = requests.history;
  const last = history.slice(-5), seconds = Math.max(1, last.length);
  const mean = (name) => last.reduce((sum, second) => sum + second[name], 0) / seconds;
  const busy = last.filter((second) => second.p99_ms !== null).pop();
  figures("traffic", [
    ["stored", bytes(mean("received_bytes")) + "/s"],
    ["read", bytes(mean("sent_bytes")) + "/s"],
    ["requests", mean("requests").toFixed(mean("requests") < 10 ? 1 : 0) + "/s"],
    ["in flight", count(requests.in_flight)],
    ["half within", milliseconds(busy ? busy.p50_ms : null)],
    ["99 % within", milliseconds(busy ? busy.p99_ms : null)],
  ]);
  const came = history.map((second) => second.received_bytes), went = history.map((second) => second.sent_bytes);
  const most = Math.max(0, ...came, ...went);
  chart("bytes", { in: came, out: went }, most);
  $("bytes-most").textContent = most ? "up to " + bytes(most) + "/s" : "nothing in the last two minutes";
  const p50 = history.map((second) => second.p50_ms), p99 = history.map((second) => second.p99_ms);
  const slowest = Math.max(0, ...p99.filter((ms) => ms !== null));
  chart("latency", { p50, p99 }, slowest);
  $("latency-most").textContent = slowest ? "up to " + milliseconds(slowest) : "";
}

const PARTS = [
  ["live", "objects", (s) => s.live_bytes - s.inline_bytes], ["pinned", "uploads under way", (s) => s.pinned_bytes],
  ["dead", "dead", (s) => s.dead_bytes], ["free", "free", (s) => s.free_bytes],
  ["metadata", "metadata", (s) => s.metadata_bytes], ["reserve", "kept for cleaner and metadata", (s) => s.reserve_bytes],
  ["conventional_free", "free, for metadata only", (s) => s.conventional_free_bytes],
  ["set_aside", "set aside", (s) => s.set_aside_bytes], ["unusable", "unusable", (s) => s.unusable_bytes],
];

function showSpace(space, zones) {
  const parts = PARTS.map(([kind, words, of]) => [kind, words, Math.max(0, of(space))]).filter((part) => part[2] > 0);
  $("space-bar").replaceChildren(...parts.map(([kind, words, value]) => {
    const part = element("i", undefined, kind);
    part.style.width = 100 * value / space.drive_bytes + "%";
    part.title = words + ": " + bytes(value);
    return part;
  }));
  $("space").replaceChildren(...parts.map(([kind, words, value]) => {
    const item = element("li");
    item.append(element("i", undefined, "key " + kind), words + " " + bytes(value));
    return item;
  }));
  let words = bytes(space.available_bytes) + " can still be stored of " + bytes(space.capacity_bytes) + ".";
  if (space.host_free_bytes !== null) words += " The host's disk has " + bytes(space.host_free_bytes) + " left.";
  if (zones && zones.totals.space_amplification) words += " " + zones.totals.space_amplification.toFixed(2) + " bytes of zones are used for each byte of objects, metadata included.";
  $("space-words").textContent = words;
}

const WHY = {
  asked: "as asked", ahead: "for a stock of free zones", urgent: "because hardly any zone is free",
  host: "because the host's disk is nearly full", needed: "because a writer waits for a zone",
};

function showCleaner(drive) {
  const cleaner = drive.cleaner, hand = cleaner.in_hand;
  let words;
  if (hand) {
    words = "Cleans zone " + hand.zone + " " + (WHY[hand.why] || "") + ": " + bytes(hand.moved_bytes) + " of " + bytes(hand.live_bytes) + " moved" + (hand.waits ? "; its pace lets it wait." : ".");
  } else if (cleaner.requested) words = "Cleans all zones, as asked.";
  else if (!cleaner.automatic) words = "Stopped: it starts only when a writer waits for a zone, or when it is started.";
  else words = "Idle; it starts by itself when free zones run low" + (cleaner.is_in_hours ? "." : ", outside its hours only when that is urgent.");
  $("cleaner-words").textContent = words;
  const bar = $("cleaner-progress");
  bar.style.visibility = hand ? "visible" : "hidden";
  bar.value = hand && hand.live_bytes ? hand.moved_bytes / hand.live_bytes : 0;
  figures("cleaner", [
    ["pace", drive.pace + (cleaner.pace_bytes_per_second && !drive.pace.endsWith("/s") ? ", now " + bytes(cleaner.pace_bytes_per_second) + "/s" : "")],
    ["zones cleaned", count(cleaner.zones_cleaned)], ["moved", bytes(cleaner.bytes_moved)],
    ["free zones", count(cleaner.free_now) + " of " + count(cleaner.most_free)],
    ["with dead bytes", plural(cleaner.dirty_zones, "zone")],
    ["written per byte", cleaner.write_amplification ? cleaner.write_amplification.toFixed(2) : "–"],
  ]);
  enable("start", !cleaner.requested);
  enable("stop", cleaner.automatic || cleaner.requested);
  if (document.activeElement !== $("pace") && !$("pace").dataset.edited) $("pace").value = drive.pace;
}

function showHealth(health) {
  const lines = [];
  const add = (words, kind) => lines.push(element("li", words, kind));
  if (!health) add("Not told yet.", "quiet");
  else {
    if (health.failure) add("Nothing can be written before a restart: " + health.failure, "bad");
    for (const waiting of health.waiting) add("The drive has not answered a command (" + waiting.command + ") for " + duration(waiting.seconds) + ".", "bad");
    for (const zone of health.zones) add("Zone " + zone.zone + ": " + String(zone.why).replaceAll("_", " ") + ", " + bytes(zone.live_bytes) + " of objects; " + zone.error, "bad");
    if (health.objects) add(plural(health.objects, "object") + " in these zones: " + health.object_names.slice(0, 5).join(", ") + (health.objects > 5 ? " …" : ""), "bad");
    if (health.lost_objects) add(plural(health.lost_objects, "object") + " with " + bytes(health.lost_bytes) + " that are lost: " + health.losses.slice(0, 5).map((loss) => loss.object).join(", "), "bad");
    for (const damage of health.metadata) add("Metadata: " + damage, "bad");
    for (const zone of health.metadata_zones) add("Zone " + zone.zone + " of the metadata (" + zone.purpose + ") is " + zone.condition.replaceAll("_", "-") + "; what other zones have counts.", "warn");
    if (health.grade !== "good") add("The drive is " + health.grade + ".", health.grade === "failing" ? "bad" : "warn");
    if (health.damaged_copies) add("Metadata in " + plural(health.damaged_copies, "zone") + " has a damaged copy; it is written anew.", "warn");
    if (!lines.length) add("Nothing is known to be lost or at risk.", "good");
    if (health.unusable_zones) add(plural(health.unusable_zones, "zone") + " out of use, with nothing in them.", "warn");
    if (health.scrub) add(scrubWords(health.scrub), health.scrub.stopped_micros ? "warn" : "quiet");
  }
  $("health").replaceChildren(...lines);
}

function scrubWords(scrub) {
  const when = (micros) => micros ? new Date(micros / 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC" : "never";
  let words = "Scrub: all metadata was looked at last: " + when(scrub.metadata_micros) + "; all data: " + when(scrub.data_micros) + ".";
  if (scrub.began_micros) words += " A pass over the data has read " + bytes(scrub.bytes_read) + " of " + bytes(scrub.bytes_all) + ".";
  if (scrub.stopped_micros) words += " It was stopped at " + when(scrub.stopped_micros) + ", and begins again by zonestore store scrub, or when the next pass is due.";
  return words;
}

function rows(id, made) { $(id).tBodies[0].replaceChildren(...made); }
function row(...cells) {
  const made = element("tr");
  for (const [text, kind] of cells) made.append(element("td", text, kind));
  return made;
}

function showCaches(caches) {
  rows("caches", Object.entries(caches).map(([name, cache]) => {
    const all = cache.hits + cache.misses;
    const hits = cache.budget_bytes === 0 ? "none" : all ? (100 * cache.hits / all).toFixed(1) + " %" : "–";
    return row([name === "data" ? "objects" : name], [bytes(cache.held_bytes), "n"], [bytes(cache.budget_bytes), "n"], [hits, "n"]);
  }));
}

function showZones(zones) {
  $("path").textContent = zones.path;
  document.title = zones.path.split("/").pop() + " – ZoneStore";
  const geometry = zones.geometry, totals = zones.totals;
  let words = plural(geometry.zone_count, "zone") + " of " + bytes(geometry.zone_capacity) + "; " + count(totals.active_zones) + " active" +
    (geometry.max_active_zones ? " of at most " + count(geometry.max_active_zones) : "") + ", " + count(totals.empty_zones) + " empty.";
  if (zones.written_bytes_per_second) words += " Write pointers move by " + bytes(zones.written_bytes_per_second) + "/s.";
  $("zones-words").textContent = words;
  $("owners").replaceChildren(...Object.entries(zones.owners).map(([owner, share]) => {
    const item = element("li"), name = OWNERS[owner] || owner;
    const key = element("i", undefined, "key");
    key.style.background = "var(--" + className(name) + ")";
    item.append(key, name + " " + count(share.zones));
    return item;
  }));
}

// As the map's codes name them.
const OWNERS = { wal: "WAL", sst: "SST", shared_ssts: "shared SSTs", other_files: "other files", unnamed: "not named", given_up: "given up", read_only: "read-only" };

function showBuckets(told) {
  if (!told) { $("buckets-words").textContent = "Being counted."; return; }
  const sorted = [...told.buckets].sort((a, b) => b.bytes - a.bytes), shown = sorted.slice(0, 200);
  const all = sorted.reduce((sum, bucket) => sum + bucket.bytes, 0);
  $("buckets-words").textContent = sorted.length === 0 ? "None." : plural(sorted.length, "bucket") + ", " + bytes(all) + "; counted " + duration(told.age_seconds) + " ago." +
    (sorted.length > shown.length ? " The largest " + shown.length + ":" : "");
  rows("buckets", shown.map((bucket) => row([bucket.name, "name"], [count(bucket.objects), "n"], [bytes(bucket.bytes), "n"])));
}

function showLog(log) {
  const mark = log.length ? log[0].time_ms + " " + log.length + " " + log[0].resource : "";
  if (mark === newest) return;
  newest = mark;
  const clock = (ms) => new Date(ms).toTimeString().slice(0, 8);
  rows("log", log.map((entry) => row(
    [clock(entry.time_ms)], [entry.operation === "refused" ? entry.method + " (refused)" : entry.operation], [readable(entry.resource), "name"],
    [entry.status + (entry.is_whole ? "" : " cut"), "n " + (entry.status >= 500 || !entry.is_whole ? "bad" : entry.status >= 400 ? "warn" : "")],
    [entry.received_bytes ? bytes(entry.received_bytes) : "", "n"], [entry.sent_bytes ? bytes(entry.sent_bytes) : "", "n"],
    [entry.milliseconds.toFixed(entry.milliseconds < 100 ? 1 : 0), "n"])));
}

function readable(path) {
  try { return decodeURIComponent(path); } catch { return path; }
}

// What is exact is asked for when somebody has stayed at a zone for a moment.
function chosen(zone) {
  clearTimeout(asking);
  asking = setTimeout(async () => {
    try {
      const response = await ask("zone.json?zone=" + zone);
      if (map.at !== zone) return;
      if (!response.ok) throw new Error("status " + response.status);
      const told = await response.json();
      const dead = told.dead_bytes === null ? "dead bytes not known" : bytes(told.dead_bytes) + " dead";
      const written = told.written_bytes === null ? "how much is written is not known" : bytes(told.written_bytes) + " of " + bytes(told.capacity) + " written";
      const live = told.written_bytes === null && told.live_bytes ? ", " + bytes(told.live_bytes) + " of it live" : "";
      fact("Zone " + told.zone + ": " + (OWNERS[told.owner] || told.owner) + (told.owner === told.condition ? "" : ", " + told.condition.replaceAll("_", " ")) + "; " +
        written + live + ", " + dead + ".", false);
    } catch { if (map.at === zone) fact("Zone " + zone + ": the server does not tell.", true); }
  }, 60);
}

// The line below the map; what is missing is asked for again when the server answers.
function fact(words, isMissing) {
  const place = $("fact");
  if (place.textContent !== words) place.textContent = words;
  if (isMissing) place.dataset.missing = "yes";
  else delete place.dataset.missing;
}

async function order(body) {
  wrong("", false);
  if (!keys) { askForKeys("Changing the cleaner needs the keys.", true); return; }
  try {
    const response = await ask("cleaner", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (AWAY.includes(response.status)) { refused(response.status, await response.text()); return; }
    if (!response.ok) { wrong((await response.text()).trim(), false); return; }
    delete $("pace").dataset.edited;
    poll();
  } catch { wrong("The server does not answer.", true); }
}

const map = new ZoneMap($("map"), chosen);
for (const action of ["start", "stop"]) $(action).addEventListener("click", (event) => { if (isEnabled(event.currentTarget)) order({ action }); });
$("pace").addEventListener("input", () => { $("pace").dataset.edited = "yes"; });
$("pace-form").addEventListener("submit", (event) => { event.preventDefault(); order({ pace: $("pace").value.trim() }); });
$("sign").addEventListener("click", () => askForKeys("Changing the cleaner needs the keys.", true));
$("keys-away").addEventListener("click", closeKeys);
$("keys").addEventListener("submit", (event) => {
  event.preventDefault();
  const pair = new TextEncoder().encode($("access").value.trim() + ":" + $("secret").value.trim());
  keys = btoa(String.fromCharCode(...pair));
  $("secret").value = $("keys-wrong").textContent = "";
  check();
});

// Where everybody may look, wrong keys would be noticed only by the next order.
async function check() {
  await poll();
  if (keys) closeKeys();
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
poll();
