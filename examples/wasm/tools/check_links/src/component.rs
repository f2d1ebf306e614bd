//! The tool, as its host sees it.

use serde::{Deserialize, Serialize};

use crate::{Target, links};
use exports::tooltape::tool::tool::{Failure, Guest, Spec};
use tooltape::tool::types::{Access, Bounds, FailureKind, Repeat};
use tooltape::tool::{cancel, files, http, progress};

wit_bindgen::generate!({ path: "../../../../crates/tooltape-wasm/wit", world: "component" });

/// The most bytes of a page that is read.
const PAGE_BYTES_MAX: u32 = 256 << 10;
/// The most links of a page that are followed.
const LINKS_MAX: usize = 100;

struct CheckLinks;

export!(CheckLinks);

#[derive(Deserialize)]
struct Input {
    path: String,
}

#[derive(Serialize)]
struct Checked {
    link: String,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Fine,
    Broken,
    Unknown,
}

impl Guest for CheckLinks {
    fn describe() -> Spec {
        Spec {
            name: "check_links".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Says which links of a Markdown page of the folder `data` lead nowhere: \
                to files of that folder, and to pages of example.com."
                .into(),
            input: include_str!("input.json").into(),
            output: Some(include_str!("output.json").into()),
            access: Access::Read,
            repeat: Repeat::Idempotent,
            confirm: false,
            needs: vec!["fs:read:data".into(), "net:get:example.com".into()],
            bounds: Bounds {
                wall_ms: Some(20_000),
                memory: Some(16 << 20),
                fuel: None,
                output_bytes: None,
            },
        }
    }

    fn call(arguments: String) -> Result<String, Failure> {
        let not_done = |message: String| failure(FailureKind::NotDone, message);
        let input: Input =
            serde_json::from_str(&arguments).map_err(|err| not_done(err.to_string()))?;
        let page = files::read(&input.path, 0, PAGE_BYTES_MAX).map_err(not_done)?;
        let targets = links(&input.path, &String::from_utf8_lossy(&page));
        let mut checked = Vec::new();
        for target in targets.into_iter().take(LINKS_MAX) {
            if cancel::is_requested() {
                return Err(failure(FailureKind::Cancelled, "nobody waits for it".to_owned()));
            }
            checked.push(check(target));
        }
        Ok(serde_json::to_string(&checked).expect("what was checked can be written"))
    }
}

fn check(target: Target) -> Checked {
    let (link, (state, why)) = match target {
        Target::File(path) => {
            let state = match files::read(&path, 0, 1) {
                Ok(_) => (State::Fine, None),
                Err(why) if files::list_folder(&path).is_err() => (State::Broken, Some(why)),
                Err(_) => (State::Fine, None),
            };
            (path, state)
        }
        Target::Page(url) => {
            progress::say(&format!("asking for {url}"));
            let state = match http::get(&url, 1) {
                Ok(page) if page.status < 400 => (State::Fine, None),
                Ok(page) => (State::Broken, Some(format!("status {}", page.status))),
                Err(trouble) => (State::Unknown, Some(trouble.message)),
            };
            (url, state)
        }
        Target::Outside(link) => (link, (State::Broken, Some("leads out".to_owned()))),
    };
    Checked { link, state, why }
}

fn failure(kind: FailureKind, message: String) -> Failure {
    Failure { kind, message, code: None }
}
