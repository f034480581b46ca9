// How the server is, in a word, and what is wrong, above all else.

import { $, element } from "./elements.js";

export function state(words, kind) {
  const pill = $("state");
  if (pill.textContent !== words) pill.textContent = words;
  pill.className = "pill " + kind;
}

export function alerts(lines) {
  const box = $("alerts"), text = lines.join("\n");
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  box.replaceChildren(...lines.map((line) => element("p", line)));
}

export function gone(error) {
  state("server gone", "bad");
  const why = error instanceof TypeError || error.name === "TimeoutError" ? "The server does not answer." : String(error.message || error);
  alerts([why + " What is below is what it said last; this page goes on asking."]);
  $("all").classList.add("old");
}
