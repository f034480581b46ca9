//! Damage in a file: a whole read finds it by the file's checksum.

use super::*;

#[test]
fn damage_in_a_piece_that_is_read_whole_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive");
    let content = Numbers(5).bytes(10_000);
    let drive = FileDrive::create(&path, &geometry(), "test").unwrap();
    let fs = mounted(Arc::new(drive), 0);
    let mut writer = fs.create("/CURRENT").unwrap();
    writer.append(&content).unwrap();
    writer.sync().unwrap();
    drop(writer);
    let mut image = std::fs::read(&path).unwrap();
    let at = image.windows(64).position(|w| w == &content[..64]).unwrap();
    image[at + 5000] ^= 1;
    std::fs::write(&path, image).unwrap();
    let error = support::read(&fs, "/CURRENT").unwrap_err();
    assert!(matches!(error, bluefs::Error::Corrupt { .. }), "{error}");
    let reader = fs.open("/CURRENT").unwrap();
    let mut buffer = vec![0; 4000];
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 4000);
    assert!(buffer == content[..4000]);
}
