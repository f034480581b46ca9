//! A store beside BlueFS that always has as many active zones as it may.

use super::*;
use device::MemoryDrive;

/// Its zones, each with its write pointer.
struct Neighbour {
    zones: Vec<(ZoneId, u64)>,
}

impl Neighbour {
    /// After BlueFS has mounted: claims its own active zones, and resets all unclaimed ones.
    fn mount(device: &dyn ZonedDevice, pool: &ZonePool, known: &[ZoneId]) -> Self {
        let mut zones = Vec::new();
        for zone in known {
            let report = device.report_zone(*zone).unwrap();
            if report.condition.is_active() {
                pool.claim(*zone, Owner::Store).unwrap();
                zones.push((*zone, report.write_pointer));
            }
        }
        for zone in pool.unclaimed() {
            device.reset(zone).unwrap();
            pool.give_back(zone);
        }
        Self { zones }
    }

    fn fill(&mut self, device: &dyn ZonedDevice, pool: &ZonePool) -> Result<(), ZoneError> {
        while self.zones.len() < pool.active_quota(Owner::Store).unwrap() as usize {
            let zone = pool.take(Purpose::Data).unwrap();
            self.zones.push((zone, 0));
            let at = device.geometry().start(zone);
            device.write(at, &[5; 512])?;
        }
        Ok(())
    }
}

#[test]
fn a_neighbour_always_finds_its_active_zones() {
    let limits = CrashLimits {
        max_states: 10,
        max_choices_per_zone: 6,
        seed: 3,
    };
    let mut states = 0;
    for (conventional, active) in [(0, 6), (4, 6), (0, 14)] {
        for cut in (1..260).step_by(3) {
            let device = Arc::new(PowerCut::new(geometry(60, conventional, active)).unwrap());
            format(&*device, Role::Shared);
            let pool_ = pool(&*device);
            let fs = mount_in(device.clone(), pool_.clone(), false).unwrap();
            let mut neighbour = Neighbour { zones: Vec::new() };
            neighbour.fill(&*device, &pool_).unwrap();
            device.flush().unwrap();
            let known: Vec<_> = neighbour.zones.iter().map(|(zone, _)| *zone).collect();
            device.cut_after(cut);
            let error = work(&fs);
            assert!(
                matches!(
                    error,
                    Ok(()) | Err(Error::Drive(ZoneError::PowerLost { .. }))
                ),
                "{error:?}"
            );
            for state in device.crash_states(limits) {
                states += 1;
                let image = Arc::new(device.image(&state));
                let pool = pool(&*image);
                let told = |e: &dyn std::fmt::Debug| format!("{e:?}, cut {cut}, {state:?}");
                let fs = mount_in(image.clone(), pool.clone(), false)
                    .unwrap_or_else(|e| panic!("{}", told(&e)));
                work(&fs).unwrap_or_else(|e| panic!("{}", told(&e)));
                let mut neighbour = Neighbour::mount(&*image, &pool, &known);
                neighbour
                    .fill(&*image, &pool)
                    .unwrap_or_else(|e| panic!("{}", told(&e)));
                work(&fs).unwrap_or_else(|e| panic!("{}", told(&e)));
                assert_clean(&fs);
            }
        }
    }
    println!("beside a neighbour: {states} states after power cuts");
}

/// For a moment it has more active zones than its share.
#[test]
fn lifetimes_have_zones_apart_again_after_a_neighbour_left_too_few() {
    let device = formatted(geometry(60, 0, 10));
    let fs = mount(device.clone()).unwrap();
    let sst = |path: &str, lifetime| {
        let mut writer = fs.create(path).unwrap();
        writer.set_lifetime(lifetime);
        writer.append(&[1; 3000]).unwrap();
        writer.sync().unwrap();
        let zone = fs.extents(path).unwrap()[0].at.zone;
        (writer, zone)
    };
    let medium = sst("/1.sst", Lifetime::Medium);
    let too_many = |zone: &ZoneId| device.open(*zone).is_ok();
    let opened: Vec<ZoneId> = (30..50).map(ZoneId).take_while(too_many).collect();
    let long = sst("/2.sst", Lifetime::Long);
    assert_eq!(medium.1, long.1);
    drop((medium, long));
    for zone in opened {
        device.reset(zone).unwrap();
    }
    for _ in 0..10 {
        write(&fs, "/gone.sst", &[2; 60_000]).unwrap();
        fs.delete("/gone.sst").unwrap();
        fs.sync_metadata().unwrap();
    }
    let medium = sst("/3.sst", Lifetime::Medium);
    let long = sst("/4.sst", Lifetime::Long);
    assert_ne!(medium.1, long.1);
}

/// It takes all active zones that are left, just before the journal begins in another zone.
#[test]
fn a_neighbour_above_its_share_costs_the_journal_no_zone() {
    let memory = Arc::new(MemoryDrive::new(geometry(60, 0, 14)).unwrap());
    format(&*memory, Role::Shared);
    let device = Arc::new(Faults::new(memory.clone()));
    let pool = pool(&*device);
    let fs = mount_in(device.clone(), pool.clone(), false).unwrap();
    write(&fs, "/a.sst", &[1; 5000]).unwrap();
    let theirs: Vec<_> = (0..14).filter_map(|_| pool.take(Purpose::Data)).collect();
    let take_all = move |_| {
        let takes = |zone: &&ZoneId| {
            memory
                .write(memory.geometry().start(**zone), &[5; 512])
                .is_ok()
        };
        assert!(theirs.iter().take_while(takes).count() < theirs.len());
    };
    let spare = fs.info().spare_zone;
    let hook = Fault::Slow(Arc::new(take_all));
    device.add(Plan::at(ZoneCommand::Write, 1, hook).in_zone(spare));
    while device.struck() == 0 {
        write(&fs, "/CURRENT", b"small").unwrap();
    }
    assert_eq!(fs.info().journal_zone, spare);
    write(&fs, "/b.sst", &[2; 30_000]).unwrap();
    assert!(read(&fs, "/a.sst").unwrap() == [1; 5000]);
    assert_clean(&fs);
}

/// Writes logs and SSTs, several at once, and deletes them.
fn work(fs: &BlueFs) -> Result<(), Error> {
    let names = [
        "/000001.log",
        "/a.sst",
        "/MANIFEST-1",
        "/b.sst",
        "/000002.log",
    ];
    let mut writers = Vec::new();
    for name in names {
        writers.push(fs.create(name)?);
    }
    for _ in 0..6 {
        for writer in &mut writers {
            writer.append(&[7; 4000])?;
            writer.sync()?;
        }
    }
    drop(writers);
    for name in names {
        fs.delete(name)?;
        fs.sync_metadata()?;
        write(fs, "/CURRENT", b"small")?;
    }
    Ok(())
}
