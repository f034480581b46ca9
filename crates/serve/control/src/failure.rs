//! Errors of handlers as HTTP answers: a status, and a [`Problem`] that says what the caller can do.

use crate::api::{API_VERSION, Kind, Problem};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use zone::ZoneError;

/// An error as an HTTP answer.
pub struct Failure {
    status: StatusCode,
    problem: Problem,
}

impl Failure {
    /// An error with this status; `message` is one line for people.
    pub fn new(status: StatusCode, kind: Kind, message: impl ToString) -> Self {
        let message = message.to_string();
        let problem = Problem {
            kind,
            message,
            file: None,
        };
        Self { status, problem }
    }

    /// The same error, which is about this file of a Swift object.
    pub fn of_file(mut self, file: impl ToString) -> Self {
        self.problem.file = Some(file.to_string());
        self
    }

    /// An error that the caller can do nothing about.
    pub fn failed(message: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Failed, message)
    }

    /// What the answer's body says.
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// There is no such call.
    pub fn unknown_call() -> Self {
        let message = format!("there is no such call in version {API_VERSION}");
        Self::new(StatusCode::NOT_FOUND, Kind::UnknownCall, message)
    }

    /// The server is stopping.
    pub fn stopping() -> Self {
        let message = "the server is stopping";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Stopping, message)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem)).into_response()
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        use store::Error as E;
        let full = (StatusCode::INSUFFICIENT_STORAGE, Kind::NoSpace);
        let (status, kind) = match &error {
            E::NoCollection { .. } | E::NoObject { .. } => (StatusCode::NOT_FOUND, Kind::NotFound),
            E::Invalid { .. } | E::HashNotCovered { .. } | E::NoName { .. } => {
                (StatusCode::BAD_REQUEST, Kind::Invalid)
            }
            E::NoSpace { .. }
            | E::NoMetadataSpace { .. }
            | E::TransactionTooLarge { .. }
            | E::HostFull { .. }
            | E::Kv(kv::Error::NoSpace { .. })
            | E::BlueFs(bluefs::Error::NoSpace { .. }) => full,
            E::Drive(error) | E::BlueFs(bluefs::Error::Drive(error)) if error.is_host_full() => {
                full
            }
            E::ChecksumMismatch { .. }
            | E::Unreadable { .. }
            | E::BytesLost { .. }
            | E::CorruptMetadata { .. }
            | E::BelowMetadata { .. }
            | E::Kv(kv::Error::Corruption { .. }) => {
                (StatusCode::INTERNAL_SERVER_ERROR, Kind::Damaged)
            }
            E::BlueFs(error) if error.is_damage() => {
                (StatusCode::INTERNAL_SERVER_ERROR, Kind::Damaged)
            }
            E::ReadOnly => (StatusCode::SERVICE_UNAVAILABLE, Kind::Stopping),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, Kind::Failed),
        };
        Self::new(status, kind, error)
    }
}

impl From<ZoneError> for Failure {
    fn from(error: ZoneError) -> Self {
        Self::failed(format_args!("drive: {error}"))
    }
}

impl From<QueryRejection> for Failure {
    fn from(error: QueryRejection) -> Self {
        Self::new(error.status(), Kind::Invalid, error.body_text())
    }
}
