//! What is sent together.

use super::*;
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;

/// A client that has asked once, and notes how many bytes each write brings.
struct Client {
    request: &'static [u8],
    writes: Arc<Mutex<Vec<usize>>>,
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buffer.put_slice(std::mem::take(&mut self.request));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes.lock().push(data.len());
        Poll::Ready(Ok(data.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write(
            context,
            &data
                .iter()
                .flat_map(|part| &**part)
                .copied()
                .collect::<Vec<_>>(),
        )
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn parts_of_a_body_are_sent_together() {
    let writes = Arc::new(Mutex::new(Vec::new()));
    let client = Client {
        request: b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        writes: writes.clone(),
    };
    let answer = |_, _| async {
        let part = |_| Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[7; 65536])));
        let parts = (0..32).map(part);
        Ok::<_, Infallible>(Response::new(StreamBody::new(stream::iter(parts))))
    };
    let bounds = Bounds {
        max_clients: 1,
        max_strangers: 1,
        max_header_bytes: 16 << 10,
        header_timeout: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(60),
        shutdown_timeout: Duration::from_secs(60),
    };
    let peer = Peers::new(1, 1).arrive(Ipv4Addr::LOCALHOST.into());
    let (_stop, stopping) = watch::channel(());
    converse(client, |_| (), Arc::new(peer), answer, bounds, stopping).await;
    let writes = writes.lock();
    assert!(writes.iter().sum::<usize>() > 32 * 65536, "{writes:?}");
    assert!(writes.len() <= 4, "{writes:?}");
}
