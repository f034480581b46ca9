// The drive's space, by its parts.

import { $, element } from "./elements.js";
import { bytes } from "./words.js";

const PARTS = [
  ["live", "objects", (s) => s.live_bytes - s.inline_bytes], ["pinned", "uploads under way", (s) => s.pinned_bytes],
  ["dead", "dead", (s) => s.dead_bytes], ["free", "free", (s) => s.free_bytes],
  ["metadata", "metadata", (s) => s.metadata_bytes], ["reserve", "kept for cleaner and metadata", (s) => s.reserve_bytes],
  ["conventional_free", "free, for metadata only", (s) => s.conventional_free_bytes],
  ["set_aside", "set aside", (s) => s.set_aside_bytes], ["unusable", "unusable", (s) => s.unusable_bytes],
];

export function showSpace(space, zones) {
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
