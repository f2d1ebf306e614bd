//! Rights: what may be done to the world, as typed values that only ever narrow.

mod allowance;
mod amount;
mod error;
mod holding;
mod host;
mod net;
mod path;
mod set;
mod site;
mod word;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use allowance::{Allowance, Amounts, Measure, Short};
pub use amount::{Amount, Currency, SpawnScope, SpendScope};
use error::escaped;
pub use error::{RightError, RightsError, ScopeError};
pub use holding::{Holding, Refusal, Withheld};
pub use host::{HOST_BYTES_MAX, Host, Hosts};
pub use net::{Method, NetScope};
pub use path::{FileScope, Program, RIGHT_PATH_BYTES_MAX, RIGHT_PATH_DEPTH_MAX, RelativePath};
pub use set::{RIGHTS_LISTED_MAX, RIGHTS_MAX, Rights, Why};
pub use site::{Scheme, Site};
pub use word::{McpTool, Variable, WORD_BYTES_MAX, Word};

/// The most bytes of a right's text.
pub const RIGHT_BYTES_MAX: usize = RIGHT_PATH_BYTES_MAX + 256;

/// One thing that may be done, written `domain:action:scope`.
///
/// Its meaning is typed: a path covers what is below it component by component, a host is a parsed
/// host, an amount covers at most itself. Nothing is matched by how its text begins. A text that
/// cannot be read is an error, and there is none that stands for everything.
///
/// ```
/// use tooltape::Right;
///
/// let right = |text: &str| text.parse::<Right>().unwrap();
/// assert!(right("fs:read:src").covers(&right("fs:read:src/a.rs")));
/// assert!(!right("fs:read:src").covers(&right("fs:read:src-evil")));
/// assert_eq!(
///     right("net:any:*.example.com").meet(&right("net:get:api.example.com:443")),
///     Some(right("net:get:api.example.com"))
/// );
/// assert_eq!(right("spend:usd:2.50").meet(&right("spend:eur:1")), None);
/// assert!("fs:read:*".parse::<Right>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Right {
    /// `fs:read:SCOPE`: to read files.
    FsRead(FileScope),
    /// `fs:write:SCOPE`: to make, change and remove files. It is no right to read them.
    FsWrite(FileScope),
    /// `net:METHOD:HOST[:PORT]`: to ask a host.
    Net(NetScope),
    /// `process:run:PROGRAM`: to run a program.
    ProcessRun(Program),
    /// `process:shell:PROFILE`: to run a shell inside the sandbox of that profile.
    ProcessShell(Word),
    /// `env:read:NAME`: to read a variable of the environment.
    EnvRead(Variable),
    /// `secret:use:NAME`: to use a secret.
    SecretUse(Word),
    /// `spend:CURRENCY:AMOUNT`: to spend money.
    Spend(SpendScope),
    /// `agents:spawn:COUNT/DEPTH`: to start agents.
    AgentsSpawn(SpawnScope),
    /// `mcp:call:SERVER/TOOL@HASH`: to call a tool of an MCP server.
    McpCall(McpTool),
    /// `clock:read:now`: to learn the time.
    ClockRead,
    /// `random:read:any`: to draw randomness.
    RandomRead,
}

impl Right {
    /// Whether whoever has this has `other` too.
    pub fn covers(&self, other: &Right) -> bool {
        match (self, other) {
            (Right::FsRead(one), Right::FsRead(other))
            | (Right::FsWrite(one), Right::FsWrite(other)) => one.covers(other),
            (Right::Net(one), Right::Net(other)) => one.covers(other),
            (Right::Spend(one), Right::Spend(other)) => one.covers(other),
            (Right::AgentsSpawn(one), Right::AgentsSpawn(other)) => one.covers(other),
            // The others have no parts, and those of different kinds have nothing in common.
            (one, other) => one == other,
        }
    }

    /// What both cover: the greatest right that is covered by each, if they have one in common.
    pub fn meet(&self, other: &Right) -> Option<Right> {
        match (self, other) {
            (Right::Net(one), Right::Net(other)) => one.meet(other).map(Right::Net),
            (Right::AgentsSpawn(one), Right::AgentsSpawn(other)) => {
                Some(Right::AgentsSpawn(one.meet(other)))
            }
            // Elsewhere whatever overlaps is a chain.
            (one, other) if one.covers(other) => Some(other.clone()),
            (one, other) if other.covers(one) => Some(one.clone()),
            (_, _) => None,
        }
    }

    /// Whether they have anything in common: whether their meet is something.
    pub fn overlaps(&self, other: &Right) -> bool {
        match (self, other) {
            (Right::Net(one), Right::Net(other)) => one.overlaps(other),
            (Right::Spend(one), Right::Spend(other)) => one.overlaps(other),
            (Right::AgentsSpawn(_), Right::AgentsSpawn(_)) => true,
            (one, other) => one.covers(other) || other.covers(one),
        }
    }

