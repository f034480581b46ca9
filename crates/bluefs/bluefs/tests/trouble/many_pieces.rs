//! A file with very many extents can be truncated and mounted.

use super::*;

#[test]
fn a_file_of_very_many_pieces_can_be_cut() {
    let mut g = geometry(600, 0, 0);
    g.zone_size = 64 << 10;
    g.zone_capacity = 64 << 10;
    let device = formatted(g);
    let fs = mount(device.clone()).unwrap();
    let mut writer = fs.create("/LOG").unwrap();
    for i in 0..9000u32 {
        writer.append(&i.to_le_bytes()).unwrap();
        writer.sync().unwrap();
    }
    writer.truncate(35_000).unwrap();
    writer.sync().unwrap();
    write(&fs, "/later", b"x").unwrap();
    drop((writer, fs));
    let fs = mount(device).unwrap();
    assert_eq!(read(&fs, "/later").unwrap(), b"x");
    let expected: Vec<u8> = (0..8750u32).flat_map(u32::to_le_bytes).collect();
    assert!(read(&fs, "/LOG").unwrap() == expected);
    assert_clean(&fs);
}
