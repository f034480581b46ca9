//! A client's connection: ends if writes, or its end, make no progress for too long, and lets the client read an answer that was
//! given before the request's body had arrived.

use socket2::SockRef;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Limits, in time and bytes, for reading before a connection is closed. Closing with unread bytes makes the kernel
/// reset the connection, and the client may lose the answer.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 64 << 20;
/// Most bytes of one read. A reader's buffer grows with what it is given.
const READ_BYTES: u64 = 64 << 10;

/// Has the system drop what the client has not taken when the connection is closed: the client's connection is reset.
pub(crate) fn reset_at_end(stream: &TcpStream) {
    // If it fails, the system keeps the bytes for minutes.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Set if a body was dropped before its end: more of it may be on the way.
#[derive(Clone, Default, Debug)]
pub struct Unread(Arc<AtomicBool>);

impl Unread {
    /// Whether a body was left unread.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Marks that a body was left unread.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A stream with a limit on stalled writes.
pub struct Connection<S> {
    stream: Take<S>,
    idle: Duration,
    at_stall: fn(&S),
    unread: Unread,
    stalled: Option<Pin<Box<Sleep>>>,
    linger: Option<Linger>,
}

struct Linger {
    until: Pin<Box<Sleep>>,
    left: usize,
    scratch: Box<[u8]>,
}

impl<S: AsyncRead + Unpin> Connection<S> {
    /// Fails if a write makes no progress for `idle`. If a body was left `unread`, reads for a while before it
    /// closes.
    pub fn new(stream: S, idle: Duration, unread: Unread) -> Self {
        Self {
            stream: stream.take(READ_BYTES),
            idle,
            at_stall: |_| (),
            unread,
            stalled: None,
            linger: None,
        }
    }

    /// Calls this before a write fails that made no progress. What the system still has for the client, up to megabytes of
    /// its memory for each, stays there behind the end of the connection unless this has the connection reset.
    #[must_use]
    pub fn at_stall(mut self, at_stall: fn(&S)) -> Self {
        self.at_stall = at_stall;
        self
    }

    /// The stream.
    pub fn into_inner(self) -> S {
        self.stream.into_inner()
    }

    fn poll_some(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.set_limit(READ_BYTES);
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }

    fn patience<T>(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let idle = self.idle;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(idle)));
        ready!(stalled.as_mut().poll(context));
        (self.at_stall)(self.stream.get_ref());
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_some(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(self.stream.get_mut()).poll_write(context, data);
        self.patience(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(self.stream.get_mut()).poll_write_vectored(context, data);
        self.patience(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(self.stream.get_mut()).poll_flush(context);
        self.patience(context, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            let progress = Pin::new(this.stream.get_mut()).poll_shutdown(context);
            ready!(this.patience(context, progress))?;
        }
        if !this.unread.is_set() {
            return Poll::Ready(Ok(()));
        }
        let linger = this.linger.get_or_insert_with(|| Linger {
            until: Box::pin(tokio::time::sleep(LINGER)),
            left: LINGER_BYTES,
            scratch: vec![0; 16 * 1024].into(),
        });
        while linger.left > 0 {
            if linger.until.as_mut().poll(context).is_ready() {
                break;
            }
            this.stream.set_limit(READ_BYTES);
            let mut buffer = ReadBuf::new(&mut linger.scratch);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    linger.left = linger.left.saturating_sub(buffer.filled().len());
                }
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const IDLE: Duration = Duration::from_secs(5);

    fn unread() -> Unread {
        let unread = Unread::default();
        unread.set();
        unread
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stands_still_is_cut_off() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut connection = Connection::new(near, IDLE, unread());
        let error = connection.write_all(&[1; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(far.read(&mut [0; 100]).await.unwrap(), 10);
    }

    /// Megabytes of the system's memory for each, as many as clients come.
    #[tokio::test]
    async fn nothing_is_kept_for_a_reader_that_was_cut_off() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut far = TcpStream::connect(address).await.unwrap();
        let (near, _) = listener.accept().await.unwrap();
        let idle = Duration::from_millis(100);
        let mut connection = Connection::new(near, idle, Unread::default()).at_stall(reset_at_end);
        let error = loop {
            if let Err(error) = connection.write_all(&[1; 1 << 16]).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(connection);
        let end = loop {
            match far.read(&mut [0; 1 << 16]).await {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error.kind()),
            }
        };
        assert_eq!(end, Some(io::ErrorKind::ConnectionReset));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for() {
        let (near, mut far) = tokio::io::duplex(10);
        let reader = tokio::spawn(async move {
            let mut total = 0;
            while total < 100 {
                tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
                total += far.read(&mut [0; 10]).await.unwrap();
            }
        });
        Connection::new(near, IDLE, unread())
            .write_all(&[1; 100])
            .await
            .unwrap();
        reader.await.unwrap();
    }

    /// Never closes, as TLS does if a full send buffer has no room for its last message.
    struct Open;

    impl AsyncRead for Open {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Open {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            data: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(data.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stands_still_is_cut_off_at_the_end_too() {
        let mut connection = Connection::new(Open, IDLE, unread());
        let closed = tokio::time::timeout(2 * IDLE, connection.shutdown()).await;
        let error = closed.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_read_gets_a_part_and_the_next_read_goes_on() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        far.write_all(&[7; 200_000]).await.unwrap();
        drop(far);
        let mut connection = Connection::new(near, IDLE, Unread::default());
        let mut read = vec![0; 1 << 20];
        for expected in [65536, 65536, 65536, 200_000 - 3 * 65536, 0] {
            assert_eq!(connection.read(&mut read).await.unwrap(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn closing_is_quick_if_nothing_can_come() {
        let (near, _far) = tokio::io::duplex(10);
        let start = tokio::time::Instant::now();
        Connection::new(near, IDLE, Unread::default())
            .shutdown()
            .await
            .unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_listens_for_a_while() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut connection = Connection::new(near, IDLE, unread());
        let writer = tokio::spawn(async move {
            far.write_all(&[7; 1000]).await.unwrap();
            far
        });
        connection.shutdown().await.unwrap();
        let mut far = writer.await.unwrap();
        assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0);
    }
}
