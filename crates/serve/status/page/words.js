// Numbers, times and paths as people read them.

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= 1024 && unit < 5) { n /= 1024; unit++; }
  return (unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + " " + units[unit];
}

export const count = (n) => n.toLocaleString("en");
export const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");
export const milliseconds = (ms) => ms === null ? "–" : ms < 10 ? ms.toFixed(1) + " ms" : ms < 10000 ? Math.round(ms) + " ms" : (ms / 1000).toFixed(0) + " s";
export function duration(s) {
  if (s < 90) return plural(Math.round(s), "second");
  if (s < 5400) return plural(Math.round(s / 60), "minute");
  if (s < 172800) return plural(Math.round(s / 3600), "hour");
  return plural(Math.round(s / 86400), "day");
}

export function readable(path) {
  try { return decodeURIComponent(path); } catch { return path; }
}
