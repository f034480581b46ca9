"""The table of docs/comparison.md, out of the results of scripts/compare."""

MISSING = "—"


def dig(value, *path):
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def percent(value):
    return MISSING if value is None else f"{value * 100:.1f} %"


def number(value, digits=2):
    return MISSING if value is None else f"{value:,.{digits}f}"


def put(size, what, digits=2):
    return lambda system: number(dig(system, "puts", size, what), digits)


def refused(system):
    rows = dig(system, "puts")
    if rows is None:
        return MISSING
    counts = [row.get("refused", 0) for row in rows.values()]
    said = sorted({words for row in rows.values() for words in row.get("said", [])})
    return f"{sum(counts)}, {dig(rows, '4 KiB, 8 clients', 'refused') or 0}" + (f" ({', '.join(said)})" if said else "")


def at_full(system):
    full = dig(system, "full")
    if full is None:
        return MISSING
    return ", ".join(full.get("said", [])) + (f"; then {full['error']}" if "error" in full else "") or MISSING


def after_full(system):
    after = dig(system, "full", "after_full")
    if not after:
        return MISSING
    if "error" in after:
        return f"{after['deleted']} deleted, then: {after['error']}"
    wrong = f"; {after['wrong_of_100']} of 100 wrong" if after["wrong_of_100"] else ""
    return f"{after['put_again']} of {after['deleted']}{wrong}"


def overwritten(system, *path):
    row = dig(system, *path, "full", "overwrite")
    if row is None:
        return MISSING
    if "error" in row:
        return f"after {row['overwritten']}: {row['error']}"
    if row["overwritten"] < row["objects"]:
        return f"{row['device_bytes_per_user_byte']:.2f}, then full after {row['overwritten']} of {row['objects']}"
    return number(row.get("second_half"))


def cuts(system, step="cuts"):
    rounds = dig(system, step)
    if not rounds:
        return MISSING
    good = [one for one in rounds if "error" not in one]
    said = [one["error"] for one in rounds if "error" in one] + [one["mount"] for one in good if one["mount"] != "as usual"]
    words = f"{sum(one['lost'] for one in good)} lost, {sum(one['wrong'] for one in good)} wrong of " \
            f"{sum(one['acknowledged'] for one in good):,} in {len(rounds)} cuts"
    return words + "".join(f"; {one}" for one in sorted(set(said)))


def flipped(system):
    return dig(system, "flip", "outcome") or dig(system, "flip", "error") or MISSING


def database(system):
    return dig(system, "database", "error") or number(dig(system, "database", "device_bytes_per_user_byte"))


ROWS = (
    ("Stored until full, objects of 1 MiB, of the sequential zones", lambda s: percent(dig(s, "full", "stored_of_sequential"))),
    ("the same, of the whole drive", lambda s: percent(dig(s, "full", "stored_of_raw"))),
    ("What a put to a full drive says", at_full),
    ("A tenth deleted on the full drive: objects that fit again", after_full),
    ("Device bytes ÷ user bytes, filling the drive", lambda s: number(dig(s, "full", "device_bytes_per_user_byte"))),
    ("Overwriting at 80 % of what it took: device ÷ user bytes, second half", overwritten),
    ("the same on 1 GiB (`--short`)", lambda s: overwritten(s, "short")),
    ("live objects then, of the whole drive", lambda s: percent(dig(s, "full", "overwrite", "live_of_raw"))),
    *((f"Device ÷ user bytes, synced puts of {size}", put(size, "device_bytes_per_user_byte"))
      for size in ("4 KiB", "64 KiB", "1 MiB", "16 MiB")),
    *((f"Flushes a synced put of {size}", put(size, "flushes_per_put")) for size in ("4 KiB", "1 MiB", "16 MiB")),
    ("the same of 4 KiB, 8 clients at once", put("4 KiB, 8 clients", "flushes_per_put")),
    ("Puts refused on the empty drive, of all sizes, of those by 8 clients", refused),
    ("db_bench fillrandom and overwrite: device ÷ user bytes", database),
    ("its flushes", lambda s: number(dig(s, "database", "flushes"), 0)),
    ("Power cut during synced puts of 64 KiB: acknowledged objects", cuts),
    ("the same without any fsync, as a control", lambda s: cuts(s, "control")),
    ("One bit of an object's data changed on the drive, then read", flipped),
)


def markdown(results):
    short = results.get("short", {})
    systems = [dict(system, short=short.get(name)) for name, system in results["systems"].items()]
    lines = ["| | " + " | ".join(system["label"] for system in systems) + " |", "|---" * (len(systems) + 1) + "|"]
    for label, cell in ROWS:
        lines.append(f"| {label} | " + " | ".join(cell(system).replace("|", "/") for system in systems) + " |")
    kernel = ", ".join(sorted({system["kernel"] for system in systems}))
    tools = ", ".join(f"{name} {version}" for name, version in results["versions"].items() if not name.startswith("linux"))
    lines += ["", f"Measured on {results['date']} with Linux {kernel}, {tools}."]
    return "\n".join(lines)
