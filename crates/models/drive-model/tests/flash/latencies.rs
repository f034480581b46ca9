use super::*;

/// A full buffer makes writes as slow as the flash behind it, whatever the buffer's size.
#[test]
fn the_write_buffer_hides_programming_until_it_is_full() {
    let mut drive = FlashProfile::named("ssd-15gb").unwrap().drive().unwrap();
    let first = drive.submit(Request::write(Lba(0), 1), Time::START);
    assert!(first.latency().millis() < 0.02, "{}", first.latency());
    for lba in 0..40_000 {
        drive.enqueue(Request::write(Lba(lba * 32), 32), first.at);
    }
    let end = std::iter::from_fn(|| drive.next_completion())
        .last()
        .unwrap()
        .at;
    let rate = 40_000.0 * 32.0 * 4096.0 / end.since(first.at).seconds();
    // 32 dies that program 32 KiB in 0.6 ms.
    let flash = 32.0 * 32_768.0 / 0.6e-3;
    assert!((rate / flash - 1.0).abs() < 0.02, "{rate} {flash}");
}

#[test]
fn a_read_does_not_wait_for_all_that_is_being_written() {
    let mut drive = FlashProfile::named("ssd-15gb").unwrap().drive().unwrap();
    let mut now = Time::START;
    for lba in 0..3_000 {
        now = drive.submit(Request::write(Lba(lba * 32), 32), now).at;
    }
    let busy = drive.submit(Request::read(Lba(5), 1), now).latency();
    let rested = Time::from_nanos(now.nanos() + 1_000_000_000);
    let idle = drive.submit(Request::read(Lba(5), 1), rested).latency();
    assert!(busy > idle, "{busy} {idle}");
    assert!(busy.millis() < idle.millis() + 0.1, "{busy} {idle}");
}

#[test]
fn what_it_cannot_do_fails() {
    let mut drive = drive(100, 64, 0.8);
    let end = Lba(drive.blocks());
    let fails = |drive: &mut FlashDrive, request| drive.submit(request, Time::START).result;
    let behind = fails(&mut drive, Request::read(end, 1));
    assert_eq!(behind, Err(Failure::OutOfRange));
    let append = fails(&mut drive, Request::append(Lba(0), 1));
    assert_eq!(append, Err(Failure::Unsupported));
    let reset = Request::on_zone(RequestKind::ResetZone, Lba(0));
    assert_eq!(fails(&mut drive, reset), Err(Failure::Unsupported));
    assert_eq!(drive.statistics().written_blocks, 0);
}
