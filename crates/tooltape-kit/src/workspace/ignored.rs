//! Which files a search passes over, as the ignore files of their directories say.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::system;

/// The most bytes of one ignore file that are obeyed.
pub const IGNORE_BYTES_MAX: u64 = 256 << 10;

/// The byte order mark that some editors begin a file with.
const BOM: char = '\u{feff}';

/// The ignore files of a directory, and of those above it.
pub(super) struct Ignored {
    above: Option<Arc<Ignored>>,
    /// `.ignore`
    plain: Gitignore,
    /// `.gitignore`
    git: Gitignore,
    /// `.git/info/exclude`
    exclude: Gitignore,
    /// Whether a repository begins here, in which the rules of one around it do not hold.
    has_git: bool,
}

/// Which of the names that matter a directory has.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks {
    pub(super) plain: bool,
    pub(super) git: bool,
    pub(super) repository: bool,
}

impl Marks {
    /// All of them: to be tried where the names are not known.
    pub(super) const ALL: Marks = Marks { plain: true, git: true, repository: true };

    pub(super) fn note(&mut self, name: &[u8]) {
        match name {
            b".ignore" => self.plain = true,
            b".gitignore" => self.git = true,
            b".git" => self.repository = true,
            _ => {}
        }
    }
}

impl Ignored {
    /// No rules.
    pub(super) fn nothing() -> Arc<Ignored> {
        let none = Gitignore::empty;
        let (plain, git, exclude) = (none(), none(), none());
        Arc::new(Ignored { above: None, plain, git, exclude, has_git: false })
    }

    /// These rules and those of a directory, whose path is relative to the workspace.
    pub(super) fn and(self: &Arc<Ignored>, dir: &Dir, path: &Path, marks: Marks) -> Arc<Ignored> {
        let rules = |is_there: bool, name: &str| match is_there {
            true => rules(dir, path, name).unwrap_or_else(Gitignore::empty),
            false => Gitignore::empty(),
        };
        let plain = rules(marks.plain, ".ignore");
        let git = rules(marks.git, ".gitignore");
        let has_git = marks.repository && dir.symlink_metadata(".git").is_ok();
        let exclude = match has_git {
            true => exclude(dir, path).unwrap_or_else(Gitignore::empty),
            false => Gitignore::empty(),
        };
        if plain.is_empty() && git.is_empty() && exclude.is_empty() && !has_git {
            return self.clone();
        }
        Arc::new(Ignored { above: Some(self.clone()), plain, git, exclude, has_git })
    }

    /// What the rules say of a path. Those of the deepest directory count most, and `.ignore`
    /// counts more than `.gitignore`.
    pub(super) fn judge(&self, path: &Path, is_dir: bool) -> Match<()> {
        let (mut plain, mut git, mut exclude) = (Match::None, Match::None, Match::None);
        let mut in_repository = true;
        let mut next = Some(self);
        while let Some(ignored) = next {
            let first = |said: &mut Match<()>, rules: &Gitignore| {
                if said.is_none() {
                    *said = rules.matched(path, is_dir).map(drop);
                }
            };
            first(&mut plain, &ignored.plain);
            if in_repository {
                first(&mut git, &ignored.git);
                first(&mut exclude, &ignored.exclude);
            }
            in_repository &= !ignored.has_git;
            next = ignored.above.as_deref();
        }
        plain.or(git).or(exclude)
    }
}

fn exclude(dir: &Dir, path: &Path) -> Option<Gitignore> {
    let git = system::open_dir_itself(dir, ".git").ok()?;
    let info = system::open_dir_itself(&git, "info").ok()?;
    rules(&info, path, "exclude")
}

/// The rules of one file, if it is there. A line that is no glob is no rule.
fn rules(dir: &Dir, path: &Path, name: &str) -> Option<Gitignore> {
    // To open a device can already be an effect, so it is looked at first.
    dir.symlink_metadata(name).ok().filter(|metadata| metadata.is_file())?;
    let file = system::open_file_itself(dir, name).ok()?;
    let mut bytes = Vec::new();
    file.take(IGNORE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let mut rules = GitignoreBuilder::new(path);
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let Ok(line) = str::from_utf8(line) else { break };
        let line = if at == 0 { line.trim_start_matches(BOM) } else { line };
        let _ = rules.add_line(None, line.strip_suffix('\r').unwrap_or(line));
    }
    rules.build().ok()
}
