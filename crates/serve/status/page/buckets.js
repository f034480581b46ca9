// The buckets, the largest first.

import { $, row, rows } from "./elements.js";
import { bytes, count, duration, plural } from "./words.js";

export function showBuckets(told) {
  if (!told) { $("buckets-words").textContent = "Being counted."; return; }
  const sorted = [...told.buckets].sort((a, b) => b.bytes - a.bytes), shown = sorted.slice(0, 200);
  const all = sorted.reduce((sum, bucket) => sum + bucket.bytes, 0);
  $("buckets-words").textContent = sorted.length === 0 ? "None." : plural(sorted.length, "bucket") + ", " + bytes(all) + "; counted " + duration(told.age_seconds) + " ago." +
    (told.not_counted.length > 0 ? " Not counted, as they cannot be listed (see the server's log): " + told.not_counted.join(", ") + "." : "") +
    (sorted.length > shown.length ? " The largest " + shown.length + ":" : "");
  rows("buckets", shown.map((bucket) => row([bucket.name, "name"], [count(bucket.objects), "n"], [bytes(bucket.bytes), "n"])));
}
