//! Files and pages that note who touches them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tooltape::{BoxFuture, Grant, Rights, ToolError};
use tooltape_wasm::{Files, FolderEntry, Page, Trouble, Web};

/// What was asked of the outside.
#[derive(Default)]
pub(crate) struct Touched {
    asked: Mutex<Vec<String>>,
    /// How many requests began that nothing answers.
    pub(crate) waiting: AtomicU64,
}

impl Touched {
    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    /// What was asked until now; it is forgotten then.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// The outside: every file is there, and every page but those that never answer.
#[derive(Clone)]
pub(crate) struct Outside(Arc<Touched>);

impl Outside {
    pub(crate) fn new(touched: &Arc<Touched>) -> Outside {
        Outside(touched.clone())
    }
}

impl Grant for Outside {}

impl Files for Outside {
    fn read<'a>(
        &'a self,
        path: &'a str,
        _: u64,
        length: u32,
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        self.0.note(format!("read {path}"));
        // More than was asked for, as a careless host might.
        Box::pin(async move { Ok(vec![b'x'; length as usize + 1]) })
    }

    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<FolderEntry>, ToolError>> {
        self.0.note(format!("list {path}"));
        Box::pin(async { Ok(Vec::new()) })
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        content: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.note(format!("write {path} {}", content.len()));
        Box::pin(async { Ok(()) })
    }
}

impl Web for Outside {
    fn get<'a>(
        &'a self,
        url: &'a str,
        length: u32,
        _: &'a Rights,
    ) -> BoxFuture<'a, Result<Page, Trouble>> {
        self.0.note(format!("get {url}"));
        Box::pin(async move {
            if url.ends_with("/never") {
                self.0.waiting.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            let body = vec![b'x'; length as usize + 1];
            let (url, content_type) = (url.to_owned(), None);
            Ok(Page { url, status: 200, content_type, body, truncated: true })
        })
    }
}
