//! Nothing that we build on has a licence, a source or a name that `deny.toml` does not allow.

use std::path::Path;

use serde::Deserialize;
use spdx::{Expression, LicenseReq, Licensee, ParseMode};

use crate::tidy::files;

/// The native libraries that our dependencies may claim; a second claimant would not link.
const LINKS_ALLOWED: [&str; 3] = ["sqlite3", "wasm_bindgen", "wsqlite3"];
/// What TLS is made of: each release has a name of its own, so that two of them link.
const LINKS_VERSIONED: [&str; 3] = ["aws_lc_0_", "aws_lc_rs_1_", "ring_core_0_"];

/// The part of `deny.toml` that is checked here; `cargo deny` checks all of it.
#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    wildcards: String,
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    unknown_registry: String,
    unknown_git: String,
    allow_registry: Vec<String>,
}

/// One package as `cargo metadata` describes it.
#[derive(Deserialize)]
struct Package {
    name: String,
    license: Option<String>,
    source: Option<String>,
    links: Option<String>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    source: Option<String>,
}

/// Which rules a package must keep.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// It may be part of what users build: only licences of the allow-list, and no banned name.
    Shipped,
    /// It measures or tests us from outside the workspace: any licence but the GNU family.
    Apart,
}

#[test]
fn every_dependency_has_an_allowed_licence_source_and_name() {
    let deny = deny();
    let locks = files::files().into_iter().filter(|path| path.ends_with("Cargo.lock"));
    let manifests: Vec<String> = locks
        .filter(|path| !files::is_fixture(path))
        .map(|path| path.replace("Cargo.lock", "Cargo.toml"))
        .collect();
    assert!(manifests.contains(&"Cargo.toml".to_owned()), "no lock file is tracked");
    for manifest in manifests {
        let used = if manifest == "Cargo.toml" { Use::Shipped } else { Use::Apart };
        let metadata = files::metadata(&manifest, &[]);
        let packages: Vec<Package> =
            serde_json::from_value(metadata["packages"].clone()).expect("packages look like that");
        let complaints: Vec<String> =
            packages.iter().flat_map(|package| deny.complaints(package, used)).collect();
        assert!(complaints.is_empty(), "`{manifest}`:\n{}\n", complaints.join("\n"));
    }
}

#[test]
fn a_dependency_that_breaks_a_rule_is_named() {
    let deny = deny();
    let good = r#"{"name": "a", "license": "MIT/Apache-2.0", "links": null, "dependencies": [],
        "manifest_path": "a", "source": "registry+https://github.com/rust-lang/crates.io-index"}"#;
    let breaks = |field: &str, value: &str, expected: &str| {
        let mut package: serde_json::Value = serde_json::from_str(good).unwrap();
        package[field] = serde_json::from_str(value).unwrap();
        let package: Package = serde_json::from_value(package).unwrap();
        let complaints = deny.complaints(&package, Use::Shipped);
        assert!(complaints.iter().any(|it| it.contains(expected)), "{value}: {complaints:?}");
    };
    assert!(deny.complaints(&serde_json::from_str(good).unwrap(), Use::Shipped).is_empty());
    breaks("license", "null", "no licence");
    breaks("license", r#""GPL-3.0-only""#, "GPL-3.0-only");
    breaks("license", r#""MIT AND LGPL-2.1-or-later""#, "LGPL");
    breaks("license", r#""Apache 2""#, "Apache 2");
    breaks("links", r#""z""#, "native library `z`");
    breaks("name", r#""birdcage""#, "banned");
    breaks("source", r#""git+https://example.com/a#0""#, "git+https");
    breaks("source", r#""registry+https://example.com/index""#, "example.com");
    breaks("source", "null", "outside the repository");
    let wild = r#"[{"name": "b", "req": "*", "source": "registry+x"}]"#;
    breaks("dependencies", wild, "any version of `b`");
    let mut package: Package = serde_json::from_str(good).unwrap();
    for (license, is_fine) in [("MPL-2.0", true), ("AGPL-3.0-only", false)] {
        package.license = Some(license.to_owned());
        assert_eq!(deny.complaints(&package, Use::Apart).is_empty(), is_fine, "{license}");
    }
}

#[test]
fn the_rules_refuse_what_they_do_not_know() {
    let deny = deny();
    for setting in [&deny.bans.wildcards, &deny.sources.unknown_registry, &deny.sources.unknown_git]
    {
        assert_eq!(setting, "deny");
    }
    assert_eq!(deny.sources.allow_registry.len(), 1);
    let gnu = deny.licenses.allow.iter().find(|license| license.contains("GPL"));
    assert_eq!(gnu, None, "a GNU licence is allowed");
}

fn deny() -> Deny {
    toml::from_str(&files::read("deny.toml")).unwrap_or_else(|err| panic!("{err}"))
}

impl Deny {
    /// What is wrong with a package, if anything.
    fn complaints(&self, package: &Package, used: Use) -> Vec<String> {
        let wildcards =
            package.dependencies.iter().filter(|it| it.req == "*" && it.source.is_some());
        let is_allowed = |links: &&str| {
            LINKS_ALLOWED.contains(links)
                || LINKS_VERSIONED.iter().any(|versioned| links.starts_with(versioned))
        };
        let links = package.links.as_deref().filter(|links| !is_allowed(links));
        let is_banned = self.bans.deny.iter().any(|ban| ban.name == package.name);
        let is_shipped = used == Use::Shipped;
        let complaints = [
            self.licence_complaint(package, used),
            self.source_complaint(package),
            links
                .filter(|_| is_shipped)
                .map(|links| format!("claims the native library `{links}`")),
            (is_shipped && is_banned).then(|| "is banned".into()),
        ];
        let complaints = complaints.into_iter().flatten();
        let wildcards = wildcards.map(|it| format!("takes any version of `{}`", it.name));
        complaints.chain(wildcards).map(|why| format!("`{}` {why}", package.name)).collect()
    }

    fn licence_complaint(&self, package: &Package, used: Use) -> Option<String> {
        let Some(license) = &package.license else { return Some("states no licence".into()) };
        // Old manifests separate alternatives with a slash, which only the lax mode reads.
        let Ok(expression) = Expression::parse_mode(license, ParseMode::LAX) else {
            return Some(format!("has the licence `{license}`, which is no SPDX expression"));
        };
        let allowed = |requirement: &LicenseReq| match used {
            Use::Shipped => self.licenses.allow.iter().any(|name| {
                let licensee = Licensee::parse(name).expect("deny.toml names SPDX licences");
                licensee.satisfies(requirement)
            }),
            Use::Apart => requirement.license.id().is_some_and(|id| !id.is_gnu()),
        };
        let is_fine = expression.evaluate(allowed);
        (!is_fine).then(|| format!("has the licence `{license}`, which deny.toml does not allow"))
    }

    fn source_complaint(&self, package: &Package) -> Option<String> {
        let Some(source) = &package.source else {
            let is_ours = Path::new(&package.manifest_path).starts_with(files::root());
            return (!is_ours).then(|| "is outside the repository".into());
        };
        let registry = source.strip_prefix("registry+");
        let is_allowed = registry
            .is_some_and(|url| self.sources.allow_registry.iter().any(|allowed| allowed == url));
        (!is_allowed).then(|| format!("comes from `{source}`"))
    }
}
