//! One typed rule: which calls it is about, and what it says of them.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;
use super::argument::{Argument, Lean, Test, as_texts, either};
use super::evidence::Evidence;
use crate::call::Call;
use crate::canon::Canon;
use crate::label::Label;
use crate::right::Hosts;
use crate::spec::{Access, Effects, Enforced, Reach};
use crate::tool::Registered;

/// What the model reads of a denial that nobody explained.
pub(super) const DENIED: &str = "this run does not allow it";

/// A rule: which calls it is about, and what it says of them.
///
/// It matches a call if everything that it names does. In doubt, as with a path that leaves its
/// folder or a host that nobody knows, a rule that allows does not match, and one that asks or
/// denies does.
///
/// ```
/// use tooltape::Rule;
/// use tooltape::rule::{Effect, Test};
///
/// let rule = Rule::allow("edits in src")
///     .tool("edit_file")
///     .where_argument("path".parse().unwrap(), Test::Glob("src/**".parse().unwrap()));
/// assert_eq!(rule.to_string(), "allow `edit_file`: path like `src/**`");
/// let rule = Rule::deny("no money", "this run spends nothing").effect(Effect::Spend);
/// assert_eq!(rule.to_string(), "deny any tool: spend");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rule {
    /// What the tape, a question and a denial call it, such as its file and line.
    pub name: Cow<'static, str>,
    /// Whose it is.
    pub side: Side,
    /// What it says of the calls that match.
    pub says: Says,
    /// What the model reads where it denies.
    pub message: Option<String>,
    /// The tool's name; any tool, where there is none.
    pub tool: Option<String>,
    /// What the tool does to the world.
    pub access: Option<Access>,
    /// What the tool declares, all of it.
    pub effects: Vec<Effect>,
    /// How the tool is held to what it declares.
    pub walls: Option<Walls>,
    /// What the label of the call says, all of it.
    pub marks: Vec<Mark>,
    /// The hosts that a call asks: of the rights that it needs.
    #[serde(serialize_with = "as_texts")]
    pub hosts: Vec<Hosts>,
    /// What arguments must be like, all of them.
    pub arguments: Vec<(Argument, Test)>,
}

/// Whose a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The user's, or the host's own.
    User,
    /// That of a project which somebody else may have written: it can only narrow.
    Project,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// Run it.
    Allow,
    /// Run it if somebody who was asked says yes.
    Ask,
    /// Do not run it.
    Deny,
}

/// Something that a tool declares of its calls.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It touches nothing.
    Pure,
    /// It reads, and changes nothing.
    Read,
    /// It changes something.
    Write,
    /// It reaches other machines.
    Network,
    /// It touches files.
    Filesystem,
    /// It starts processes.
    Process,
    /// It spends money.
    Spend,
    /// A person must confirm each call.
    Confirm,
}

/// Something that the label of a call says: of what its model was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Nobody had a hand in it whom nobody vouches for.
    Trusted,
    /// Somebody had.
    Untrusted,
    /// It is not for everybody; where a rule asks or denies, secrets are that, too.
    Internal,
    /// Some secret can be told from it.
    Secret,
}

/// How a tool must be held to what it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Walls {
    /// By this, or by something stronger.
    AtLeast(Enforced),
    /// By something weaker than this.
    Below(Enforced),
}

impl Says {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Says::Allow => "allow",
            Says::Ask => "ask",
            Says::Deny => "deny",
        }
    }
}

impl Effect {
    /// Whether a tool with these effects declares it.
    pub fn is_declared(self, effects: &Effects) -> bool {
        match self {
            Effect::Pure => effects.access == Access::Pure,
            Effect::Read => effects.access == Access::Read,
            Effect::Write => effects.access == Access::Write,
            Effect::Network => effects.reach == Reach::Network,
            Effect::Filesystem => effects.filesystem,
            Effect::Process => effects.process,
            Effect::Spend => effects.spend,
            Effect::Confirm => effects.confirm,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Pure => "pure",
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Network => "network",
            Effect::Filesystem => "filesystem",
            Effect::Process => "process",
            Effect::Spend => "spend",
            Effect::Confirm => "confirm",
        }
    }
}

impl Walls {
    /// Whether a tool that is held so is meant.
    pub fn covers(self, enforced: Enforced) -> bool {
        match self {
            Walls::AtLeast(least) => enforced >= least,
            Walls::Below(than) => enforced < than,
        }
    }
}

impl Rule {
    /// A rule of the user's about every call, until more is said.
    pub fn new(name: impl Into<Cow<'static, str>>, says: Says) -> Rule {
        Rule {
            name: name.into(),
            side: Side::User,
            says,
            message: None,
            tool: None,
            access: None,
            effects: Vec::new(),
            walls: None,
            marks: Vec::new(),
            hosts: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// A rule that allows.
    pub fn allow(name: impl Into<Cow<'static, str>>) -> Rule {
        Rule::new(name, Says::Allow)
    }

    /// A rule that asks.
    pub fn ask(name: impl Into<Cow<'static, str>>) -> Rule {
        Rule::new(name, Says::Ask)
    }

    /// A rule that denies, and tells the model why.
    pub fn deny(name: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Rule {
        Rule { message: Some(message.into()), ..Rule::new(name, Says::Deny) }
    }

    /// Says whose it is.
    #[must_use]
    pub fn side(mut self, side: Side) -> Rule {
        self.side = side;
        self
    }

    /// Is about the tool of exactly this name.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Rule {
        self.tool = Some(name.into());
        self
    }

    /// Is about tools of this access.
    #[must_use]
    pub fn access(mut self, access: Access) -> Rule {
        self.access = Some(access);
        self
    }

    /// Is about tools that declare this, beside what they must declare already.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Rule {
        self.effects.push(effect);
        self
    }

    /// Is about tools that are held to what they declare so.
    #[must_use]
    pub fn walls(mut self, walls: Walls) -> Rule {
        self.walls = Some(walls);
        self
    }

    /// Is about calls whose label says this, beside what it must say already.
    ///
    /// A rule of the user's that allows and names all that is wrong with a label allows despite it;
    /// one of a project never does.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Rule {
        self.marks.push(mark);
        self
    }

