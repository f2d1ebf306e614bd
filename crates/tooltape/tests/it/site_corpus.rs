//! What holds for any address at all: the body of the fuzz target `site`, run here on its corpus.

use tooltape::Right;
use tooltape::scope::{Host, Site};

/// Checks all that must hold of some bytes as an address, whatever they are.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let site = match Site::of(text) {
        Ok(site) => site,
        Err(err) => {
            assert!(err.to_string().chars().all(|c| !c.is_control()), "{err}");
            return;
        }
    };
    assert!(!text.contains(['\\', '\t', '\r', '\n', '\0', ' ']), "{text:?}");
    let authority = text.split("://").nth(1).unwrap().split(['/', '?', '#']).next().unwrap();
    assert!(!authority.contains(['@', '%']), "{text:?}");
    // There is one spelling, and it says the same.
    assert_eq!(Site::of(&site.to_string()).as_ref(), Ok(&site));
    let host = site.host.to_string();
    assert_eq!(host.parse::<Host>().as_ref(), Ok(&site.host));
    assert!(authority.to_ascii_lowercase().starts_with(&host), "{text:?} is not at {host}");
    // It is a host by name or by address, never both, and rights can name it.
    assert_ne!(site.host.name().is_some(), site.host.address().is_some());
    assert!(format!("net:get:{host}:{}", site.port).parse::<Right>().is_ok(), "{host}");
    if let Some(name) = site.host.name() {
        let last = name.rsplit('.').next().unwrap();
        assert!(!last.bytes().all(|byte| byte.is_ascii_digit()), "an address in disguise: {name}");
        assert!(!name.ends_with('.') && name.is_ascii());
    }
}

#[test]
fn every_file_of_the_corpus_leads_to_one_host_or_nowhere() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/site");
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 20, "the corpus has {} files", files.len());
    for file in files {
        check(&std::fs::read(&file).unwrap());
    }
}
