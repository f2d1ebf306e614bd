//! What components reach beyond themselves: the run's own workspace and web, handle for handle.

use tooltape::{BoxFuture, CallContext, Grant, Provenance, Random, Rights, ToolError};
use tooltape_kit::{Ask, EntryKind, Http, Workspace, WorkspacePath};
use tooltape_wasm::{Files, FolderEntry, Page, Trouble, Web};

/// The workspace, as components see it.
#[derive(Clone)]
pub(super) struct Folder(pub(super) Workspace);

impl Grant for Folder {
    fn confers(&self) -> Rights {
        self.0.confers()
    }

    fn for_call(self, context: &CallContext) -> Folder {
        Folder(self.0.for_call(context))
    }
}

impl Folder {
    /// Uses a file on a thread that may wait for the disk.
    fn at<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&Workspace, WorkspacePath) -> Result<T, ToolError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, ToolError>> {
        let (files, path) = (self.0.clone(), path.parse::<WorkspacePath>());
        Box::pin(async move {
            let path = path.map_err(|err| ToolError::not_done(err.to_string()).code("path"))?;
            let worked = tokio::task::spawn_blocking(move || work(&files, path)).await;
            worked.map_err(|err| ToolError::in_doubt("the host failed").because(err))?
        })
    }
}

impl Files for Folder {
    fn read<'a>(
        &'a self,
        path: &'a str,
        offset: u64,
        length: u32,
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        self.at(path, move |files, path| {
            let mut bytes = files.read(&path).map_err(|err| err.tell())?;
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
            bytes.drain(..from);
            bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            Ok(bytes)
        })
    }

    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<FolderEntry>, ToolError>> {
        self.at(path, |files, path| {
            let listing = files.list(&path).map_err(|err| err.tell())?;
            let entry = |entry: tooltape_kit::Entry| {
                let is_folder = entry.kind == EntryKind::Dir;
                FolderEntry { name: entry.name, is_folder }
            };
            Ok(listing.entries.into_iter().map(entry).collect())
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        content: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        self.at(path, move |files, path| {
            files.write(&path, &content, &Random::system()).map_err(|err| err.tell())
        })
    }
}

/// The web, as components see it.
#[derive(Clone)]
pub(super) struct Pages {
    http: Http,
    /// The call, and whether it could tell everybody all that it had seen when it was judged.
    call: Option<(Provenance, bool)>,
}

impl Pages {
    pub(super) fn new(http: Http) -> Pages {
        Pages { http, call: None }
    }

    /// Whether the call has read since what is not for everybody.
    fn holds_back(&self) -> bool {
        let call = self.call.as_ref();
        call.is_some_and(|(seen, was_public)| *was_public && !seen.label().is_public())
    }
}

impl Grant for Pages {
    fn confers(&self) -> Rights {
        self.http.confers()
    }

    fn for_call(self, context: &CallContext) -> Pages {
        let seen = context.provenance();
        let was_public = seen.label().is_public();
        Pages { http: self.http.for_call(context), call: Some((seen, was_public)) }
    }
}

impl Web for Pages {
    fn get<'a>(
        &'a self,
        url: &'a str,
        length: u32,
        declared: &'a Rights,
    ) -> BoxFuture<'a, Result<Page, Trouble>> {
        Box::pin(async move {
            let trouble = |message: String, request_sent| Trouble { message, request_sent };
            let url = url
                .parse()
                .map_err(|err: tooltape_kit::UrlError| trouble(err.to_string(), false))?;
            if self.holds_back() {
                let why = "the call has read what is not public, and tells nobody";
                return Err(trouble(why.to_owned(), false));
            }
            let bytes_max = usize::try_from(length).unwrap_or(usize::MAX);
            let ask = Ask { url, headers: Vec::new(), bytes_max };
            let fetched =
                self.http.clone().only(declared.clone()).get(&ask).await.map_err(|err| {
                    // Whoever was not let through has told nobody anything.
                    let sent = !matches!(
                        err.code(),
                        "withheld" | "metadata" | "not_public" | "unresolved" | "unreachable"
                    );
                    trouble(err.to_string(), sent)
                })?;
            Ok(Page {
                url: fetched.url.to_string(),
                status: fetched.status,
                content_type: fetched.content_type,
                body: fetched.bytes,
                truncated: fetched.truncated,
            })
        })
    }
}