    /// Is about calls that ask these hosts, or others that it names.
    #[must_use]
    pub fn host(mut self, hosts: Hosts) -> Rule {
        self.hosts.push(hosts);
        self
    }

    /// Is about calls with an argument like this, beside what they must be like already.
    #[must_use]
    pub fn where_argument(mut self, argument: Argument, test: Test) -> Rule {
        self.arguments.push((argument, test));
        self
    }

    /// Whether it matches a call.
    pub fn matches(&self, call: &Call) -> bool {
        self.is_about(call.registered()) && self.fits(&Evidence::of(call))
    }

    /// Whether it would match a call of this tool with these arguments, proposed by a model that
    /// was shown what has this label.
    pub fn would_match(&self, tool: &Registered, args: &Canon, label: &Label) -> bool {
        self.is_about(tool) && self.fits(&Evidence::new(tool, args, label))
    }

    fn is_about(&self, tool: &Registered) -> bool {
        self.tool.as_ref().is_none_or(|name| name == tool.id().name().as_str())
    }

    /// Whether it matches a call of its tool.
    pub(super) fn fits(&self, call: &Evidence<'_>) -> bool {
        let (effects, lean) = (call.effects(), self.lean());
        self.access.is_none_or(|access| access == effects.access)
            && self.effects.iter().all(|effect| effect.is_declared(effects))
            && self.walls.is_none_or(|walls| walls.covers(call.tool.enforced_by()))
            && self.marks.iter().all(|mark| mark.covers(call.label, lean))
            && (self.hosts.is_empty() || call.asks(&self.hosts, lean))
            && self.arguments.iter().all(|(argument, test)| call.has(argument, test, lean))
    }

    /// Which way it errs.
    pub(super) fn lean(&self) -> Lean {
        match self.says {
            Says::Allow => Lean::Allows,
            Says::Ask | Says::Deny => Lean::Holds,
        }
    }

    /// What it says of a call that matches.
    pub(super) fn verdict(&self, call: &Call) -> Verdict {
        let name = self.name.clone();
        match self.says {
            // Only a rule that names the tool can stand in for the confirmation that it wants.
            Says::Allow if call.effects().confirm && self.tool.is_none() => Verdict::ask(name),
            Says::Allow => {
                let is_users = self.side == Side::User;
                let despite_label = is_users && self.knows(call);
                let names_tool = is_users && self.tool.is_some();
                Verdict::Allow { rule: name, despite_label, names_tool }
            }
            Says::Ask => Verdict::ask(name),
            Says::Deny => Verdict::deny(name, self.message.as_deref().unwrap_or(DENIED)),
        }
    }
}

impl Rule {
    /// Whether it names all that is wrong with a call's label.
    fn knows(&self, call: &Call) -> bool {
        let (label, effects) = (call.label(), call.effects());
        let names = |mark| self.marks.contains(&mark);
        // Where nobody learns anything, it does not matter whom that is not for.
        let tells = effects.reach == Reach::Network || effects.process;
        let is_fit = label.is_public()
            || !tells
            || names(Mark::Secret)
            || names(Mark::Internal) && label.is_internal();
        !self.marks.is_empty() && (label.is_trusted() || names(Mark::Untrusted)) && is_fit
    }
}

impl Mark {
    /// Whether a label says this: to be allowed no more than this, and to be held at least this.
    pub(super) fn covers(self, label: &Label, lean: Lean) -> bool {
        match (self, lean) {
            (Mark::Trusted, _) => label.is_trusted(),
            (Mark::Untrusted, _) => !label.is_trusted(),
            (Mark::Internal, Lean::Allows) => label.is_internal(),
            (Mark::Internal, Lean::Holds) => !label.is_public(),
            (Mark::Secret, _) => label.secrets().next().is_some(),
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Mark::Trusted => "trusted",
            Mark::Untrusted => "untrusted",
            Mark::Internal => "internal",
            Mark::Secret => "secret",
        }
    }
}

/// What it says, of which tool, and where.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool.as_ref().map_or("any tool".into(), |name| format!("`{name}`"));
        write!(f, "{} {tool}", self.says.word())?;
        let access = self.access.map(|access| match access {
            Access::Pure => "access pure".to_owned(),
            Access::Read => "access read".to_owned(),
            Access::Write => "access write".to_owned(),
        });
        let effects = self.effects.iter().map(|effect| effect.word().to_owned());
        let walls = self.walls.map(|walls| match walls {
            Walls::AtLeast(least) => format!("enforced by {least} or more"),
            Walls::Below(than) => format!("enforced by less than {than}"),
        });
        let marks = self.marks.iter().map(|mark| format!("label {}", mark.word()));
        let hosts = (!self.hosts.is_empty()).then(|| format!("asks {}", either(&self.hosts)));
        let arguments = self.arguments.iter().map(|(argument, test)| format!("{argument} {test}"));
        let parts = access
            .into_iter()
            .chain(effects)
            .chain(walls)
            .chain(marks)
            .chain(hosts)
            .chain(arguments);
        for (at, part) in parts.enumerate() {
            write!(f, "{} {part}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}
