//! Fills one zone after the other, with ZEA extents or with plain writes.

use crate::bed::Error;
use device::ZonedDevice;
use runtime::Runtime;
use std::sync::Arc;
use zea::{Instance, LogicalAddress, Options, Placed, Sequence};
use zone::{ByteOffset, ZoneId, ZoneKind};

/// The sequential zones of a drive, in order.
fn zones(device: &dyn ZonedDevice) -> impl Iterator<Item = ZoneId> + use<> {
    let g = device.geometry().clone();
    g.zones()
        .filter(move |zone| g.kind(*zone) != ZoneKind::Conventional)
}

/// Writes extents to ZEA instances, one zone after the other.
pub struct Extents<'a> {
    device: Arc<dyn ZonedDevice>,
    runtime: &'a Runtime,
    zones: Box<dyn Iterator<Item = ZoneId>>,
    options: Options,
    sequence: Sequence,
    pub instances: Vec<Instance>,
    /// The extents put so far, each with the index of its instance.
    pub placed: Vec<(usize, Placed)>,
}

impl<'a> Extents<'a> {
    pub fn new(
        device: &Arc<dyn ZonedDevice>,
        back_pointers: u32,
        runtime: &'a Runtime,
    ) -> Result<Self, Error> {
        let mut new = Self {
            device: device.clone(),
            runtime,
            zones: Box::new(zones(&**device)),
            options: Options { back_pointers },
            sequence: Sequence::default(),
            instances: Vec::new(),
            placed: Vec::new(),
        };
        new.another(0)?;
        Ok(new)
    }

    fn another(&mut self, bytes: u64) -> Result<(), Error> {
        let zone = self.zones.next().ok_or(Error::NoRoom { bytes })?;
        let made = Instance::format(
            self.device.clone(),
            zone,
            self.options,
            self.sequence.clone(),
            self.runtime,
        )?;
        self.instances.push(made);
        Ok(())
    }

    pub fn put(&mut self, data: &[u8]) -> Result<(), Error> {
        let length = data.len() as u64;
        if length > Instance::largest(self.device.geometry()) {
            return Err(Error::NoRoom { bytes: length });
        }
        if self
            .instances
            .last()
            .is_none_or(|last| last.room() < length)
        {
            // The finished zone frees its active resource.
            if let Some(last) = self.instances.last() {
                last.finish()?;
            }
            self.another(length)?;
        }
        let address = LogicalAddress(self.placed.len() as u64);
        let at = self.instances.len() - 1;
        let placed = self.instances[at].put(address, data)?;
        self.placed.push((at, placed));
        Ok(())
    }

    /// Gets the first `count` extents in the order of their puts.
    pub fn get(&self, count: usize) -> Result<(), Error> {
        for (at, placed) in self.placed.iter().take(count) {
            self.instances[*at].get(placed.lba, placed.length)?;
        }
        Ok(())
    }
}

/// Writes the same bytes without ZEA.
pub struct Plain {
    device: Arc<dyn ZonedDevice>,
    zones: Box<dyn Iterator<Item = ZoneId>>,
    open: Option<(ZoneId, u64)>,
    pub written: Vec<ByteOffset>,
}

impl Plain {
    pub fn new(device: &Arc<dyn ZonedDevice>) -> Self {
        Self {
            device: device.clone(),
            zones: Box::new(zones(&**device)),
            open: None,
            written: Vec::new(),
        }
    }

    pub fn write(&mut self, data: &[u8]) -> Result<(), Error> {
        let (bytes, g) = (data.len() as u64, self.device.geometry());
        if self.open.is_none_or(|(_, at)| at + bytes > g.zone_capacity) {
            if let Some((zone, at)) = self.open
                && at < g.zone_capacity
            {
                self.device.finish(zone)?;
            }
            let zone = self.zones.next().ok_or(Error::NoRoom { bytes })?;
            self.open = Some((zone, 0));
        }
        if let Some((zone, at)) = &mut self.open {
            let place = ByteOffset(g.start(*zone).0 + *at);
            self.device.write(place, data)?;
            self.written.push(place);
            *at += bytes;
        }
        Ok(())
    }

    /// Reads the first `count` writes of `length` bytes in their order.
    pub fn read(&self, length: usize, count: usize) -> Result<(), Error> {
        let mut buffer = vec![0; length];
        for place in self.written.iter().take(count) {
            self.device.read(*place, &mut buffer)?;
        }
        Ok(())
    }
}
