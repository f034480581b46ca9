use super::*;

const DISCONNECT: u16 = 2;

const FLUSH: u16 = 3;

const TRIM: u16 = 4;

fn after_start(mut answers: Answers) -> Answers {
    answers.greeting();
    assert_eq!(answers.option(7).0, 3);
    assert_eq!(answers.option(7).0, 1);
    answers
}

#[test]
fn requests_are_done() {
    let (answers, result, memory) = started()
        .request((0, WRITE), 11, (4_095, 3), b"abc")
        .request((1, WRITE), 12, (4_096, 1), b"X")
        .request((0, READ), 13, (4_094, 5), &[])
        .request((0, FLUSH), 14, (0, 0), &[])
        .request((0, TRIM), 15, (4_095, 1), &[])
        .request((0, READ), 16, (4_095, 2), &[])
        .request((0, DISCONNECT), 17, (0, 0), &[])
        .request((0, READ), 18, (0, 1), &[])
        .talk();
    result.unwrap();
    let mut answers = after_start(answers);
    assert_eq!(answers.reply(), (0, 11));
    assert_eq!(answers.reply(), (0, 12));
    assert_eq!(answers.reply(), (0, 13));
    assert_eq!(answers.bytes(5), b"\0aXc\0");
    assert_eq!(answers.reply(), (0, 14));
    assert_eq!(answers.reply(), (0, 15));
    assert_eq!(answers.reply(), (0, 16));
    assert_eq!(answers.bytes(2), b"\0X");
    assert!(answers.0.is_empty());
    let taken = memory.state.into_inner().unwrap().taken;
    let durable: Vec<bool> = taken.iter().map(Request::is_fua).collect();
    assert_eq!(durable, [false, true, false, false, false, false]);
}

#[test]
fn what_cannot_be_done_is_answered_without_data() {
    let end = 1 << 20;
    let (answers, result, memory) = started()
        .request((0, READ), 1, (end - 1, 2), &[])
        .request((0, WRITE), 2, (end - 1, 2), b"ab")
        .request((0, READ), 3, (u64::MAX, 2), &[])
        .request((0, READ), 4, (0, 0), &[])
        .request((0, READ), 5, (0, MAX_PAYLOAD_BYTES + 1), &[])
        .request((0, 6), 6, (0, 4096), &[])
        .request((0, 99), 7, (0, 4096), &[])
        .request((2, READ), 8, (0, 1), &[])
        .request((0, READ), 9, (end - 1, 1), &[])
        .talk();
    result.unwrap();
    let mut answers = after_start(answers);
    for (cookie, error) in [
        (1, 22),
        (2, 28),
        (3, 22),
        (4, 22),
        (5, 22),
        (6, 95),
        (7, 95),
        (8, 22),
    ] {
        assert_eq!(answers.reply(), (error, cookie));
    }
    assert_eq!(answers.reply(), (0, 9));
    assert_eq!(answers.bytes(1), [0]);
    assert!(answers.0.is_empty());
    assert_eq!(memory.state.into_inner().unwrap().taken.len(), 1);
}

#[test]
fn requests_may_be_answered_in_any_order() {
    let (mut client, mut server) = UnixStream::pair().unwrap();
    let mut all = started();
    for cookie in 0..40 {
        let byte = [cookie as u8];
        all = all.request((0, WRITE), cookie, (cookie, 1), &byte);
    }
    client.write_all(&all.0).unwrap();
    let memory = Memory {
        backwards: 4,
        ..Memory::default()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut output = server.try_clone().unwrap();
            serve(&mut server, &mut output, &export(), &memory).unwrap();
        });
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answers = vec![0; 18 + (20 + 12) + 20 + 40 * 16];
        client.read_exact(&mut answers).unwrap();
        let mut answers = after_start(Answers(answers.into()));
        let mut cookies: Vec<u64> = (0..40).map(|_| answers.reply().1).collect();
        assert_ne!(cookies, (0..40).collect::<Vec<u64>>());
        cookies.sort_unstable();
        assert_eq!(cookies, (0..40).collect::<Vec<u64>>());
    });
}
