//! GNU tar reads what is packed: holes too, of which the command line makes none.

use crate::common::{pattern, put_in, read_in};
use crate::stores::{backup, commit, fresh};
use std::fs;
use std::process::Command;
use store::{Attributes, Transaction};

#[test]
fn tar_takes_out_objects_with_holes() {
    let (_, store) = fresh(64, 7);
    commit(&store, |tx| {
        _ = tx.create_collection("c", Attributes::new())
    });
    for name in ["begin", "middle", "end", "several", "all"] {
        put_in(&store, "c", name, &pattern(1, 200_000)).unwrap();
    }
    let attribute = Attributes::from([("a=b %".to_owned(), b"\0\n\xff=".to_vec())]);
    let punch = |tx: &mut Transaction| {
        tx.punch("c", "begin", 0, 70_000)
            .punch("c", "middle", 70_000, 1)
            .punch("c", "end", 100_000, 300_000)
            .punch("c", "several", 5, 9000)
            .punch("c", "several", 150_000, 3000)
            .punch("c", "all", 0, 200_000)
            .set_attributes("c", "several", attribute);
    };
    commit(&store, punch);
    let (archive, _) = backup(&store, None);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.tar"), archive).unwrap();
    let mut tar = Command::new("tar");
    let done = tar.args(["xf", "a.tar"]).current_dir(folder.path());
    let done = done.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
    for object in store.list("c", "", "", 9).unwrap() {
        let name = object.name.text().unwrap();
        let file = fs::read(folder.path().join("c").join(name)).unwrap();
        assert!(file == read_in(&store, "c", name).unwrap(), "{name}");
    }
}
