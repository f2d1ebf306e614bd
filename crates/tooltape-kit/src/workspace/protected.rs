//! Names that no tool writes, because what stands in them is run or obeyed by others.

// The line is drawn at what acts without anybody running the project: by opening the folder,
// entering it, using git in it, or starting an agent in it. So these are left out on purpose:
//
// * `Makefile`, `package.json`, `build.rs` and their kin are the project itself. Whoever runs it
//   runs what the model wrote, in the sandbox or after reading the diff.
// * `.github/workflows` acts after a push, and a push is a call that is judged by itself.
// * `AGENTS.md` and other prose for models is no configuration. What an untrusted source had a
//   hand in keeps its label there, and whoever reads it has that label.
// * `.gitignore`, `.editorconfig` and `.env` name no program that is run.

/// Protected names, at any depth, with everything below them.
const PROTECTED: [&str; 79] = [
    // Our own tape and policy.
    ".tooltape",
    "tooltape.toml",
    // Git runs hooks, filters and whatever a submodule's address makes of itself.
    ".git",
    ".gitattributes",
    ".gitconfig",
    ".gitmodules",
    ".githooks",
    ".husky",
    ".hg",
    "lefthook.yml",
    "lefthook.json",
    "lefthook.toml",
    "lefthook.yaml",
    ".pre-commit-config.yaml",
    // Editors run tasks, language servers and lines of their own language.
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".emacs",
    ".emacs.d",
    ".exrc",
    ".gvimrc",
    ".helix",
    ".idea",
    ".nvim.lua",
    ".nvimrc",
    ".vim",
    ".vimrc",
    ".vscode",
    ".zed",
    // Shells read these when they start or enter a folder.
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".envrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    "mise.toml",
    "mise.local.toml",
    ".pam_environment",
    ".profile",
    ".tcshrc",
    ".tool-versions",
    ".xinitrc",
    ".xprofile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    // Tools that are run everywhere read whom to ask, and what to run on the way.
    ".cargo",
    ".curlrc",
    ".gdbinit",
    ".netrc",
    ".npmrc",
    ".pdbrc",
    ".pypirc",
    ".rprofile",
    ".ssh",
    ".wgetrc",
    ".yarnrc",
    ".yarnrc.yml",
    // Agents start servers and hooks, and take their own policy from here.
    ".aider.conf.yml",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".kiro",
    ".mcp.json",
    "opencode.json",
    ".roo",
    ".windsurf",
];

/// How names begin that a runner of git's hooks reads, whatever its format.
const PROTECTED_STARTS: [&str; 2] = [".lefthook", "lefthook-local."];
/// How the names of the workspace files of an editor end.
const PROTECTED_ENDS: [&str; 1] = [".code-workspace"];

/// How much of a name is left of it where it is abbreviated.
const STEM_BYTES: usize = 6;

/// The file that makes a folder a repository of git, whatever the folder is called.
pub(crate) const HEAD: &str = "HEAD";

/// What a repository of git has beside its `HEAD`, any of them.
pub(super) const BESIDE_HEAD: [&str; 3] = ["commondir", "objects", "refs"];

/// The protected name that a name is, or may be taken for by some file system.
pub(crate) fn protected(name: &str) -> Option<&'static str> {
    let name = folded(name);
    let named = PROTECTED.into_iter().find(|protected| *protected == name);
    let ends = || PROTECTED_ENDS.into_iter().find(|end| name.ends_with(end));
    let starts = || PROTECTED_STARTS.into_iter().find(|start| name.starts_with(start));
    named.or_else(ends).or_else(starts).or_else(|| abbreviated(&name))
}

/// Whether a file of this name makes its folder a repository.
pub(super) fn is_head(name: &str) -> bool {
    folded(name) == folded(HEAD)
}

/// Whether something of this name makes a repository of a folder with a `HEAD`.
pub(super) fn is_beside_head(name: &str) -> bool {
    BESIDE_HEAD.contains(&folded(name).as_str())
}

/// The protected name that a file system may have abbreviated so, such as `.git` to `GIT~1`.
fn abbreviated(name: &str) -> Option<&'static str> {
    let (stem, number) = name.split_once('~')?;
    let number = number.split('.').next().unwrap_or(number);
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    PROTECTED.into_iter().find(|protected| {
        let name = protected.trim_start_matches('.');
        let name = name.rsplit_once('.').map_or(name, |(name, _)| name).replace('.', "");
        stem == name.get(..STEM_BYTES).unwrap_or(&name)
    })
}

/// The name as the most forgiving file system reads it: without case, without characters that
/// cannot be seen, without a stream after a colon, and without dots and spaces at its end.
fn folded(name: &str) -> String {
    let seen = name.split(':').next().unwrap_or(name).chars().filter(|c| !is_ignorable(*c));
    // Upper case first: some letters, such as a long s, meet their kin only there.
    let folded: String = seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    folded.trim_end_matches(['.', ' ']).to_owned()
}

/// Characters that some file systems leave out when they compare names.
fn is_ignorable(c: char) -> bool {
    let ranges = ['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}'];
    c == '\u{feff}' || ranges.iter().any(|range| range.contains(&c))
}
