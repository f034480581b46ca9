//! Names among a policy's files that this library does not give, as `store put` may have written them.

use crate::support::{formatted, mount};
use store::Transaction;
use swift_drive::{Address, Error, ObjectHash, PolicyKind, SwiftDrive};
use swift_files::Wanted;

/// They would be listed under one name and looked for under another.
#[test]
fn a_file_has_one_name() {
    for (kind, file) in [
        (PolicyKind::Replication, "1402464677.04188_1.data"),
        (PolicyKind::Replication, "1402464677.04188_0.ts"),
        (PolicyKind::Replication, "1402464677.04188+0f.meta"),
        (PolicyKind::ErasureCoding, "1402464677.04188_1#2.data"),
        (PolicyKind::Replication, "notes.txt"),
    ] {
        let store = mount(&formatted());
        let swift = SwiftDrive::new(store.clone());
        swift.add_policy(0, kind).unwrap();
        let hash = ObjectHash::new([7; 16]);
        let address = Address {
            policy: 0,
            partition: 7,
            hash,
        };
        let mut transaction = Transaction::new();
        let name = format!("0000000007/{}/{hash}/{file}", hash.suffix());
        transaction.touch("swift-0", &name);
        store.commit(transaction).unwrap();
        let listed = swift.files(address);
        assert!(matches!(listed, Err(Error::Foreign { .. })), "{file}");
        let opened = swift.open(address, Wanted::default());
        assert!(matches!(opened, Err(Error::Foreign { .. })), "{file}");
    }
}
