//! Handlers of calls that transfer data: stage, put, open, read.

use crate::api::{
    Done, FragmentPreference, Head, MAX_DATA_BYTES, MAX_FIRST_BYTES, MAX_METADATA_BYTES, Open, Put,
    PutAnswer, Putting, Reading, Staged, Staging,
};
use crate::body::{
    Incoming, METADATA, QUESTION, SMALL, broken_off, split, timed, too_large, whole,
};
use crate::crowd::unless_crowded;
use crate::failure::{busy, gone, invalid, not_run, of_drive, of_read};
use crate::path::Named;
use crate::state::{Answer, Calls, SwiftCalls};
use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use control::Failure;
use control::api::Kind;
use futures::{StreamExt, stream};
use http_range_header::StartPosition;
use objects::digest::Algorithm;
use objects::{Download, Expected, Pieces, ReceiveError, Source, read_piece, receive, take_piece};
use serde::de::DeserializeOwned;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use store::{ObjectReader, WriteHints, Written};
use swift_drive::{Address, Metadata, Opened};
use swift_files::{FileName, Kind as FileKind, Preference, Timestamp, Wanted};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

impl SwiftCalls {
    /// A permit for a body of `bytes` bytes, if it needs one.
    pub(crate) async fn place(&self, bytes: u64) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        if bytes <= SMALL {
            return Ok(None);
        }
        self.any_place().await.map(Some)
    }

    pub(crate) async fn any_place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let place = self.bodies.clone().acquire_owned().await;
        place.map_err(|_| Failure::stopping())
    }

    /// The data in this range, whose first piece has been read.
    pub(crate) async fn download(
        self: &Arc<Self>,
        reader: Arc<ObjectReader>,
        range: Range<u64>,
    ) -> Result<Download, Failure> {
        let (first_reader, piece) = (reader.clone(), range.clone());
        let first = self
            .call(move |_| take_piece(&first_reader, &piece).map_err(of_read))
            .await?;
        let blocking = self.blocking.clone();
        Ok(Download::new(reader, blocking, range, first, None))
    }

    /// This data as the body of an answer, which holds the place until the last of it is taken. It breaks off if the client
    /// takes nothing while all places are taken.
    fn sent(self: &Arc<Self>, mut download: Download, place: OwnedSemaphorePermit) -> Body {
        let calls = self.clone();
        let (sender, mut receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let taken = sender.reserve();
                match unless_crowded(|| calls.places_are_taken(), taken).await {
                    Some(Ok(free)) => match download.next().await {
                        Some(part) => free.send(part.map_err(io::Error::other)),
                        None => return,
                    },
                    // The client has gone.
                    Some(Err(_)) => return,
                    None => break,
                }
            }
            tracing::debug!("an answer was not taken");
            // Before the client is waited for again, to be told.
            drop((download, place));
            let late = io::Error::from(io::ErrorKind::TimedOut);
            let _ = sender.send(Err(late)).await;
        });
        Body::from_stream(stream::poll_fn(move |context| receiver.poll_recv(context)))
    }

    /// A body of `announced` bytes, unless it tells its own length.
    pub(crate) async fn incoming(
        &self,
        body: Body,
        announced: Option<u64>,
    ) -> Result<Incoming, Failure> {
        let bytes = body.size_hint().exact().or(announced);
        let place = self.place(bytes.unwrap_or(0)).await?;
        Ok(timed(body, place, self.bodies.clone()))
    }

    /// A body in JSON, which is read as a whole.
    pub(crate) async fn question<T: DeserializeOwned>(&self, body: Body) -> Result<T, Failure> {
        let body = self.incoming(body, None).await?;
        control::parse(&whole(body, QUESTION, MAX_METADATA_BYTES).await?)
    }
}

/// The data of an object, which helps to place it, if it is known.
fn expected(length: u64, object: (String, String), algorithms: Vec<Algorithm>) -> Expected {
    Expected {
        length,
        object,
        algorithms,
        hints: WriteHints::default(),
    }
}

