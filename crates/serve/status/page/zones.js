// The map of the zones: a cell a zone, on a canvas. Only cells that have changed are drawn again, so that a drive with
// 110,000 zones costs no more than what it does.

const FIRST = ":".charCodeAt(0);
const UNKNOWN = 64;
const MIN_PITCH = 3;
const MAX_PITCH = 22;
const MOST_HIGH = 460;

// A character a zone, with a number behind it where several in a row have the same.
export function unpacked(text, zones) {
  const values = new Uint8Array(zones);
  let at = 0;
  for (let i = 0; i < text.length && at < zones;) {
    const value = text.charCodeAt(i++) - FIRST;
    let run = 0;
    while (i < text.length && text.charCodeAt(i) >= 48 && text.charCodeAt(i) <= 57) run = run * 10 + text.charCodeAt(i++) - 48;
    const end = Math.min(zones, at + (run || 1));
    values.fill(value, at, end);
    at = end;
  }
  return values;
}

export const className = (owner) => owner.toLowerCase().replaceAll(" ", "-");

export class ZoneMap {
  constructor(canvas, chosen) {
    this.canvas = canvas;
    // It scrolls where the map is higher than it may be.
    this.room = canvas.parentElement;
    this.context = canvas.getContext("2d");
    this.chosen = chosen;
    this.zones = 0;
    this.at = -1;
    canvas.addEventListener("keydown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerdown", (event) => this.point(event));
    new ResizeObserver(() => this.layout()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.colours = null; this.draw(); });
  }

  // New zones, as the server packs them.
  show(told) {
    const before = this.now;
    const now = { owners: told.owners, conditions: told.conditions, parts: told.parts };
    for (const name of ["owner", "condition", "written", "dead"]) now[name] = unpacked(told[name], told.zones);
    this.now = now;
    if (told.zones !== this.zones) {
      this.zones = told.zones;
      this.layout();
      return;
    }
    for (let zone = 0; zone < this.zones; zone++) {
      if (now.owner[zone] !== before.owner[zone] || now.condition[zone] !== before.condition[zone] ||
          now.written[zone] !== before.written[zone] || now.dead[zone] !== before.dead[zone]) this.cell(zone);
    }
    if (this.at >= 0) this.mark();
  }

  layout() {
    const wide = this.canvas.clientWidth;
    if (!this.zones || !wide) return;
    const most = Math.min(MOST_HIGH, parseFloat(getComputedStyle(this.room).maxHeight) || MOST_HIGH);
    let pitch = MAX_PITCH;
    while (pitch > MIN_PITCH && Math.ceil(this.zones / Math.floor(wide / pitch)) * pitch > most) pitch--;
    this.pitch = pitch;
    this.gap = pitch >= 10 ? 2 : pitch >= 5 ? 1 : 0;
    this.columns = Math.max(1, Math.floor(wide / pitch));
    const high = Math.ceil(this.zones / this.columns) * pitch;
    const scale = window.devicePixelRatio || 1;
    // Browsers refuse canvases that are very large.
    this.scale = Math.min(scale, 16000 / Math.max(high, wide));
    const size = [Math.round(wide * this.scale), Math.round(high * this.scale)];
    if (this.canvas.width !== size[0] || this.canvas.height !== size[1]) {
      [this.canvas.width, this.canvas.height] = size;
      this.canvas.style.height = high + "px";
    }
    this.draw();
  }

  draw() {
    if (!this.zones || !this.columns) return;
    this.context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    this.context.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight + this.pitch);
    for (let zone = 0; zone < this.zones; zone++) this.cell(zone);
    if (this.at >= 0) this.mark();
  }

  style() {
    const styles = getComputedStyle(document.documentElement);
    const of = (name) => styles.getPropertyValue("--" + name).trim();
    this.colours = { cell: of("cell"), card: of("card"), frame: of("frame"), owners: this.now.owners.map((owner) => of(className(owner))) };
  }

  cell(zone) {
    if (!this.colours) this.style();
    const { context, now, pitch, gap } = this;
    const x = (zone % this.columns) * pitch, y = Math.floor(zone / this.columns) * pitch, size = pitch - gap;
    const owner = now.owners[now.owner[zone]], condition = now.conditions[now.condition[zone]];
    const colour = this.colours.owners[now.owner[zone]];
    const written = now.written[zone] === UNKNOWN ? 0 : now.written[zone] / now.parts;
    const dead = now.dead[zone] === UNKNOWN ? 0 : Math.min(written, now.dead[zone] / now.parts);
    context.globalAlpha = 1;
    context.fillStyle = this.colours.card;
    context.fillRect(x, y, pitch, pitch);
    context.fillStyle = this.colours.cell;
    context.fillRect(x, y, size, size);
    if (owner === "unused") return;
    context.fillStyle = colour;
    const whole = written === 0;
    if (whole || pitch < 6) {
      // Without a write pointer, or too small for one.
      context.globalAlpha = whole ? (owner === "offline" || owner === "read-only" ? 1 : 0.45) : 0.35 + 0.65 * (written - dead);
      context.fillRect(x, y, size, size);
    } else {
      const high = Math.max(1.5, size * written), pale = size * dead;
      context.globalAlpha = 0.3;
      context.fillRect(x, y + size - high, size, pale);
      context.globalAlpha = 1;
      context.fillRect(x, y + size - high + pale, size, Math.max(0, high - pale));
    }
    context.globalAlpha = 1;
    if (condition.endsWith("open") && pitch >= 5) {
      context.strokeStyle = this.colours.frame;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    }
    if (condition === "offline" && pitch >= 8) {
      context.strokeStyle = this.colours.card;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x + 2, y + 2);
      context.lineTo(x + size - 2, y + size - 2);
      context.moveTo(x + size - 2, y + 2);
      context.lineTo(x + 2, y + size - 2);
      context.stroke();
    }
  }

  mark() {
    const { context, pitch, gap } = this;
    const x = (this.at % this.columns) * pitch, y = Math.floor(this.at / this.columns) * pitch, size = pitch - gap;
    context.strokeStyle = this.colours.frame;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(1, size - 2), Math.max(1, size - 2));
  }

  choose(zone) {
    zone = Math.max(0, Math.min(this.zones - 1, zone));
    if (zone === this.at || !this.zones) return;
    const before = this.at;
    this.at = zone;
    if (before >= 0) this.cell(before);
    this.mark();
    this.chosen(zone);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.pitch), row = Math.floor((event.clientY - box.top) / this.pitch);
    const zone = row * this.columns + column;
    if (column >= 0 && column < this.columns && zone >= 0 && zone < this.zones) this.choose(zone);
  }

  press(event) {
    const page = this.columns * 10;
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns, PageUp: -page, PageDown: page };
    let zone;
    if (event.key in moves) zone = this.at < 0 ? 0 : this.at + moves[event.key];
    else if (event.key === "Home") zone = 0;
    else if (event.key === "End") zone = this.zones - 1;
    else return;
    event.preventDefault();
    // A page may be more rows than there are.
    if (event.key.startsWith("Page")) zone = Math.min(Math.max(zone, 0), this.zones - 1);
    if (zone >= 0 && zone < this.zones) this.choose(zone);
    const top = Math.floor(this.at / this.columns) * this.pitch, { scrollTop, clientHeight } = this.room;
    if (top < scrollTop || top + this.pitch > scrollTop + clientHeight) this.room.scrollTop = top - clientHeight / 2;
    const box = this.canvas.getBoundingClientRect(), y = box.top + top;
    if (y < 0 || y > innerHeight - this.pitch) scrollBy(0, y - innerHeight / 2);
  }
}
