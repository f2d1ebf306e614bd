//! What SQLite's errors mean for a tape.

use std::io;

use rusqlite::{Error, ErrorCode, ffi};

use crate::tape::TapeError;

/// Names the places that errors of SQLite come from.
pub(super) struct Failure;

impl Failure {
    /// The file could not be opened as a tape.
    pub(super) fn at_open(err: Error) -> TapeError {
        match err.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => found_elsewhere("it is no SQLite database"),
            Some(ErrorCode::CannotOpen) => TapeError::Io { why: err.to_string() },
            _ => Failure::at(0)(err),
        }
    }

    /// A record at this place, or after it, could not be read or written.
    pub(super) fn at(seq: u64) -> impl FnOnce(Error) -> TapeError {
        move |err| {
            let why = err.to_string();
            let extended = err.sqlite_error().map_or(0, |err| err.extended_code);
            match err.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => TapeError::Full { why },
                // The index of the log is a file too, and has its own way to say so.
                _ if extended == ffi::SQLITE_IOERR_SHMSIZE => TapeError::Full { why },
                Some(ErrorCode::ReadOnly) => TapeError::ReadOnly,
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    TapeError::Corrupt { seq, why }
                }
                _ => TapeError::Io { why },
            }
        }
    }
}

/// Whether somebody else had the lock for longer than one waits. Nothing was written.
pub(super) fn is_busy(err: &Error) -> bool {
    matches!(err.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether a file beside the tape could not be made, opened or grown.
pub(super) fn is_shut(err: &Error) -> bool {
    use ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
    matches!(err.sqlite_error_code(), Some(CannotOpen | DiskFull | ReadOnly | SystemIoFailure))
}

/// Whether something is in the place where a record was to go.
pub(super) fn is_taken(err: &Error) -> bool {
    err.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// The file is something else, and is left alone.
pub(super) fn found_elsewhere(what: &str) -> TapeError {
    TapeError::Foreign { why: format!("{what}; nothing was changed") }
}

/// A file beside the tape failed.
pub(super) fn beside(err: &io::Error) -> TapeError {
    match err.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            TapeError::Full { why: err.to_string() }
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => TapeError::ReadOnly,
        _ => TapeError::Io { why: err.to_string() },
    }
}