fn of_receive<E>(error: ReceiveError<E>, of_body: impl FnOnce(E) -> Failure) -> Failure {
    match error {
        ReceiveError::Body(error) => of_body(error),
        ReceiveError::Store(error) => error.into(),
        ReceiveError::NotRun(error) => not_run(error),
    }
}

impl SwiftCalls {
    /// Writes data to the drive before it has a name, behind [`check_size`].
    pub(crate) async fn stage<B: Source>(
        &self,
        body: B,
        staging: Staging,
        of_body: impl FnOnce(B::Error) -> Failure,
    ) -> Result<Staged, Failure> {
        let object = match (staging.policy, staging.hash) {
            (Some(policy), Some(hash)) => (policy.to_string(), hash),
            _ => Default::default(),
        };
        let expected = expected(staging.size.unwrap_or(0), object, vec![Algorithm::Md5]);
        let finish = |received: objects::Received| {
            let digests = received.digests;
            received.writer.finish().map(|written| (written, digests))
        };
        let (written, digests) = receive(&self.store, &self.adding, body, expected, finish)
            .await
            .map_err(|error| of_receive(error, of_body))??;
        let md5 = digests.hex(Algorithm::Md5);
        let size = digests.length;
        let staged = self.staged.keep(written).ok_or_else(busy)?;
        Ok(Staged { staged, size, md5 })
    }
}

/// Refuses data of more bytes than any object may have, before anything waits for it.
pub fn check_size(announced: Option<u64>) -> Result<(), Failure> {
    match announced > Some(MAX_DATA_BYTES) {
        true => Err(too_large("data", MAX_DATA_BYTES)),
        false => Ok(()),
    }
}

/// Stages a request's body.
pub async fn stage(
    State(calls): Calls,
    query: Result<Query<Staging>, QueryRejection>,
    body: Body,
) -> Answer<Staged> {
    let Query(mut staging) = query?;
    let coming = body.size_hint().exact();
    check_size(coming.max(staging.size))?;
    staging.size = coming.or(staging.size);
    let body = calls.incoming(body, staging.size).await?;
    let staged = calls.stage(Pieces::from(Some(body)), staging, broken_off);
    Ok(Json(staged.await?))
}

/// Succeeds whether or not the data is still staged.
pub async fn forget_staged(State(calls): Calls, named: Named) -> Json<Done> {
    drop(calls.staged.take(named.id()));
    Json(Done {})
}

