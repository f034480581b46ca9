// The sums over all zones, and what is known of the one that somebody has chosen on the map.

import { $, element } from "./elements.js";
import { ask } from "./server.js";
import { bytes, count, plural } from "./words.js";
import { ZoneMap, className } from "./zones.js";

// As the map's codes name them.
const OWNERS = { wal: "WAL", sst: "SST", shared_ssts: "shared SSTs", other_files: "other files", unnamed: "not named", given_up: "given up", read_only: "read-only" };

export function showZones(zones) {
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

let asking = 0;

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

// The server answers again.
export function askAgain() {
  if ($("fact").dataset.missing) chosen(map.at);
}

export const map = new ZoneMap($("map"), chosen);
