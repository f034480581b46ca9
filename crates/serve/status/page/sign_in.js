// The form for the keys, and what is shown to whoever has none.

import { $ } from "./elements.js";
import { alerts, state } from "./notices.js";
import { dropKeys, hasKeys, takeKeys } from "./server.js";

const SIGN_IN = "Sign in with the access key and the secret key of this server.";
// `changed`: the keys have gone. `given`: there are new ones, which may be wrong.
let opener = null, changed = () => {}, given = async () => {};

export function whenKeys(tell) { ({ changed, given } = tell); }

export function refused(status, why) {
  const gave = hasKeys();
  dropKeys();
  if (gave) {
    // Perhaps everybody may look: then only the keys were wrong.
    if ($("keys").hidden) askForKeys(SIGN_IN, true);
    $("keys-wrong").textContent = why.trim();
    changed();
    return;
  }
  $("all").hidden = true;
  $("sign").hidden = true;
  $("keys-away").hidden = true;
  state("signed out", "warn");
  alerts([]);
  if ($("keys").hidden || document.activeElement === document.body) askForKeys(SIGN_IN, false);
  if (status !== 401) $("keys-wrong").textContent = why.trim();
}

export function askForKeys(why, isOptional) {
  if (!$("keys").contains(document.activeElement)) opener = document.activeElement;
  $("keys").hidden = false;
  $("keys-away").hidden = !isOptional;
  $("keys-why").textContent = why;
  $("keys-wrong").textContent = "";
  $("access").focus();
}

// Who was in the form goes back to where they came from, or to what has been shown since.
export function closeKeys() {
  const form = $("keys"), had = form.contains(document.activeElement);
  form.hidden = true;
  if (!had) return;
  for (const place of [opener, $("sign"), $("all")]) {
    if (place && place !== document.body && place.checkVisibility()) { place.focus(); return; }
  }
}

$("sign").addEventListener("click", () => askForKeys("Changing the cleaner needs the keys.", true));
$("keys-away").addEventListener("click", closeKeys);
$("keys").addEventListener("submit", async (event) => {
  event.preventDefault();
  takeKeys($("access").value.trim(), $("secret").value.trim());
  $("secret").value = $("keys-wrong").textContent = "";
  // Where everybody may look, wrong keys would be noticed only by the next order.
  await given();
  if (hasKeys()) closeKeys();
});
