//! Reads that are begun now and waited for later, while the caller does other work.
//!
//! One thread takes all reads that have been begun and hands them to the drive together, whatever files they are of. It
//! is started by the first such read, and ends with the mount. Each read has a buffer of its own, so a read whose
//! caller no longer waits does no harm. A caller that waits before the thread has come to its read does the read itself,
//! so that only those wait for a read that hangs that were handed to the drive together with it.

use crate::{Error, Result};
use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use std::sync::{Arc, OnceLock};

/// Most reads that are handed to the drive together.
const AT_ONCE: usize = 32;

/// A reader that can do many reads at once.
pub(crate) trait ReadsTogether: Clone + Send + 'static {
    fn read_all(asks: &mut [Ask<'_, Self>]) -> Vec<Result<usize>>;
}

/// One of many reads, of any file.
pub(crate) struct Ask<'a, R> {
    pub reader: &'a R,
    pub offset: u64,
    pub buffer: &'a mut [u8],
}

/// A read that has been begun and whose bytes are waited for later. Dropping it cancels the read, unless that is
/// under way already.
pub struct PendingRead {
    answer: Arc<Answer>,
    /// Takes the request out of the queue, unless the thread has, and does the read if it is told to.
    take_back: Option<Box<dyn FnOnce(bool) + Send>>,
}

#[derive(Default)]
struct Answer {
    bytes: Mutex<Option<Result<Vec<u8>>>>,
    given: Condvar,
}

/// A read for the thread. If it is dropped without an answer, its caller gets [`Error::Unmounted`].
struct Request<R> {
    reader: Option<R>,
    offset: u64,
    buffer: Vec<u8>,
    answer: Arc<Answer>,
}

/// The reading thread of a mount, once it is started.
pub(crate) struct Later<R> {
    runtime: Runtime,
    /// `None` inside: the host could not start a thread, so reads are done when they are begun.
    started: OnceLock<Option<Arc<Queue<R>>>>,
    /// Held while the thread is started, and never afterwards: a forked child may find it locked.
    starting: Mutex<()>,
}

struct Queue<R> {
    waiting: Mutex<Waiting<R>>,
    changed: Condvar,
    /// Process in which the thread runs; a forked child has no such thread.
    process: u32,
}

struct Waiting<R> {
    requests: Vec<Request<R>>,
    is_over: bool,
}

impl PendingRead {
    /// Waits for the bytes; they are fewer than requested only at the file's end.
    pub fn wait(mut self) -> Result<Vec<u8>> {
        if let Some(take_back) = self.take_back.take() {
            take_back(true);
        }
        let mut bytes = self.answer.bytes.lock();
        loop {
            if let Some(bytes) = bytes.take() {
                return bytes;
            }
            self.answer.given.wait(&mut bytes);
        }
    }
}

impl Drop for PendingRead {
    fn drop(&mut self) {
        if let Some(take_back) = self.take_back.take() {
            take_back(false);
        }
    }
}

impl<R> Request<R> {
    fn answer(&mut self, bytes: Result<Vec<u8>>) {
        // The caller may close the file and the drive as soon as it has its answer.
        self.reader = None;
        *self.answer.bytes.lock() = Some(bytes);
        self.answer.given.notify_all();
    }
}

impl<R> Drop for Request<R> {
    fn drop(&mut self) {
        if self.reader.is_some() {
            self.answer(Err(Error::Unmounted));
        }
    }
}

