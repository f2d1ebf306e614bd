//! All the tools a program has, and the ones it offers this turn.

mod repair;
mod resolve;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

pub use repair::Repairs;
pub(crate) use resolve::Reading;
pub use resolve::SHOWN_BYTES_MAX;
pub(crate) use resolve::telling;

use crate::builtin;
use crate::fault::Repair;
use crate::id::{NAME_BYTES_MAX, Name};
use crate::proposal::{Proposal, Resolved};
use crate::spec::{Access, Enforced, FootprintOf, History, Reach, Repeat, Spec};
use crate::tool::{RegisterError, Registered, Tool};

/// Every tool, by name, in the order of registration.
///
/// ```
/// use tooltape::{Toolbox, builtin};
///
/// let mut toolbox = Toolbox::new(builtin::tools()).unwrap();
/// assert_eq!(toolbox.names().collect::<Vec<_>>(), ["echo", "hash"]);
/// assert!(toolbox.remove("echo"));
/// assert!(toolbox.get("echo").is_none());
/// ```
#[derive(Clone, Default)]
pub struct Toolbox(Arc<Shelf>);

/// The tools of one moment. Offers share it, so it is copied when it changes.
#[derive(Clone, Default)]
struct Shelf {
    tools: Vec<Arc<Registered>>,
    by_name: HashMap<Name, usize, BuildHasherDefault<NameHasher>>,
    aliases: Vec<Alias>,
}

/// Hashes names as FNV-1a does: they are short, and no more of them than the host admits.
struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> NameHasher {
        NameHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone)]
struct Alias {
    provider: Arc<str>,
    alias: Name,
    name: Name,
}

