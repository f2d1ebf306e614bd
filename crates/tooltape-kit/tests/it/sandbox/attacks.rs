//! The EX family: what processes try, judged by what shows it outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::scene::{Scene, TOKEN, survivors};

const TABLES: [&str; 3] = [
    include_str!("attacks/shell.txt"),
    include_str!("attacks/system.txt"),
    include_str!("attacks/world.txt"),
];
/// Says as whom the suite runs.
const USER: &str = "TOOLTAPE_TEST_USER";
const NOBODY: u32 = 65_534;

/// Published attacks, and the case that repeats each.
const PUBLISHED: [(&str, &str); 22] = [
    ("CVE-2025-66032", "man_pager"),
    ("CVE-2026-22708", "export"),
    ("CVE-2025-68143", "git_init_elsewhere"),
    ("CVE-2025-68144", "git_output"),
    ("CVE-2025-68145", "git_c_elsewhere"),
    ("CVE-2026-27735", "git_add_traversal"),
    ("CVE-2025-48384", "submodule_carriage_return"),
    ("CVE-2026-25725", "new_repository"),
    ("CVE-2026-26268", "fsmonitor"),
    ("CVE-2026-45033", "envrc"),
    ("CVE-2025-59536", "widened_policy"),
    ("CVE-2026-21852", "replaced_policy"),
    ("CVE-2025-61260", "server_before_trust"),
    ("CVE-2025-59532", "dot_dot"),
    ("CVE-2025-53109", "through_the_link"),
    ("CVE-2025-53110", "a_file_outside"),
    ("CVE-2025-55345", "a_file_through_a_link"),
    ("CVE-2026-39861", "utime_through_a_link"),
    ("CVE-2024-34346", "proc_self_root"),
    ("CVE-2017-5226", "tiocsti"),
    ("CVE-2022-0492", "kernel_of_the_host"),
    ("CVE-2024-21626", "inherited_files"),
];

/// Variables of the runtime that say something that no process may read.
const VARIABLES: [&str; 34] = [
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "NODE_OPTIONS",
    "PERL5OPT_CANARY",
    "PERL5LIB",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH_CANARY",
    "GIT_ASKPASS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "LD_LIBRARY_PATH",
    "LD_DEBUG_OUTPUT",
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AZURE_CLIENT_SECRET",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CANARY",
    "SECRET",
];

/// One attack.
pub(crate) struct Case {
    pub(crate) family: &'static str,
    pub(crate) name: &'static str,
    has_control: bool,
    kind: &'static str,
    text: String,
}

pub(crate) fn cases() -> Vec<Case> {
    let lines = TABLES.iter().flat_map(|table| table.lines());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = |line: &'static str| {
        let mut words = line.splitn(5, ' ');
        let mut next = || words.next().unwrap();
        let (family, name, control, kind, text) = (next(), next(), next(), next(), next());
        let text = match kind {
            "sh" => text.replace("\\\\", "\u{1}").replace("\\n", "\n").replace("\\r", "\r"),
            _ => text.to_owned(),
        };
        let text = text.replace('\u{1}', "\\");
        Case { family, name, has_control: control == "+", kind, text }
    };
    lines.map(case).collect()
}

impl Case {
    /// Tries it against the tools.
    fn attack(&self, scene: &Scene) -> String {
        let text = scene.spelled(&self.text);
        let calls: Vec<(&str, Value)> = match self.kind {
            "sh" => {
                let parts = text.split(" then ");
                parts.map(|part| ("shell", json!({ "command": part }))).collect()
            }
            "pl" => vec![("exec", json!({ "argv": ["perl", "-e", perl(&text)] }))],
            "ex" => vec![("exec", json!({ "argv": argv(&text) }))],
            kind => panic!("`{kind}` is no kind of attack"),
        };
        let replies = calls.iter().map(|(tool, args)| scene.lab.call(tool, args));
        let said = replies.map(|reply| match &reply.value {
            None => reply.text().to_owned(),
            Some(value) => {
                let value = value.to_value();
                let text = |stream: &str| value[stream].as_str().unwrap().to_owned();
                text("stdout") + &text("stderr")
            }
        });
        // What the second of two calls says is what the first one left.
        said.last().unwrap()
    }

