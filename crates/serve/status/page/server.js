// Questions to the server that the page is from, with the keys, which are in memory only.

let keys = null;

export const hasKeys = () => keys !== null;

export function takeKeys(access, secret) {
  keys = btoa(String.fromCharCode(...new TextEncoder().encode(access + ":" + secret)));
}

export function dropKeys() { keys = null; }

export async function ask(path, options = {}) {
  const headers = { "X-ZoneStore": "page", ...options.headers };
  if (keys) headers.Authorization = "Basic " + keys;
  // Nothing that takes so long still comes.
  return fetch(path, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(8000), ...options, headers });
}

// No keys, keys without the right, too many wrong ones.
export const AWAY = [401, 403, 429];
