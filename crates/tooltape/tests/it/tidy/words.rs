//! The words that no file of the repository may hold; this file alone is not searched for them.

/// Marks of unfinished work, in comments and in prose.
pub(super) const UNFINISHED: [&str; 9] = [
    "todo",
    "fixme",
    "xxx",
    "for now",
    "placeholder",
    "in a real",
    "not yet implemented",
    "simplified version",
    "stub",
];

/// Folders of one machine. `tooltape/work/RUN` is a path of ours, and not absolute.
pub(super) const MACHINE_PATHS: [&str; 2] = ["/work/", "/root/"];

/// How hosts begin that packages are downloaded from: a fresh clone asks whatever its user set up.
pub(super) const REGISTRY_HOSTS: [&str; 4] =
    ["://index.", "://static.", "://registry.", "://packages."];

/// Code that is not finished, or that hides a test.
pub(super) const FORBIDDEN_CODE: [&str; 6] =
    ["todo!", "unimplemented!", "dbg!", "#[ignore", "#[should_panic", "async_trait"];

/// File and folder names that say nothing.
pub(super) const VAGUE_NAMES: [&str; 10] =
    ["util", "utils", "common", "helper", "helpers", "types", "manager", "misc", "prelude", "mod"];

/// What the core shares state by, which must be a model checker's where one is used.
pub(super) const SHARED: [&str; 8] =
    ["Mutex", "MutexGuard", "RwLock", "OnceLock", "Condvar", "Barrier", "Once", "atomic"];

/// What the core may reach only through a grant: the environment, the clock, randomness.
pub(super) const AMBIENT: [&str; 9] = [
    "std::env",
    "env::var",
    "SystemTime::now",
    "UNIX_EPOCH.elapsed",
    "Instant::now",
    "getrandom",
    "rand::",
    "new_v4",
    "now_v7",
];