/// Adds a file to an object.
pub async fn put(
    State(calls): Calls,
    named: Named,
    query: Result<Query<Putting>, QueryRejection>,
    body: Body,
) -> Answer<PutAnswer> {
    let Query(Putting {
        metadata_bytes,
        staged,
    }) = query?;
    // Staged data is used up from here on, whatever the outcome, unless the policy does not exist yet.
    let data = staged.as_deref().map(|id| calls.staged.take(id));
    let (address, file) = (named.address()?, named.file()?);
    if !file.kind.has_data() && (staged.is_some() || metadata_bytes.is_some()) {
        return Err(invalid(format_args!(
            "{file} has no data: the body is its metadata, without metadata_bytes and staged"
        )));
    }
    let length = body.size_hint().exact();
    let body = calls.incoming(body, None).await?;
    let Some(metadata_bytes) = metadata_bytes else {
        let metadata = whole(body, METADATA, MAX_METADATA_BYTES).await?;
        let data = match &staged {
            Some(id) => Some(data.flatten().ok_or_else(|| gone(id))?),
            None => None,
        };
        // A tombstone of what is there makes room, also where others wait for it. One of nothing takes some.
        let is_removal = file.kind == FileKind::Tombstone
            && calls
                .call(move |calls| {
                    let there = calls.drive.files(address).map_err(of_drive)?;
                    Ok(!there.is_empty())
                })
                .await?;
        let places = match is_removal {
            true => &calls.blocking,
            false => &calls.adding,
        };
        return calls
            .call_on(places, move |calls| {
                if let (Some(id), Some(data)) = (&staged, data) {
                    return match calls.drive.kind(address.policy) {
                        Ok(_) => calls.put(address, file, Some(data), metadata),
                        Err(error) => {
                            // The client adds the policy and tries again.
                            calls.staged.put_back(id, data);
                            Err(of_drive(error))
                        }
                    };
                }
                calls.put(address, file, None, metadata)
            })
            .await;
    };
    if staged.is_some() {
        return Err(invalid(
            "metadata_bytes and staged: the data is either in the body or staged",
        ));
    }
    if metadata_bytes > MAX_METADATA_BYTES {
        return Err(too_large(METADATA, MAX_METADATA_BYTES));
    }
    let length = length.map(|length| length.saturating_sub(metadata_bytes));
    let (metadata, data) = split(body, metadata_bytes).await?;
    let object = (address.policy.to_string(), address.hash.to_string());
    let expected = expected(length.unwrap_or(0), object, Vec::new());
    let commit = {
        let calls = calls.clone();
        move |received: objects::Received| {
            let written = received.writer.finish()?;
            calls.put(address, file, Some(written), metadata)
        }
    };
    let data = Pieces::from(Some(data));
    receive(&calls.store, &calls.adding, data, expected, commit)
        .await
        .map_err(|error| of_receive(error, broken_off))?
}

impl SwiftCalls {
    fn put(
        &self,
        address: Address,
        file: FileName,
        data: Option<Written>,
        metadata: Vec<u8>,
    ) -> Answer<PutAnswer> {
        let put = self.drive.put(address, file, data, metadata);
        let put = match put.map_err(of_drive)? {
            swift_drive::Put::Done => Put::Done,
            swift_drive::Put::Obsolete => Put::Obsolete,
        };
        Ok(Json(PutAnswer { put }))
    }
}

/// Opens an object: answers its description, metadata, and its data if it is short, in frames.
pub async fn open(State(calls): Calls, named: Named, body: Body) -> Result<Vec<u8>, Failure> {
    let address = named.address()?;
    let how: Open = calls.question(body).await?;
    let preferences = how.frag_prefs.map(preferences).transpose()?;
    let (mut head, metadata, whole, later) = calls
        .call(move |calls| {
            let wanted = Wanted {
                index: how.frag_index,
                preferences: preferences.as_deref(),
            };
            let opened = calls.drive.open(address, wanted).map_err(of_drive)?;
            told(opened, how.first_bytes.min(MAX_FIRST_BYTES))
        })
        .await?;
    // Here, for a client that has gone meanwhile does not come to this, and nothing is held for it.
    if let Some(reader) = later.filter(|_| how.hold) {
        let kept = calls.opened.keep(Arc::new(reader));
        head.opened = Some(kept.ok_or_else(busy)?);
    }
    // Only names and numbers, so this does not fail.
    let head = serde_json::to_vec(&head).map_err(Failure::failed)?;
    let mut all = vec![&*head];
    all.extend(metadata.iter().map(Vec::as_slice));
    all.push(&whole);
    Ok(control::frames(&all))
}

fn preferences(asked: Vec<FragmentPreference>) -> Result<Vec<Preference>, Failure> {
    let each = asked
        .into_iter()
        .map(|FragmentPreference { timestamp, exclude }| {
            let timestamp: Timestamp = timestamp.parse().map_err(invalid)?;
            Ok(Preference { timestamp, exclude })
        });
    each.collect()
}

/// Head of an answer, its metadata and its data, and the reader of data of more than `whole_up_to` bytes. Longer data is not
/// begun here: the client has to ask for the rest anyway, and all of it can be sent into one socket.
type Told = (Head, Vec<Vec<u8>>, Bytes, Option<ObjectReader>);

