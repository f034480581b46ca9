//! A body to the drive and back.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use device::{MemoryDrive, profile};
use futures::{StreamExt, stream};
use kv_log::KvLog;
use objects::digest::Algorithm;
use objects::{
    Blocking, Download, Expected, Flow, Line, Pieces, Pressure, ReceiveError, Received, receive,
    take_piece,
};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use store::{Attributes, MkfsOptions, MountOptions, Store, Transaction, WriteHints};

fn store() -> Store {
    let profile = profile::by_name("test-small").unwrap();
    let geometry = profile.geometry(128 << 20, None).unwrap();
    let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
    let options = MkfsOptions {
        uuid: [1; 16],
        ..MkfsOptions::new(KvLog)
    };
    Store::mkfs(drive.clone(), &options).unwrap();
    let options = MountOptions {
        data_cache_bytes: 4 << 20,
        ..MountOptions::new(KvLog)
    };
    let store = Store::mount(drive, options).unwrap();
    let mut transaction = Transaction::new();
    transaction.create_collection("c", Attributes::new());
    store.commit(transaction).unwrap();
    store
}

fn data() -> Bytes {
    (0..3_000_000u32).map(|n| (n * 31 % 253) as u8).collect()
}

fn expected(length: usize) -> Expected {
    Expected {
        length: length as u64,
        object: ("c".into(), "o".into()),
        algorithms: vec![Algorithm::Md5],
        hints: WriteHints::default(),
    }
}

async fn put(store: &Store, blocking: &Blocking, data: &Bytes) {
    let pieces: Vec<Result<Bytes, ()>> = data.chunks(7777).map(|p| Ok(data.slice_ref(p))).collect();
    let (written_to, md5) = (store.clone(), Algorithm::Md5.of(data));
    let commit = move |received: Received| {
        assert_eq!(received.digests.value(Algorithm::Md5), Some(&*md5));
        let mut transaction = Transaction::new();
        transaction.put("c", "o", received.writer.finish()?, Attributes::new());
        written_to.commit(transaction)
    };
    let body = Some(stream::iter(pieces));
    let received = receive(
        store,
        blocking,
        Pieces::from(body),
        expected(data.len()),
        commit,
    )
    .await;
    received.unwrap().unwrap();
}

#[tokio::test]
async fn what_was_received_is_what_is_downloaded() {
    let (store, blocking, data) = (store(), Blocking::new(2), data());
    put(&store, &blocking, &data).await;
    // From the drive, from the cache, and from the one behind the other.
    let ranges = [500_000..700_000u64, 0..3_000_000, 5..2_500_000, 7..8, 9..9];
    for range in ranges {
        let reader = Arc::new(store.open("c", "o").unwrap());
        let first = take_piece(&reader, &range).unwrap();
        let mut body = Download::new(reader, blocking.clone(), range.clone(), first, None);
        let mut found = Vec::new();
        while let Some(piece) = body.next().await {
            found.extend_from_slice(&piece.unwrap());
            let (done, all) = (found.len() as u64, range.end - range.start);
            assert_eq!(body.remaining(), all - done);
        }
        assert!(found == data[range.start as usize..range.end as usize]);
    }
    assert!(store.caches().unwrap().data.hits > 40);
    store.unmount().unwrap();
}

/// Whoever reads slowly would seem to stand still, if only the last part of what it was given were counted.
#[tokio::test(start_paused = true)]
async fn a_piece_in_parts_counts_as_handed_out_at_once() {
    let (store, blocking, data) = (store(), Blocking::new(2), data());
    put(&store, &blocking, &data).await;
    let reader = Arc::new(store.open("c", "o").unwrap());
    let range = 0..3_000_000;
    take_piece(&reader, &range).unwrap();
    let first = take_piece(&reader, &range).unwrap();
    let parts = first.len();
    assert!(parts > 10);
    let second = Duration::from_secs(1);
    let line = Line::new(
        1,
        Pressure {
            turn_timeout: second,
            patience: second,
            min_bytes_per_second: 1,
        },
    );
    let flow = Flow::default();
    let asker = Ipv4Addr::LOCALHOST.into();
    let permit = line.take(asker, flow.clone(), None).await;
    let mut body = Download::new(reader, blocking, range, first, permit);
    for part in 0..parts as u64 {
        body.next().await.unwrap().unwrap();
        let (rate, taken) = flow.rate();
        let expected = (1 << 20) * 1_000_000 / (part * 1_000_000).max(1);
        assert!(flow.is_waited_for());
        assert_eq!((rate, taken), (expected, second * part as u32));
        tokio::time::advance(second).await;
    }
    body.next().await.unwrap().unwrap();
    assert_eq!(flow.rate().1, Duration::ZERO);
}

#[tokio::test]
async fn nothing_is_left_of_a_body_that_broke_off() {
    let (store, blocking, data) = (store(), Blocking::new(2), data());
    let pieces = [Ok(data.clone()), Err("gone")];
    let commit = |_: Received| panic!("there is nothing to commit");
    let body = Some(stream::iter(pieces));
    let received: Result<(), _> = receive(
        &store,
        &blocking,
        Pieces::from(body),
        expected(data.len()),
        commit,
    )
    .await;
    assert!(matches!(received, Err(ReceiveError::Body("gone"))));
    blocking.idle().await;
    // Nor of one that nobody committed.
    let staged = receive(
        &store,
        &blocking,
        Pieces::from(Some(stream::iter([Ok::<_, ()>(data.clone())]))),
        expected(data.len()),
        |received: Received| received,
    );
    drop(staged.await.unwrap());
    assert!(store.stat("c", "o").unwrap().is_none());
    // All of the room is there again.
    for _ in 0..100 {
        put(&store, &blocking, &data).await;
    }
    store.unmount().unwrap();
}

#[tokio::test]
async fn what_cannot_fit_is_refused_before_it_comes() {
    let (store, blocking) = (store(), Blocking::new(2));
    let body = stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, ()>>> {
        panic!("nobody asks for it")
    });
    let commit = |_: Received| panic!("there is nothing to commit");
    let received: Result<(), _> = receive(
        &store,
        &blocking,
        Pieces::from(Some(body)),
        expected(1 << 30),
        commit,
    )
    .await;
    assert!(matches!(received, Err(ReceiveError::Store(error)) if error.is_no_space()));
    store.unmount().unwrap();
}
