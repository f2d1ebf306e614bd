//! What the imports `files` and `http` are, as hosts implement them on grants of their own.

use std::sync::Arc;

use tooltape::{BoxFuture, CallContext, Grant, Rights, ToolError};

/// The files that a component may use, by relative paths.
///
/// A component gets no further than the rights that it declares. Whoever implements this holds it
/// to the rights of the run, as every handle does: by [`CallContext::check`].
pub trait Files: Send + Sync {
    /// The bytes of a file from an offset, at most `length` of them.
    fn read<'a>(
        &'a self,
        path: &'a str,
        offset: u64,
        length: u32,
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>>;

    /// The entries of a folder, by name.
    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<FolderEntry>, ToolError>>;

    /// Makes or replaces a file, whole.
    fn write<'a>(&'a self, path: &'a str, content: Vec<u8>)
    -> BoxFuture<'a, Result<(), ToolError>>;
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// The pages that a component may ask for.
///
/// A component asks no host but those that it declares a right for. Whoever implements this holds
/// it to the rights of the run, and does so again behind each redirect.
pub trait Web: Send + Sync {
    /// Asks for a page, of which at most `length` bytes are wanted.
    ///
    /// `declared` is what the component declares that it needs. An implementation must refuse every
    /// hop that it does not cover, before it asks there: the caller sees the first address and the
    /// last, and none of those between.
    fn get<'a>(
        &'a self,
        url: &'a str,
        length: u32,
        declared: &'a Rights,
    ) -> BoxFuture<'a, Result<Page, Trouble>>;
}

/// What a host of the web answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The address that answered, behind all redirects.
    pub url: String,
    /// The status, such as 200 or 404.
    pub status: u16,
    /// What the page says that it is.
    pub content_type: Option<String>,
    /// The page, unpacked.
    pub body: Vec<u8>,
    /// Whether there is more of it.
    pub truncated: bool,
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What went wrong, as the component reads it.
    pub message: String,
    /// Whether the request may have reached a host.
    pub request_sent: bool,
}

/// The grant of files to components.
///
/// It is what the grant inside is: it confers the same rights, and is handed to calls as that one
/// is.
///
/// ```
/// use tooltape::{BoxFuture, Grant, ToolError};
/// use tooltape_wasm::{Files, FolderEntry, HostFiles};
///
/// #[derive(Clone)]
/// struct Nothing;
///
/// impl Grant for Nothing {}
///
/// impl Files for Nothing {
///     fn read<'a>(
///         &'a self,
///         path: &'a str,
///         _: u64,
///         _: u32,
///     ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
///         Box::pin(async move { Err(ToolError::not_done(format!("there is no `{path}`"))) })
///     }
///     fn list<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<FolderEntry>, ToolError>> {
///         Box::pin(async { Ok(Vec::new()) })
///     }
///     fn write<'a>(&'a self, _: &'a str, _: Vec<u8>) -> BoxFuture<'a, Result<(), ToolError>> {
///         Box::pin(async { Err(ToolError::not_done("nothing is kept here")) })
///     }
/// }
///
/// let grant = HostFiles::new(Nothing);
/// ```
#[derive(Clone)]
pub struct HostFiles(Held<dyn Files>);

impl HostFiles {
    /// The grant of these files.
    pub fn new<G: Grant + Files>(grant: G) -> HostFiles {
        HostFiles(Held::new(grant, |grant| Arc::new(grant)))
    }

    /// The files, as the call that holds them may use them.
    pub(crate) fn files(&self) -> Option<Arc<dyn Files>> {
        self.0.now.clone()
    }
}

impl Grant for HostFiles {
    fn confers(&self) -> Rights {
        self.0.confers.clone()
    }

    fn for_call(self, context: &CallContext) -> HostFiles {
        HostFiles(self.0.for_call(context))
    }
}

/// The grant of the web to components.
///
/// It is what the grant inside is: it confers the same rights, and is handed to calls as that one
/// is.
#[derive(Clone)]
pub struct HostWeb(Held<dyn Web>);

impl HostWeb {
    /// The grant of this web.
    pub fn new<G: Grant + Web>(grant: G) -> HostWeb {
        HostWeb(Held::new(grant, |grant| Arc::new(grant)))
    }

    /// The web, as the call that holds it may use it.
    pub(crate) fn web(&self) -> Option<Arc<dyn Web>> {
        self.0.now.clone()
    }
}

impl Grant for HostWeb {
    fn confers(&self) -> Rights {
        self.0.confers.clone()
    }

    fn for_call(self, context: &CallContext) -> HostWeb {
        HostWeb(self.0.for_call(context))
    }
}

/// Hands a call what it may use.
type Hand<T> = dyn Fn(&CallContext) -> Arc<T> + Send + Sync;

/// A grant of which only one seam is known.
struct Held<T: ?Sized> {
    confers: Rights,
    hand: Arc<Hand<T>>,
    /// What a call holds.
    now: Option<Arc<T>>,
}

impl<T: ?Sized> Clone for Held<T> {
    fn clone(&self) -> Held<T> {
        Held { confers: self.confers.clone(), hand: self.hand.clone(), now: self.now.clone() }
    }
}

impl<T: ?Sized> Held<T> {
    fn new<G: Grant>(grant: G, seam: fn(G) -> Arc<T>) -> Held<T>
    where
        T: 'static,
    {
        let confers = grant.confers();
        let hand = Arc::new(move |context: &CallContext| seam(grant.clone().for_call(context)));
        Held { confers, hand, now: None }
    }

    fn for_call(mut self, context: &CallContext) -> Held<T> {
        self.now = Some((self.hand)(context));
        self
    }
}
