//! Secrets that a process may use and never has: it holds a token, and the proxy knows for whom.

use std::fmt::Write as _;

use tooltape::scope::{Host, Scheme, Site, Word};
use tooltape::{Random, Secret};

/// How a token begins, so that people know one when they see it.
const PREFIX: &str = "tooltape-secret-";
/// How many bytes nobody can guess there are in a token.
const TOKEN_BYTES: usize = 16;

/// A secret, the one host that may know it, and the token that stands for it.
#[derive(Clone)]
pub(crate) struct Brokered {
    /// Its name, in the right to use it.
    pub(crate) name: Word,
    /// The variable that holds the token.
    pub(crate) variable: String,
    host: Host,
    value: Secret<Vec<u8>>,
    pub(crate) token: String,
}

impl Brokered {
    /// A secret for one host. It has no token yet that would stand for it.
    pub(crate) fn new(
        name: Word,
        variable: String,
        host: Host,
        value: Secret<Vec<u8>>,
    ) -> Brokered {
        Brokered { name, variable, host, value, token: String::new() }
    }

    /// The same with a token of its own, for one process.
    pub(crate) fn with_token(mut self, random: &Random) -> Brokered {
        let mut bytes = [0; TOKEN_BYTES];
        random.fill(&mut bytes);
        self.token = bytes.iter().fold(PREFIX.to_owned(), |mut token, byte| {
            let _ = write!(token, "{byte:02x}");
            token
        });
        self
    }

    /// What becomes of a request in which tokens of secrets stand that its host may know.
    ///
    /// It has to be asked for as `http://`, without a port: it is then asked as `https://`, so that
    /// nobody on the way reads the secret. To all other hosts a token is a token.
    pub(super) fn of<'s>(
        secrets: &'s [Brokered],
        site: &Site,
        fields: &[(&str, &[u8])],
    ) -> Option<Brokering<'s>> {
        if site.scheme != Scheme::Http || site.port != Scheme::Http.port() {
            return None;
        }
        let stands = |secret: &&Brokered| {
            let token = secret.token.as_bytes();
            secret.host == site.host && fields.iter().any(|(_, value)| find(value, token).is_some())
        };
        let values: Vec<&Brokered> = secrets.iter().filter(stands).collect();
        let scheme = Scheme::Https;
        let site = Site { scheme, host: site.host.clone(), port: scheme.port() };
        (!values.is_empty()).then_some(Brokering { site, values })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.value.expose()
    }

    pub(super) fn token(&self) -> &[u8] {
        self.token.as_bytes()
    }
}

/// A request with secrets in it, and whom it goes to.
pub(super) struct Brokering<'s> {
    pub(super) site: Site,
    pub(super) values: Vec<&'s Brokered>,
}

impl Brokering<'_> {
    /// The value of a field, with secrets where tokens are.
    pub(super) fn fill(&self, value: &[u8]) -> Vec<u8> {
        self.values.iter().fold(value.to_vec(), |value, secret| {
            let (mut filled, mut rest) = (Vec::new(), &value[..]);
            while let Some(at) = find(rest, secret.token()) {
                filled.extend_from_slice(&rest[..at]);
                filled.extend_from_slice(secret.bytes());
                rest = &rest[at + secret.token.len()..];
            }
            filled.extend_from_slice(rest);
            filled
        })
    }
}

/// Where some bytes stand in others.
pub(super) fn find(within: &[u8], wanted: &[u8]) -> Option<usize> {
    (!wanted.is_empty()).then(|| within.windows(wanted.len()).position(|it| it == wanted))?
}
