//! HTTP errors of drive, store and threads.

use axum::http::StatusCode;
use control::Failure;
use control::api::Kind;
use objects::{NotRun, ReadError};
use swift_drive::Error;

pub fn of_drive(error: Error) -> Failure {
    let (status, kind) = match &error {
        Error::NoPolicy { .. } => (StatusCode::NOT_FOUND, Kind::NoPolicy),
        Error::OtherPolicy { .. } => (StatusCode::CONFLICT, Kind::OtherPolicy),
        Error::NoObject | Error::NoFile { .. } => (StatusCode::NOT_FOUND, Kind::NotFound),
        Error::WrongFile { .. } => (StatusCode::BAD_REQUEST, Kind::Invalid),
        Error::Foreign { .. } => (StatusCode::INTERNAL_SERVER_ERROR, Kind::Failed),
        Error::NotEmptied { .. } => (StatusCode::INTERNAL_SERVER_ERROR, Kind::Damaged),
        Error::Store(_) | Error::InFile { .. } => {
            return match error {
                Error::Store(error) => error.into(),
                Error::InFile { file, source } => Failure::from(*source).of_file(file),
                other => Failure::failed(other),
            };
        }
    };
    Failure::new(status, kind, error)
}

pub fn of_read(error: ReadError) -> Failure {
    match error {
        ReadError::Store(error) => error.into(),
        ReadError::NotRun(error) => not_run(error),
        error @ ReadError::Ends { .. } => {
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Damaged, error)
        }
    }
}

pub fn not_run(error: NotRun) -> Failure {
    match error {
        NotRun::Stopping => Failure::stopping(),
        NotRun::Panicked => Failure::failed(error),
    }
}

pub fn invalid(message: impl ToString) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, Kind::Invalid, message)
}

/// Error for an unknown or expired id.
pub fn gone(id: &str) -> Failure {
    let message = format!(
        "{id} is not known: it was used, was left alone too long, or is of an earlier start of the daemon"
    );
    Failure::new(StatusCode::GONE, Kind::Gone, message)
}

pub fn busy() -> Failure {
    let message = "too much is staged or opened: commit, close or forget some of it";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Busy, message)
}
