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
    needs: OnceCell<Option<Needs>>,
}

/// The files and hosts of the rights that a call needs.
#[derive(Default)]
struct Needs {
    files: Vec<String>,
    hosts: Vec<Hosts>,
}

impl<'c> Evidence<'c> {
    pub(super) fn of(call: &'c Call) -> Evidence<'c> {
        Evidence::new(call.registered(), call.args(), call.label())
    }

    pub(super) fn new(tool: &'c Registered, args: &'c Canon, label: &'c Label) -> Evidence<'c> {
        Evidence { tool, label, args: Peek::new(args), needs: OnceCell::new() }
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
        let files = self.needs().map_or(&[][..], |needs| &needs.files);
        files.iter().any(|path| path == "." || test.holds_for(path))
    }

    /// Whether it asks such hosts: no others to be allowed, and any to be held.
    pub(super) fn asks(&self, named: &[Hosts], lean: Lean) -> bool {
        let says_nothing =
            |hosts: &[Hosts]| hosts.is_empty() && self.effects().reach == Reach::Network;
        match self.needs() {
            Some(Needs { hosts, .. }) if !says_nothing(hosts) => {
                lean.over(hosts.iter(), |asked| is_among(named, asked, lean))
            }
            Some(_) | None => lean.sure(None),
        }
    }

    /// What it needs, unless nobody can hold that.
    fn needs(&self) -> Option<&Needs> {
        let found = || {
            let mut needs = Needs::default();
            for right in self.tool.needs_in(&self.args).ok()? {
                match right {
                    Right::FsRead(scope) | Right::FsWrite(scope) if scope.root.is_none() => {
                        needs.files.push(scope.path.to_string());
                    }
                    Right::Net(scope) => needs.hosts.push(scope.hosts),
                    Right::FsRead(_)
                    | Right::FsWrite(_)
                    | Right::ProcessRun(_)
                    | Right::ProcessShell(_)
                    | Right::EnvRead(_)
                    | Right::SecretUse(_)
                    | Right::Spend(_)
                    | Right::AgentsSpawn(_)
                    | Right::McpCall(_)
                    | Right::ClockRead
                    | Right::RandomRead => {}
                }
            }
            Some(needs)
        };
        self.needs.get_or_init(found).as_ref()
    }
}
