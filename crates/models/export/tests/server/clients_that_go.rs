use super::*;

#[test]
fn a_client_that_breaks_the_protocol_is_left() {
    for client in [
        Client::default().flags(4),
        Client(vec![
            0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        ]),
        Client::default().flags(3).option(7, &vec![0; 8193]),
        started().request((0, WRITE), 1, (0, MAX_PAYLOAD_BYTES + 1), &[]),
        Client([started().0, vec![7; REQUEST_BYTES]].concat()),
    ] {
        let (_, result, memory) = client.talk();
        assert!(
            matches!(result, Err(ServeError::Violation(_))),
            "{result:?}"
        );
        assert!(memory.state.into_inner().unwrap().ended);
    }
}

/// A client may go between two messages; in the middle of one it is told apart.
#[test]
fn a_client_may_go_at_any_byte() {
    let all = started()
        .request((0, WRITE), 1, (0, 3), b"abc")
        .request((0, READ), 2, (0, 3), &[])
        .0;
    let borders = [0, 4, 4 + 16 + 6, all.len() - 28, all.len()];
    for length in 0..=all.len() {
        let (_, result, memory) = Client(all[..length].to_vec()).talk();
        assert_eq!(result.is_ok(), borders.contains(&length), "{length}");
        assert!(memory.state.into_inner().unwrap().ended);
    }
}

/// Pieces that make sense, and bytes that do not, in any order.
fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let option = (0u32..12, prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(option, data)| Client::default().option(option, &data).0);
    let go = ("[a-z]{0,5}", prop::collection::vec(0u16..6, 0..4))
        .prop_map(|(name, wanted)| Client::default().go(&name, &wanted).0);
    let request = (
        0u16..8,
        0u16..3,
        any::<u64>(),
        0u64..(1 << 20) + 9,
        0u32..70_000,
    )
        .prop_map(|(command, flags, cookie, offset, length)| {
            let payload = vec![7; if command == 1 { length as usize } else { 0 }];
            Client::default()
                .request((flags, command), cookie, (offset, length), &payload)
                .0
        });
    let noise = prop::collection::vec(any::<u8>(), 0..64);
    let start = prop_oneof![
        Just(Client::default().flags(3).0),
        Just(started().0),
        noise.clone()
    ];
    let piece = prop_oneof![3 => request, 1 => option, 1 => go, 1 => noise];
    (start, prop::collection::vec(piece, 0..12))
        .prop_map(|(start, rest)| [start, rest.concat()].concat())
}

proptest! {
    /// Whatever comes, the server ends without a panic, and what it says is whole.
    #[test]
    fn any_bytes_end_well(bytes in conversation()) {
        let (_, _, memory) = Client(bytes).talk();
        prop_assert!(memory.state.into_inner().unwrap().ended);
    }

    #[test]
    fn any_bytes_are_a_request_or_none(mut bytes in any::<[u8; REQUEST_BYTES]>(), real in any::<bool>()) {
        if real {
            bytes[..4].copy_from_slice(&0x2560_9513u32.to_be_bytes());
        }
        match Request::decode(&bytes) {
            Ok(request) => {
                prop_assert!(real);
                prop_assert!(request.payload_bytes() <= MAX_PAYLOAD_BYTES as usize);
                if export().check(&request).is_ok() && request.length > 0 && request.command != Command::Flush
                    && request.command != Command::Disconnect {
                    prop_assert!(request.offset + u64::from(request.length) <= 1 << 20);
                }
            }
            Err(violation) => prop_assert!(!violation.to_string().is_empty()),
        }
    }

    #[test]
    fn any_option_is_answered(option in 0u32..12, data in prop::collection::vec(any::<u8>(), 0..64)) {
        let (bytes, _) = export().answer(option, &data, true);
        prop_assert!(bytes.len() < 1_000);
    }
}
