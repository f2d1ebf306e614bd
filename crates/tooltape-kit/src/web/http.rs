//! The handle to the web that a host grants: whom it lets tools ask, and how.

use std::fmt;
use std::io;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tooltape::scope::Host;
use tooltape::{CallContext, Grant, Rights};

use super::seam::{Dial, Resolve, SystemDialler, SystemResolver};
use super::tls::Trust;

/// How long a page may take in all, with all its redirects.
pub const FETCH_WALL_DEFAULT: Duration = Duration::from_secs(30);
/// How long a host may say nothing.
pub const FETCH_IDLE_DEFAULT: Duration = Duration::from_secs(10);

/// How long hosts may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// In all, with all redirects.
    pub wall: Duration,
    /// Until the next step: to be found, to take a connection, to say the next byte.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { wall: FETCH_WALL_DEFAULT, idle: FETCH_IDLE_DEFAULT }
    }
}

/// The only way to the web that tools have.
///
/// It asks no host that its call has no right to ask, and no address that is not public: the name
/// is resolved once, every address is vetted, and the connection goes to a vetted one. Each
/// redirect is judged like the first address. It uses no proxy, cookie, password or certificate
/// that it finds around it.
///
/// Whoever holds it may ask the hosts that it was made with, unless
/// [`Run::rights`](tooltape::Run::rights) says what the run may do. At first these are none.
///
/// ```
/// use tooltape_kit::Http;
///
/// let http = Http::new().allow("net:get:example.com\nnet:get:*.example.org".parse().unwrap());
/// ```
#[derive(Clone)]
pub struct Http {
    pub(super) allowed: Rights,
    /// What its holder says that it needs, and no more of it.
    pub(super) only: Option<Rights>,
    pub(super) private: Vec<(Host, NonZeroU16)>,
    pub(super) trust: Arc<Trust>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) dialler: Arc<dyn Dial>,
    pub(super) patience: Patience,
    /// The call that holds it, where one does.
    pub(super) call: Option<CallContext>,
}

impl Http {
    /// A handle that asks the operating system for names and connections, and may ask nobody yet.
    pub fn new() -> Http {
        Http {
            allowed: Rights::none(),
            only: None,
            private: Vec::new(),
            trust: Arc::default(),
            resolver: Arc::new(SystemResolver),
            dialler: Arc::new(SystemDialler),
            patience: Patience::default(),
            call: None,
        }
    }

    /// Lets whoever holds it ask these hosts, and those it could ask before. An empty list adds
    /// nobody, and there is no word for everybody.
    #[must_use]
    pub fn allow(mut self, rights: Rights) -> Http {
        let allowed = [&self.allowed, &rights].map(|rights| rights.allowed().to_vec());
        let denied = [&self.allowed, &rights].map(|rights| rights.denied().to_vec());
        self.allowed = Rights::of(allowed.concat()).denying(denied.concat());
        self
    }

    /// The same handle for whoever says that it needs no more than this: not at the first address,
    /// and not behind a redirect.
    #[must_use]
    pub fn only(mut self, rights: Rights) -> Http {
        self.only = Some(match &self.only {
            Some(only) => only.meet(&rights),
            None => rights,
        });
        self
    }

    /// Whether there is anybody whom it may ask.
    pub fn may_ask(&self) -> bool {
        !self.allowed.allowed().is_empty()
    }

    /// Lets this host, at this port and no other, be on this machine or in a private network.
    ///
    /// A right to ask it is needed besides. The metadata services of clouds, the local link and
    /// addresses in disguise are refused all the same.
    #[must_use]
    pub fn private(mut self, host: Host, port: NonZeroU16) -> Http {
        self.private.push((host, port));
        self
    }

    /// Takes the word of this certificate (DER) for who a host is, and not that of the machine's.
    pub fn trust(mut self, root: &[u8]) -> io::Result<Http> {
        self.trust = Arc::new(self.trust.and(root.to_vec())?);
        Ok(self)
    }

    /// Asks this one for the addresses of names.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Http {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Asks this one for connections.
    #[must_use]
    pub fn dialler(mut self, dialler: impl Dial + 'static) -> Http {
        self.dialler = Arc::new(dialler);
        self
    }

    /// Waits for hosts as long as this.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Http {
        self.patience = patience;
        self
    }
}

impl Default for Http {
    fn default() -> Http {
        Http::new()
    }
}

impl Grant for Http {
    /// Whoever holds the handle may ask the hosts that it was made with.
    fn confers(&self) -> Rights {
        self.allowed.clone()
    }

    /// Whatever a host says to a call, the call has seen.
    fn for_call(mut self, context: &CallContext) -> Http {
        self.call = Some(context.clone());
        self
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}