    /// Whether, where this is denied, nothing is left of `other`, parts by method aside.
    fn shadows(&self, other: &Right) -> bool {
        match (self, other) {
            (Right::Net(one), Right::Net(other)) => one.shadows(other),
            (Right::Spend(one), Right::Spend(other)) => one.overlaps(other),
            (Right::AgentsSpawn(_), Right::AgentsSpawn(_)) => true,
            (one, other) => one.covers(other),
        }
    }

    /// Itself, and for any method each method: of these alone may a denial leave a part.
    fn parts(&self) -> Vec<Right> {
        match self {
            Right::Net(net) => net.by_method().map(Right::Net).collect(),
            right => vec![right.clone()],
        }
    }
}

impl FromStr for Right {
    type Err = RightError;

    fn from_str(text: &str) -> Result<Right, RightError> {
        if text.is_empty() {
            return Err(RightError::Empty);
        }
        if text.len() > RIGHT_BYTES_MAX {
            return Err(RightError::TooLong { bytes: text.len() });
        }
        let mut parts = text.splitn(3, ':');
        let (Some(domain), Some(action), Some(scope)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(RightError::Form { right: escaped(text) });
        };
        let unscoped = |source| RightError::Scope { right: escaped(text), source };
        let unknown = |domain, expected| {
            Err(RightError::Action { domain, action: escaped(action), expected })
        };
        let right = match (domain, action) {
            ("fs", "read") => scope.parse().map(Right::FsRead),
            ("fs", "write") => scope.parse().map(Right::FsWrite),
            ("fs", _) => return unknown("fs", "`read` or `write`"),
            ("net", word) => match Method::of_word(word) {
                Some(method) => NetScope::parse(method, scope).map(Right::Net),
                None => return unknown("net", Method::WORDS),
            },
            ("process", "run") => scope.parse().map(Right::ProcessRun),
            ("process", "shell") => Word::parse("profile", scope).map(Right::ProcessShell),
            ("process", _) => return unknown("process", "`run` or `shell`"),
            ("env", "read") => scope.parse().map(Right::EnvRead),
            ("env", _) => return unknown("env", "`read`"),
            ("secret", "use") => Word::parse("secret", scope).map(Right::SecretUse),
            ("secret", _) => return unknown("secret", "`use`"),
            ("spend", currency) => currency.parse().and_then(|currency| {
                Ok(Right::Spend(SpendScope { currency, most: scope.parse()? }))
            }),
            ("agents", "spawn") => scope.parse().map(Right::AgentsSpawn),
            ("agents", _) => return unknown("agents", "`spawn`"),
            ("mcp", "call") => scope.parse().map(Right::McpCall),
            ("mcp", _) => return unknown("mcp", "`call`"),
            ("clock", "read") => word_only(scope, "now", Right::ClockRead),
            ("clock", _) => return unknown("clock", "`read`"),
            ("random", "read") => word_only(scope, "any", Right::RandomRead),
            ("random", _) => return unknown("random", "`read`"),
            (_, _) => {
                let expected = "`fs`, `net`, `process`, `env`, `secret`, `spend`, `agents`, \
                                `mcp`, `clock` or `random`";
                return Err(RightError::Domain { domain: escaped(domain), expected });
            }
        };
        right.map_err(unscoped)
    }
}

fn word_only(scope: &str, word: &str, right: Right) -> Result<Right, ScopeError> {
    match scope == word {
        true => Ok(right),
        false => Err(ScopeError::form("scope", scope, format!("`{word}`"))),
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Right::FsRead(files) => write!(f, "fs:read:{files}"),
            Right::FsWrite(files) => write!(f, "fs:write:{files}"),
            Right::Net(net) => write!(f, "net:{net}"),
            Right::ProcessRun(program) => write!(f, "process:run:{program}"),
            Right::ProcessShell(profile) => write!(f, "process:shell:{profile}"),
            Right::EnvRead(variable) => write!(f, "env:read:{variable}"),
            Right::SecretUse(name) => write!(f, "secret:use:{name}"),
            Right::Spend(spend) => write!(f, "spend:{spend}"),
            Right::AgentsSpawn(agents) => write!(f, "agents:spawn:{agents}"),
            Right::McpCall(tool) => write!(f, "mcp:call:{tool}"),
            Right::ClockRead => f.write_str("clock:read:now"),
            Right::RandomRead => f.write_str("random:read:any"),
        }
    }
}

impl<'de> Deserialize<'de> for Right {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Right, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Right {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