    /// Tries it as peers run it: a shell in the folder, with what the runtime has.
    fn naive(&self, scene: &Scene) -> String {
        let text = scene.spelled(&self.text);
        let argv = match self.kind {
            "sh" => vec!["sh".to_owned(), "-c".to_owned(), text],
            "pl" => vec!["perl".to_owned(), "-e".to_owned(), perl(&text)],
            _ => argv(&text),
        };
        let path = format!(".:{}", std::env::var("PATH").unwrap_or_default());
        let output = Command::new("timeout")
            .args(["5", "env", &format!("PATH={path}")])
            .args(argv)
            .current_dir(scene.lab.at(""))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat()
    }
}

fn perl(text: &str) -> String {
    format!("use Socket; require './lib.pl'; our %SYS; {text}")
}

fn argv(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn no_process_gets_out_of_its_box() {
    match std::env::var(USER) {
        Ok(user) => suite(&user),
        Err(_) => as_each_user(),
    }
}

/// Runs this test again as each user, with secrets in its environment and its open files.
fn as_each_user() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copied = folder.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &copied).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_tooltape-sandbox"), folder.path().join("helper")).unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, TOKEN).unwrap();
    let is_root = rustix::process::getuid().is_root();
    let users: &[&str] = if is_root { &["root", "nobody"] } else { &["user"] };
    if !is_root {
        println!("ex: not started by root, so only this user is tried");
    }
    let started = users.iter().map(|user| {
        let temporary = folder.path().join(user);
        fs::create_dir(&temporary).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec 9<\"$1\"; shift; exec \"$@\"", "sh"])
            .arg(&secret)
            .arg(&copied)
            .args(["--exact", "sandbox::attacks::no_process_gets_out_of_its_box", "--nocapture"])
            .env(USER, user)
            .env("TOOLTAPE_TEST_HELPER", folder.path().join("helper"))
            .env("TMPDIR", temporary)
            .envs(VARIABLES.map(|name| (name, TOKEN)))
            .current_dir("/");
        if *user == "nobody" {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.spawn().unwrap()
    });
    for mut child in started.collect::<Vec<_>>() {
        assert!(child.wait().unwrap().success());
    }
}

fn suite(user: &str) {
    let cases = cases();
    let names: BTreeSet<_> = cases.iter().map(|case| case.name).collect();
    for (published, name) in PUBLISHED {
        assert!(names.contains(name), "{published}: {name}");
    }
    let (mut escapes, mut bitten) = (Vec::new(), BTreeMap::<_, usize>::new());
    let mut controls = 0;
    for (number, case) in cases.iter().enumerate() {
        let mut scene = Scene::new(number);
        let said = case.attack(&scene);
        let breaches = scene.breaches(&said);
        if !breaches.is_empty() {
            escapes.push(format!("{} {}: {breaches:?}: {said}", case.family, case.name));
        }
        if case.has_control {
            let mut scene = Scene::new(cases.len() + number);
            let said = case.naive(&scene);
            controls += 1;
            match scene.breaches(&said).is_empty() {
                true => {
                    println!("ex: {user}: the control holds {} {}: {said}", case.family, case.name)
                }
                false => *bitten.entry(case.family).or_default() += 1,
            }
            // What the control left running is ours.
            for pid in survivors(&scene.marker) {
                let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
    let escaping: usize = bitten.values().sum();
    println!(
        "ex: {user}: {} cases, {} escapes, control {escaping} of {controls} escape, {} published",
        cases.len(),
        escapes.len(),
        PUBLISHED.len()
    );
    assert_eq!(escapes, Vec::<String>::new());
    assert!(escaping * 10 >= controls * 8, "{bitten:?}");
}
