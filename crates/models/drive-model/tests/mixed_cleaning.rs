//! Section 3.4.3: a drive that mixes cleaning with work cleans from the beginning.

use drive_model::{Lba, Profile, Random, Request, Time};

#[test]
fn it_cleans_a_band_with_every_1024_writes_and_none_has_to_wait() {
    let mut fresh = Profile::named("wd40nmzw").unwrap().drive(1).unwrap();
    fresh.set_volatile_cache(false);
    let mut random = Random::new(2);
    let mut now = Time::START;
    for _ in 0..5_000 {
        let lba = Lba(random.below(fresh.blocks()));
        now = fresh.submit(Request::write(lba, 1), now).at;
    }
    let cleaning = fresh.statistics().cleaning;
    assert_eq!(cleaning.bands, 4, "with every 1,024 writes");
    assert_eq!(cleaning.urgent_bands, 0, "no write had to wait for room");
}
