// Requests of the last two minutes: rates, latencies, and both as lines.

import { $, figures } from "./elements.js";
import { bytes, count, milliseconds } from "./words.js";

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

export function showTraffic(requests) {
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
