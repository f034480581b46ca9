//! `zea ls --zone|dump|put|get`: lists, stores and reads extents.

use super::{found, instances, readable_instances};
use crate::drive_file;
use crate::errors::{CommandResult, fail};
use crate::local_file;
use crate::output::Output;
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use terminal::human;
use zea::{Instance, LogicalAddress, Placed, Sequence, check};
use zeafs::Examined;
use zone::{ByteOffset, ZoneId};

/// `zea ls --zone`.
pub fn list(path: &Path, zone: u32, out: &mut Output) -> CommandResult {
    let drive = drive_file::open_read_only(path)?;
    let instance = Instance::open(Arc::new(drive), ZoneId(zone), Sequence::default())?;
    let extents = found(&instance)?;
    let head = ["address", "lba", "bytes", "order"]
        .map(str::to_owned)
        .to_vec();
    let rows = extents.iter().map(|extent| {
        let numbers = [extent.address.0, extent.lba.0, extent.length, extent.order];
        numbers.map(|number| number.to_string()).to_vec()
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    out.table(&[], &rows)?;
    out.value(&json!({ "zone": zone, "extents": extents }))
}

/// `zea dump`.
pub fn dump(path: &Path, zone: Option<u32>, out: &mut Output) -> CommandResult {
    let mut zones = Vec::new();
    let all = readable_instances(path)?;
    let wanted = all
        .iter()
        .filter(|i| zone.is_none_or(|zone| i.zone() == ZoneId(zone)));
    let wanted: Vec<&Instance> = wanted.collect();
    match (wanted.is_empty(), zone) {
        (true, Some(zone)) => return Err(zea::Error::NotFormatted { zone: ZoneId(zone) }.into()),
        (true, None) => out.line(format_args!("no zone has extents"))?,
        _ => {}
    }
    for instance in wanted {
        let checked = check(instance, false)?;
        let back_pointers = instance.options().back_pointers;
        out.line(format_args!(
            "zone {}  run id {}, {back_pointers} back pointers, written to {}",
            instance.zone(),
            instance.run_id(),
            instance.written()
        ))?;
        let mut lines: Vec<(u64, String)> = checked.extents.iter().map(line).collect();
        lines.extend(checked.gaps.iter().map(|gap| {
            let lost = match gap.lost {
                0 => String::new(),
                lost => format!(", {lost} extents lost"),
            };
            (
                gap.at.offset,
                format!("  {:>12}  gap of {} bytes{lost}", gap.at.offset, gap.bytes),
            )
        }));
        lines.sort();
        for (_, line) in lines {
            out.line(format_args!("{line}"))?;
        }
        for error in &checked.damage {
            out.line(format_args!("  damaged: {error}"))?;
        }
        let damage: Vec<String> = checked.damage.iter().map(ToString::to_string).collect();
        zones.push(json!({
            "zone": instance.zone(), "run_id": instance.run_id(), "back_pointers": back_pointers,
            "written": instance.written(), "extents": checked.extents, "gaps": checked.gaps,
            "damage": damage,
        }));
    }
    out.value(&json!({ "zones": zones }))
}

fn line(extent: &Placed) -> (u64, String) {
    let Placed {
        address,
        at,
        length,
        order,
        number,
        checksum,
        ..
    } = extent;
    let text = format!(
        "  {:>12}  extent {number}, order {order}, address {address}, {length} bytes, checksum {checksum:016x}",
        at.offset
    );
    (at.offset, text)
}

/// `zea put`.
pub fn put(
    path: &Path,
    file: &Path,
    address: u64,
    zone: Option<u32>,
    out: &mut Output,
) -> CommandResult {
    let (mut source, size) = local_file::source(file)?;
    let drive = drive_file::open(path)?;
    if Examined::is_there(&drive)? {
        let shown = path.display();
        return fail!(
            Refused,
            "{shown}: its extents are those of a ZEAFS, which would not know of this one"
        );
    }
    let (all, refused) = instances(drive)?;
    let in_zone: Vec<&Instance> = all
        .iter()
        .filter(|i| zone.is_none_or(|zone| i.zone() == ZoneId(zone)))
        .collect();
    if let (true, Some(zone)) = (in_zone.is_empty(), zone) {
        if let Some((_, error)) = refused.into_iter().find(|(id, _)| id.0 == zone) {
            return Err(error.into());
        }
        return Err(zea::Error::NotFormatted { zone: ZoneId(zone) }.into());
    }
    // Reads no more into memory than fits in a zone.
    let most = in_zone
        .iter()
        .map(|instance| instance.room())
        .max()
        .unwrap_or(0);
    let mut data = Vec::new();
    if size.is_none_or(|size| size <= most) {
        source.by_ref().take(most + 1).read_to_end(&mut data)?;
    }
    let length = size.unwrap_or(0).max(data.len() as u64);
    let Some(instance) = in_zone.iter().find(|i| i.room() >= length) else {
        let shown = file.display();
        return fail!(
            NoSpace, "{shown}: more than {}, the largest extent that still fits", human(most);
            "`zonestore zea ls DRIVE` shows the zones"
        );
    };
    // The sequence of puts continues after that of all zones, which their opening has read.
    let placed = instance.put(LogicalAddress(address), &data)?;
    instance.flush()?;
    out.line(format_args!("{} {}", placed.lba.0, placed.length))?;
    out.value(&placed)
}

/// `zea get`.
pub fn get(path: &Path, lba: u64, length: u64, file: &Path, out: &mut Output) -> CommandResult {
    let drive = drive_file::open_read_only(path)?;
    let lba = ByteOffset(lba);
    let Some(place) = device::ZonedDevice::geometry(&drive).address(lba) else {
        return fail!(NotFound, "the drive ends in front of byte {}", lba.0);
    };
    let instance = Instance::open(Arc::new(drive), place.zone, Sequence::default())?;
    let data = instance.get(lba, length)?;
    let mut destination = local_file::destination(file)?;
    local_file::target(&mut destination, out).write_all(&data)?;
    let Some(destination) = destination else {
        return Ok(());
    };
    destination.publish()?;
    out.line(format_args!("{}: {} read", file.display(), human(length)))?;
    out.value(&json!({ "file": file.display().to_string(), "bytes": length }))
}