impl Toolbox {
    /// Checks and gathers tools. Two tools of one name are an error, never an override.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Toolbox, RegisterError> {
        let mut toolbox = Toolbox::default();
        tools.into_iter().try_for_each(|tool| toolbox.add(tool))?;
        Ok(toolbox)
    }

    /// Adds a tool behind the others. Offers already made do not change.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let registered = Arc::new(Registered::new(tool)?);
        let name = registered.id().name().clone();
        if let Some(taken_by) = self.owner(&name) {
            return Err(match self.get(name.as_str()) {
                Some(first) => RegisterError::Duplicate {
                    name,
                    first: first.id().clone(),
                    second: registered.id().clone(),
                },
                None => RegisterError::AliasTaken { alias: name.clone(), tool: name, taken_by },
            });
        }
        let shelf = Arc::make_mut(&mut self.0);
        shelf.by_name.insert(name, shelf.tools.len());
        shelf.tools.push(registered);
        Ok(())
    }

    /// Adds the tool that [finds](crate::builtin::tool_search) those which are deferred now, if any
    /// are.
    pub fn searchable(&mut self) -> Result<(), RegisterError> {
        let deferred = self.tools().map(|tool| tool.spec()).filter(|spec| spec.deferred);
        let mut deferred = deferred.peekable();
        if deferred.peek().is_none() {
            return Ok(());
        }
        let search = builtin::tool_search(deferred);
        self.add(search)
    }

    /// Removes a tool and its aliases; the others keep their order. Says whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        if !self.0.by_name.contains_key(name) {
            return false;
        }
        let shelf = Arc::make_mut(&mut self.0);
        shelf.tools.retain(|tool| tool.id().name().as_str() != name);
        shelf.aliases.retain(|alias| alias.name.as_str() != name);
        let places = shelf.tools.iter().enumerate();
        shelf.by_name = places.map(|(at, tool)| (tool.id().name().clone(), at)).collect();
        true
    }

    /// Gives a tool another name for one provider. Events and stores keep the canonical name.
    pub fn alias(&mut self, provider: &str, name: &str, alias: &str) -> Result<(), RegisterError> {
        let alias = Name::new(alias)?;
        let Some(tool) = self.get(name) else {
            return Err(RegisterError::Unknown { name: name.into() });
        };
        let tool = tool.id().name().clone();
        match self.owner(&alias) {
            Some(taken_by) => Err(RegisterError::AliasTaken { alias, tool, taken_by }),
            None => {
                let provider = provider.into();
                Arc::make_mut(&mut self.0).aliases.push(Alias { provider, alias, name: tool });
                Ok(())
            }
        }
    }

    /// Says what the calls of a tool touch, whatever the tool says: for tools that others wrote.
    ///
    /// Offers already made do not change. A tool that is `Read` and whose hook says what it writes
    /// counts as a write of everything.
    pub fn touching(&mut self, name: &str, touches: FootprintOf) -> Result<(), RegisterError> {
        self.replace(name, |tool| tool.touching(touches))
    }

    /// Lets the writes of a tool overlap those of other promoted tools, and its own, as far as the
    /// run's limit on concurrent mutations goes. For tools that others wrote, and that are safe.
    ///
    /// Offers already made do not change. Towards all other calls its footprint counts as before.
    pub fn promote(&mut self, name: &str) -> Result<(), RegisterError> {
        self.replace(name, Registered::promoted)
    }

    /// Says who holds a tool to what it declares: for whoever runs tools in a sandbox or as WASM,
    /// and for tools of which nobody but their author knows what they do.
    ///
    /// Offers already made do not change. Rules can ask for it, and every reply states it.
    pub fn enforced(&mut self, name: &str, by: Enforced) -> Result<(), RegisterError> {
        self.replace(name, |tool| tool.enforced(by))
    }

    /// Says how far the calls of a tool reach, whatever it says: for whoever gives it a way out.
    ///
    /// Offers already made do not change. It is part of the tool's definition.
    pub fn reaching(&mut self, name: &str, reach: Reach) -> Result<(), RegisterError> {
        self.replace(name, |tool| tool.redeclared(|spec| spec.effects.reach = reach))
    }

    /// Counts the calls of a tool as changes that happen again if they are repeated, whatever it
    /// says: for tools that nobody vouches for.
    ///
    /// Offers already made do not change. It is part of the tool's definition.
    pub fn doubted(&mut self, name: &str) -> Result<(), RegisterError> {
        self.replace(name, |tool| {
            tool.redeclared(|spec| {
                (spec.effects.access, spec.effects.repeat) = (Access::Write, Repeat::Once);
            })
        })
    }

    fn replace(
        &mut self,
        name: &str,
        with: impl FnOnce(&Registered) -> Result<Registered, RegisterError>,
    ) -> Result<(), RegisterError> {
        let Some(at) = self.0.by_name.get(name).copied() else {
            return Err(RegisterError::Unknown { name: name.into() });
        };
        let tool = with(&self.0.tools[at])?;
        Arc::make_mut(&mut self.0).tools[at] = Arc::new(tool);
        Ok(())
    }

    /// Who has this name, as its own or as an alias.
    fn owner(&self, name: &Name) -> Option<Name> {
        if self.0.by_name.contains_key(name) {
            return Some(name.clone());
        }
        let alias = self.0.aliases.iter().find(|alias| alias.alias == *name)?;
        Some(alias.name.clone())
    }

    /// The tool of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Registered>> {
        self.0.get(name)
    }

    /// All names, in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.tools.iter().map(|tool| tool.id().name().as_str())
    }

    /// All tools, in the order of registration.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.0.tools.iter()
    }

    /// The tools to advertise this turn. Only an offer resolves a call, and a gate that keeps
    /// nothing offers nothing.
    pub fn offer(&self, gate: impl Fn(&Spec) -> bool) -> Offer {
        let kept = |tool: &&Arc<Registered>| gate(tool.spec());
        let names = self.0.tools.iter().filter(kept).map(|tool| tool.id().name().clone());
        Offer { shelf: self.0.clone(), shown: Some(Arc::new(names.collect())), last: [].into() }
    }

    /// An offer of every tool.
    pub fn offer_all(&self) -> Offer {
        Offer { shelf: self.0.clone(), shown: None, last: [].into() }
    }
}