fn told(opened: Opened, whole_up_to: u64) -> Result<Told, Failure> {
    let Opened {
        files,
        choice,
        metadata,
        reader,
    } = opened;
    let Metadata {
        data,
        meta,
        content_type,
        tombstone,
    } = metadata;
    let name = |file: Option<FileName>| file.map(|file| file.to_string());
    let mut head = Head {
        files: files.iter().map(FileName::to_string).collect(),
        data: name(choice.data),
        meta: name(choice.meta),
        content_type: name(choice.content_type),
        tombstone: name(choice.tombstone),
        durable: choice.fragments.durable().map(|time| time.to_string()),
        size: None,
        opened: None,
        metadata: Vec::new(),
    };
    let mut told = Vec::new();
    let named = [
        ("data", data),
        ("meta", meta),
        ("content_type", content_type),
        ("tombstone", tombstone),
    ];
    for (name, metadata) in named {
        if let Some(metadata) = metadata {
            head.metadata.push(name);
            told.push(metadata);
        }
    }
    let mut whole = Bytes::new();
    let mut later = None;
    if let Some(reader) = reader {
        let size = reader.info().size;
        head.size = Some(size);
        if size <= whole_up_to {
            whole = read_piece(&reader, &(0..size)).map_err(|error| {
                let failure = of_read(error);
                match choice.data {
                    Some(file) => failure.of_file(file),
                    None => failure,
                }
            })?;
        } else {
            later = Some(reader);
        }
    }
    Ok((head, told, whole, later))
}

/// Streams the data of an opened object, or a range of it.
pub async fn read(
    State(calls): Calls,
    named: Named,
    query: Result<Query<Reading>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let Query(Reading { close }) = query?;
    let id = named.id();
    let reader = match close {
        true => calls.opened.take(id),
        false => calls.opened.get(id),
    };
    let reader = reader.ok_or_else(|| gone(id))?;
    let size = reader.info().size;
    let (status, range) = match headers.get(RANGE) {
        None => (StatusCode::OK, 0..size),
        Some(range) => {
            let range = range.to_str().ok().and_then(|range| one_range(range, size));
            let message = format!("the data has {size} bytes, and one range of them is answered");
            let none = || Failure::new(StatusCode::RANGE_NOT_SATISFIABLE, Kind::Invalid, message);
            (StatusCode::PARTIAL_CONTENT, range.ok_or_else(none)?)
        }
    };
    let length = range.end - range.start;
    let place = calls.place(length).await?;
    let download = calls.download(reader, range.clone()).await?;
    let body = match place {
        Some(place) => calls.sent(download, place),
        None => Body::from_stream(download),
    };
    let mut answer = (status, [(CONTENT_LENGTH, length.to_string())], body).into_response();
    let headers = answer.headers_mut();
    headers.insert(ACCEPT_RANGES, axum::http::HeaderValue::from_static("bytes"));
    if status == StatusCode::PARTIAL_CONTENT {
        let of = format!(
            "bytes {}-{}/{size}",
            range.start,
            range.end.saturating_sub(1)
        );
        headers.insert(CONTENT_RANGE, of.parse().map_err(Failure::failed)?);
    }
    Ok(answer)
}

fn one_range(asked: &str, size: u64) -> Option<Range<u64>> {
    let ranges = http_range_header::parse_range_header(asked).ok()?;
    // A suffix longer than the data is all of it (RFC 9110, section 14.1.3), which the library refuses.
    if let [range] = ranges.ranges.as_slice()
        && let StartPosition::FromLast(length) = range.start
        && length > size
        && size > 0
    {
        return Some(0..size);
    }
    let ranges = ranges.validate(size).ok()?;
    match ranges.as_slice() {
        [range] => Some(*range.start()..*range.end() + 1),
        _ => None,
    }
}

/// Succeeds whether or not the handle is still open.
pub async fn close(State(calls): Calls, named: Named) -> Json<Done> {
    drop(calls.opened.take(named.id()));
    Json(Done {})
}
