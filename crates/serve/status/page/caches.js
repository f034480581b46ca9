// What is kept in memory, and how often that was of use.

import { row, rows } from "./elements.js";
import { bytes } from "./words.js";

export function showCaches(caches) {
  rows("caches", Object.entries(caches).map(([name, cache]) => {
    const all = cache.hits + cache.misses;
    const hits = cache.budget_bytes === 0 ? "none" : all ? (100 * cache.hits / all).toFixed(1) + " %" : "–";
    return row([name === "data" ? "objects" : name], [bytes(cache.held_bytes), "n"], [bytes(cache.budget_bytes), "n"], [hits, "n"]);
  }));
}
