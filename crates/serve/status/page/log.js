// The last requests.

import { row, rows } from "./elements.js";
import { bytes, readable } from "./words.js";

// Of what is shown.
let newest = null;

export function showLog(log) {
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
