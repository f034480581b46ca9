//! Time to find all extents at start-up, by their number and the number of back pointers in each (figure 2a).

use crate::bed::{Bed, Error};
use crate::filling::Extents;
use crate::transfers::timed;
use serde::Serialize;
use zea::{Instance, Sequence};

/// One measured start.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct StartUp {
    /// Back pointers in each extent's metadata.
    pub back_pointers: u32,
    /// Number of extents found.
    pub extents: u64,
    /// Seconds from opening the zone until the last extent was yielded.
    pub seconds: f64,
}

/// Puts extents of `size` bytes, and measures the time to find them all whenever one of `counts` (in ascending
/// order) is reached, for each number of back pointers.
///
/// Extents in several zones are found zone by zone.
///
/// # Errors
/// The drive is too small or fails, or the caller stops the benchmark.
pub fn start_ups(
    bed: &mut dyn Bed,
    back_pointers: &[u32],
    counts: &[u64],
    size: u64,
    fill: u8,
) -> Result<Vec<StartUp>, Error> {
    let data = vec![fill; usize::try_from(size).unwrap_or(usize::MAX)];
    let mut all = Vec::new();
    for back_pointers in back_pointers {
        bed.next(&format!("start-up with {back_pointers} back pointers"))?;
        let device = bed.fresh()?;
        let runtime = bed.runtime().clone();
        let mut extents = Extents::new(&device, *back_pointers, &runtime)?;
        for count in counts {
            while (extents.placed.len() as u64) < *count {
                extents.put(&data)?;
            }
            device.flush()?;
            let mut found = 0;
            let seconds = timed(&runtime, || {
                for filled in &extents.instances {
                    let again = Instance::open(device.clone(), filled.zone(), Sequence::default())?;
                    for extent in again.backward() {
                        extent?;
                        found += 1;
                    }
                }
                Ok(())
            })?;
            all.push(StartUp {
                back_pointers: *back_pointers,
                extents: found,
                seconds,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Work, transfers};
    use device::{MemoryDrive, ZonedDevice};
    use runtime::Runtime;
    use std::sync::Arc;
    use zone::{Geometry, ZoneKind};

    struct Memory(Runtime);

    impl Bed for Memory {
        fn fresh(&mut self) -> Result<Arc<dyn ZonedDevice>, Error> {
            let g = Geometry {
                block_size: 4096,
                zone_size: 1 << 20,
                zone_capacity: 768 << 10,
                zone_count: 8,
                conventional_zones: 1,
                conventional_parts: 1,
                sequential_kind: ZoneKind::SequentialWriteRequired,
                max_open_zones: 2,
                max_active_zones: 2,
                max_append_bytes: 0,
            };
            let drive = MemoryDrive::new(g);
            Ok(Arc::new(drive.map_err(|e| Error::NoDrive(e.to_string()))?))
        }

        fn runtime(&self) -> &Runtime {
            &self.0
        }

        fn next(&mut self, _: &str) -> Result<(), Error> {
            Ok(())
        }
    }

    /// Extents fill several zones, of which only two may be active; extents that do not fit are an error.
    #[test]
    fn everything_that_was_put_is_found_and_got() {
        let mut bed = Memory(Runtime::seeded(1));
        let found = start_ups(&mut bed, &[1, 4], &[10, 200], 4096, 7).unwrap();
        let counts: Vec<u64> = found.iter().map(|start| start.extents).collect();
        assert_eq!(counts, [10, 200, 10, 200]);
        let work = |extents| Work {
            extents,
            get_bytes: 1 << 20,
            back_pointers: 4,
            fill: 7,
            rounds: 2,
        };
        let all = transfers(&mut bed, &[4096, 256 << 10], work(9)).unwrap();
        assert_eq!(all.len(), 2);
        let refused = transfers(&mut bed, &[256 << 10], work(30));
        assert!(matches!(refused, Err(Error::NoRoom { .. })));
        let refused = transfers(&mut bed, &[1 << 20], work(1));
        assert!(matches!(refused, Err(Error::NoRoom { .. })));
    }
}