// A reader of a failed assertion wants the names.
impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools().map(|tool| tool.id())).finish()
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools().map(|tool| tool.id())).finish()
    }
}

impl Shelf {
    fn get(&self, name: &str) -> Option<&Arc<Registered>> {
        // A model may send a name of any length; none of ours is that long.
        let known = (name.len() <= NAME_BYTES_MAX).then(|| self.by_name.get(name))?;
        known.map(|at| &self.tools[*at])
    }
}

/// The tools that one model turn was told about. It never changes, so a late call resolves against
/// what the model was shown.
#[derive(Clone)]
pub struct Offer {
    shelf: Arc<Shelf>,
    /// The names that are shown; `None` where all are.
    shown: Option<Arc<HashSet<Name>>>,
    /// The tools that stand behind the others, because they were found later.
    last: Arc<[Name]>,
}

impl Offer {
    /// The offered tools, in the order of registration; those that were found later come last,
    /// as they were found, so that what a provider has read before stays as it was.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Registered>> {
        let first = self.shelf.tools.iter().filter(|tool| !self.last.contains(tool.id().name()));
        let last = self.last.iter().filter_map(|name| self.shelf.get(name.as_str()));
        first.chain(last).filter(|tool| self.shows(tool.id().name()))
    }

    /// The same offer without the tools that nobody found yet, and with those found behind.
    pub(crate) fn finding(self, found: &[Name]) -> Offer {
        if !self.tools().any(|tool| tool.spec().deferred) {
            return self;
        }
        let is_shown =
            |tool: &Arc<Registered>| !tool.spec().deferred || found.contains(tool.id().name());
        Offer { last: found.into(), ..self.only(is_shown) }
    }

    /// The name under which a provider is told about a tool: its alias, or its own.
    pub fn name_for<'a>(&'a self, provider: &str, name: &'a str) -> &'a str {
        let mut aliases = self.shelf.aliases.iter();
        let alias = aliases.find(|it| &*it.provider == provider && it.name.as_str() == name);
        alias.map_or(name, |alias| alias.alias.as_str())
    }

    /// How a tool lets its old results be shortened; for an unknown tool, not at all.
    pub fn history(&self, name: &str) -> History {
        self.find(name).map_or_else(History::default, |tool| tool.spec().history.clone())
    }

    /// Whether it was made from the same tools as another, whatever each of the two shows.
    pub(crate) fn is_like(&self, other: &Offer) -> bool {
        Arc::ptr_eq(&self.shelf, &other.shelf)
    }

    /// The same offer, which shows only the tools that pass.
    pub(crate) fn only(&self, keep: impl Fn(&Arc<Registered>) -> bool) -> Offer {
        let kept = self.tools().filter(|tool| keep(tool));
        let shown = kept.map(|tool| tool.id().name().clone()).collect();
        let last = self.last.clone();
        Offer { shelf: self.shelf.clone(), shown: Some(Arc::new(shown)), last }
    }

    fn shows(&self, name: &Name) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(name))
    }

    /// The tool that a model means by this name or alias, if there is one at all.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Registered>> {
        self.shelf.get(name).or_else(|| {
            let alias = self.shelf.aliases.iter().find(|alias| alias.alias.as_str() == name)?;
            self.shelf.get(alias.name.as_str())
        })
    }

    /// Turns a proposal into a call if that is little work, as it is for most.
    #[inline]
    pub(crate) fn resolve_at_once(
        &self,
        proposal: &Proposal,
        reading: &Reading,
    ) -> Option<Resolved> {
        resolve::at_once(self, proposal, reading)
    }

    /// Turns an untrusted proposal into a call, or says what the model must mend.
    pub(crate) fn resolve(
        &self,
        proposal: &Proposal,
        reading: &Reading,
    ) -> Result<Resolved, Repair> {
        resolve::resolve(self, proposal, reading)
    }
}
