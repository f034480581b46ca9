//! What NBD clients send: none of it may panic, and no request may pass that leads beyond the export.

#![no_main]

use export::protocol;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| client(input));

/// A client's options and then its requests, as far as they are any.
fn client(mut bytes: &[u8]) {
    let export = protocol::Export {
        name: "d".into(),
        description: "a drive".into(),
        bytes: 1 << 30,
        block_bytes: 4096,
        trims: true,
        rotational: true,
    };
    let Some((flags, rest)) = bytes.split_first_chunk() else {
        return;
    };
    let Ok(no_zeroes) = protocol::client_flags(*flags) else {
        return;
    };
    bytes = rest;
    while let Some((head, rest)) = bytes.split_first_chunk()
        && let Ok((option, length)) = protocol::option_head(head)
        && let Some((data, rest)) = rest.split_at_checked(length)
    {
        bytes = rest;
        match export.answer(option, data, no_zeroes).1 {
            protocol::Next::Haggle => {}
            protocol::Next::Transmit => break,
            protocol::Next::Close => return,
        }
    }
    while let Some((head, rest)) = bytes.split_first_chunk()
        && let Ok(request) = protocol::Request::decode(head)
    {
        if export.check(&request).is_ok() && request.command != protocol::Command::Flush {
            let end = request.offset.checked_add(request.length.into());
            assert!(
                matches!(request.command, protocol::Command::Disconnect)
                    || end <= Some(export.bytes)
            );
        }
        let Some(rest) = rest.get(request.payload_bytes()..) else {
            return;
        };
        bytes = rest;
    }
}
