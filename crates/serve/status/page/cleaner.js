// What the cleaner does and why, and orders to it.

import { $, enable, figures, isEnabled } from "./elements.js";
import { AWAY, ask, hasKeys } from "./server.js";
import { askForKeys, refused } from "./sign_in.js";
import { bytes, count, plural } from "./words.js";

const WHY = {
  asked: "as asked", ahead: "for a stock of free zones", urgent: "because hardly any zone is free",
  host: "because the host's disk is nearly full", needed: "because a writer waits for a zone",
};

export function showCleaner(drive) {
  const cleaner = drive.cleaner, hand = cleaner.in_hand;
  let words;
  if (hand) {
    words = "Cleans zone " + hand.zone + " " + (WHY[hand.why] || "") + ": " + bytes(hand.moved_bytes) + " of " + bytes(hand.live_bytes) + " moved" + (hand.waits ? "; its pace lets it wait." : ".");
  } else if (cleaner.requested) words = "Cleans all zones, as asked.";
  else if (!cleaner.automatic) words = "Stopped: it starts only when a writer waits for a zone, or when it is started.";
  else words = "Idle; it starts by itself when free zones run low" + (cleaner.is_in_hours ? "." : ", outside its hours only when that is urgent.");
  $("cleaner-words").textContent = words;
  const bar = $("cleaner-progress");
  bar.style.visibility = hand ? "visible" : "hidden";
  bar.value = hand && hand.live_bytes ? hand.moved_bytes / hand.live_bytes : 0;
  figures("cleaner", [
    ["pace", drive.pace + (cleaner.pace_bytes_per_second && !drive.pace.endsWith("/s") ? ", now " + bytes(cleaner.pace_bytes_per_second) + "/s" : "")],
    ["zones cleaned", count(cleaner.zones_cleaned)], ["moved", bytes(cleaner.bytes_moved)],
    ["free zones", count(cleaner.free_now) + " of " + count(cleaner.most_free)],
    ["with dead bytes", plural(cleaner.dirty_zones, "zone")],
    ["written per byte", cleaner.write_amplification ? cleaner.write_amplification.toFixed(2) : "–"],
  ]);
  enable("start", !cleaner.requested);
  enable("stop", cleaner.automatic || cleaner.requested);
  if (document.activeElement !== $("pace") && !$("pace").dataset.edited) $("pace").value = drive.pace;
}

// What went wrong with an order. That nobody answered holds only until somebody does.
function wrong(words, isSilence) {
  const place = $("cleaner-wrong");
  place.textContent = words;
  place.dataset.silence = isSilence ? "yes" : "";
}

// Somebody answers again.
export function answered() {
  if ($("cleaner-wrong").dataset.silence) wrong("", false);
}

async function order(body, ordered) {
  wrong("", false);
  if (!hasKeys()) { askForKeys("Changing the cleaner needs the keys.", true); return; }
  try {
    const response = await ask("cleaner", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (AWAY.includes(response.status)) { refused(response.status, await response.text()); return; }
    if (!response.ok) { wrong((await response.text()).trim(), false); return; }
    delete $("pace").dataset.edited;
    ordered();
  } catch { wrong("The server does not answer.", true); }
}

// Lets people order it about; `ordered` is called when the server has done what was asked.
export function takeOrders(ordered) {
  for (const action of ["start", "stop"]) {
    $(action).addEventListener("click", (event) => { if (isEnabled(event.currentTarget)) order({ action }, ordered); });
  }
  $("pace").addEventListener("input", () => { $("pace").dataset.edited = "yes"; });
  $("pace-form").addEventListener("submit", (event) => { event.preventDefault(); order({ pace: $("pace").value.trim() }, ordered); });
}
