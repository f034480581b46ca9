// What is lost or at risk, and the scrub.

import { $, element } from "./elements.js";
import { bytes, duration, plural } from "./words.js";

export function showHealth(health) {
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
    if (health.unusable_zones) add(plural(health.unusable_zones, "zone") + " out of use and empty.", "warn");
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
