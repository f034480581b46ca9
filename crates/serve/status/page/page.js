// Asks the server once a second and shows what it says.

import { showBuckets } from "./buckets.js";
import { showCaches } from "./caches.js";
import { answered, showCleaner, takeOrders } from "./cleaner.js";
import { $ } from "./elements.js";
import { showHealth } from "./health.js";
import { showLog } from "./log.js";
import { alerts, gone, state } from "./notices.js";
import { AWAY, ask, hasKeys } from "./server.js";
import { closeKeys, refused, whenKeys } from "./sign_in.js";
import { showSpace } from "./space.js";
import { showTraffic } from "./traffic.js";
import { duration } from "./words.js";
import { askAgain, map, showZones } from "./zone_facts.js";

const SOON = 1000, HIDDEN = 15000, LONGEST = 10000;
let tag = null, failures = 0, timer = 0;

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
    askAgain();
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

function show(told) {
  $("all").hidden = false;
  $("all").classList.remove("old");
  $("sign").hidden = hasKeys();
  if (hasKeys()) closeKeys();
  answered();
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

whenKeys({ changed: () => again(0), given: poll });
takeOrders(poll);
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
poll();