impl<R: ReadsTogether> Later<R> {
    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            started: OnceLock::new(),
            starting: Mutex::new(()),
        }
    }

    /// Begins a read of up to `length` bytes at `offset`.
    pub fn begin(&self, reader: &R, offset: u64, length: usize) -> PendingRead {
        let answer = Arc::new(Answer::default());
        let mut request = Request {
            reader: Some(reader.clone()),
            offset,
            buffer: vec![0; length],
            answer: answer.clone(),
        };
        let queue = self.started.get().unwrap_or_else(|| {
            let _alone = self.starting.lock();
            self.started.get_or_init(|| Queue::start(&self.runtime))
        });
        let queue = queue.as_ref();
        let queue = queue.filter(|queue| queue.process == std::process::id());
        let Some(queue) = queue.cloned() else {
            answer_all(std::slice::from_mut(&mut request));
            let take_back = None;
            return PendingRead { answer, take_back };
        };
        queue.add(request);
        let mine = answer.clone();
        let take_back = move |reads| {
            if let Some(mut request) = queue.take_back(&mine).filter(|_| reads) {
                answer_all(std::slice::from_mut(&mut request));
            }
        };
        PendingRead {
            answer,
            take_back: Some(Box::new(take_back)),
        }
    }
}

impl<R> Drop for Later<R> {
    fn drop(&mut self) {
        // No request is left, because every request keeps the mount. The thread is not waited for, because it may be
        // the one that drops the mount's last reference.
        if let Some(Some(queue)) = self.started.get() {
            queue.end();
        }
    }
}

impl<R: ReadsTogether> Queue<R> {
    fn start(runtime: &Runtime) -> Option<Arc<Self>> {
        let queue = Arc::new(Self {
            waiting: Mutex::new(Waiting {
                requests: Vec::new(),
                is_over: false,
            }),
            changed: Condvar::new(),
            process: std::process::id(),
        });
        let mine = queue.clone();
        let started = runtime.spawn("bluefs-reader", move || {
            let _ends = Ends(&mine);
            mine.serve();
        });
        let failed = |error: &_| tracing::warn!(%error, "reads are done when they are begun");
        started.inspect_err(failed).ok().map(|_| queue)
    }

    fn add(&self, mut request: Request<R>) {
        let mut waiting = self.waiting.lock();
        if waiting.is_over {
            drop(waiting);
            answer_all(std::slice::from_mut(&mut request));
            return;
        }
        waiting.requests.push(request);
        self.changed.notify_one();
    }

    fn take_back(&self, answer: &Arc<Answer>) -> Option<Request<R>> {
        let is_it = |request: &Request<R>| Arc::ptr_eq(&request.answer, answer);
        let mut waiting = self.waiting.lock();
        let place = waiting.requests.iter().position(is_it);
        place.map(|place| waiting.requests.remove(place))
    }

    fn serve(&self) {
        loop {
            let mut waiting = self.waiting.lock();
            while waiting.requests.is_empty() {
                if waiting.is_over {
                    return;
                }
                self.changed.wait(&mut waiting);
            }
            let count = waiting.requests.len().min(AT_ONCE);
            let mut requests: Vec<_> = waiting.requests.drain(..count).collect();
            drop(waiting);
            answer_all(&mut requests);
        }
    }
}

impl<R> Queue<R> {
    fn end(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_over = true;
        let left = std::mem::take(&mut waiting.requests);
        self.changed.notify_one();
        drop(waiting);
        drop(left);
    }
}

/// Ends the queue when the thread ends, also by a panic, so that no caller waits for ever.
struct Ends<'a, R>(&'a Queue<R>);

impl<R> Drop for Ends<'_, R> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn answer_all<R: ReadsTogether>(requests: &mut [Request<R>]) {
    let mut buffers: Vec<_> = requests
        .iter_mut()
        .map(|request| std::mem::take(&mut request.buffer))
        .collect();
    let mut asks = Vec::with_capacity(requests.len());
    for (request, buffer) in requests.iter().zip(&mut buffers) {
        let offset = request.offset;
        asks.extend(request.reader.as_ref().map(|reader| Ask {
            reader,
            offset,
            buffer,
        }));
    }
    let done = R::read_all(&mut asks);
    for ((request, mut bytes), done) in requests.iter_mut().zip(buffers).zip(done) {
        request.answer(done.map(|got| {
            bytes.truncate(got);
            bytes
        }));
    }
}
