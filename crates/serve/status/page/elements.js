// Elements of the page. Whatever comes from outside is put in as text.

export const $ = (id) => document.getElementById(id);

export function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

export function figures(id, pairs) {
  const list = $(id);
  if (list.children.length !== pairs.length) {
    list.replaceChildren(...pairs.map(([name]) => {
      const pair = element("div");
      pair.append(element("dt", name), element("dd"));
      return pair;
    }));
  }
  pairs.forEach(([, value], at) => { list.children[at].lastChild.textContent = value; });
}

export function rows(id, made) { $(id).tBodies[0].replaceChildren(...made); }
export function row(...cells) {
  const made = element("tr");
  for (const [text, kind] of cells) made.append(element("td", text, kind));
  return made;
}

// Such a button says that it does nothing now, and keeps the focus that it has.
export function enable(id, can) {
  if (can) $(id).removeAttribute("aria-disabled");
  else $(id).setAttribute("aria-disabled", "true");
}
export const isEnabled = (button) => button.getAttribute("aria-disabled") !== "true";
