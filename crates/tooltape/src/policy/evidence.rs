//! What rules look at when they judge a call: each part is found out once, when first asked for.

use std::cell::OnceCell;

use super::argument::{Argument, Lean, Test, is_among};
use crate::call::Call;
use crate::canon::{Canon, Peek};
use crate::label::Label;
use crate::right::{Hosts, Right};
use crate::spec::{Effects, Reach};
use crate::tool::Registered;

/// A call, or what could be one.
pub(super) struct Evidence<'c> {
    pub(super) tool: &'c Registered,
    pub(super) label: &'c Label,
    args: Peek<'c>,
    hosts: OnceCell<Asked>,
}

/// The hosts that a call asks.
enum Asked {
    /// All of them.
    These(Vec<Hosts>),
    /// The tool does not say.
    Unknown,
}

impl<'c> Evidence<'c> {
    pub(super) fn of(call: &'c Call) -> Evidence<'c> {
        Evidence::new(call.registered(), call.args(), call.label())
    }

    pub(super) fn new(tool: &'c Registered, args: &'c Canon, label: &'c Label) -> Evidence<'c> {
        Evidence { tool, label, args: Peek::new(args), hosts: OnceCell::new() }
    }

    pub(super) fn effects(&self) -> &'c Effects {
        self.tool.effects()
    }

    /// Whether an argument is like this.
    pub(super) fn has(&self, argument: &Argument, test: &Test, lean: Lean) -> bool {
        let is_like = match self.args.root() {
            Some(root) => argument.is_like(root, test, lean),
            None => lean.sure(None),
        };
        is_like || lean == Lean::Holds && argument.is_path() && self.needs_file(test)
    }

    /// Whether it needs a file that is like this, by whatever name its tool calls the argument.
    ///
    /// What needs a folder may look at all that is in it, and what needs everything may have a name
    /// that no right has.
    fn needs_file(&self, test: &Test) -> bool {
        let rights = self.tool.needs_in(&self.args).unwrap_or_default();
        rights.iter().any(|right| {
            let (Right::FsRead(scope) | Right::FsWrite(scope)) = right else { return false };
            let path = scope.path.to_string();
            scope.root.is_none() && (path == "." || test.holds_for(&path))
        })
    }

    /// Whether it asks such hosts: no others to be allowed, and any to be held.
    pub(super) fn asks(&self, named: &[Hosts], lean: Lean) -> bool {
        match self.hosts.get_or_init(|| self.asked()) {
            Asked::These(hosts) => lean.over(hosts.iter(), |asked| is_among(named, asked, lean)),
            Asked::Unknown => lean.sure(None),
        }
    }

    fn asked(&self) -> Asked {
        let Ok(rights) = self.tool.needs_in(&self.args) else { return Asked::Unknown };
        let hosts = rights.into_iter().filter_map(|right| {
            let Right::Net(scope) = right else { return None };
            Some(scope.hosts)
        });
        let hosts: Vec<Hosts> = hosts.collect();
        match (hosts.is_empty(), self.effects().reach) {
            (true, Reach::Network) => Asked::Unknown,
            (true, Reach::Local) | (false, _) => Asked::These(hosts),
        }
    }
}
