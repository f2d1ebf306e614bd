//! Secrets that the configuration names: who may name what, and what tools are given.

mod read;

use std::collections::BTreeMap;

use tooltape::scope::{Host, Variable, Word};
use tooltape::{Redactor, Run, Secret};
use tooltape_kit::Sandbox;

use crate::config::{BrokerTable, Found, Layers, Rank, SecretTable};
use crate::out;
use crate::report::Result;
use read::Source;

/// Every secret of the configuration, read.
pub(crate) struct Secrets(Vec<Named>);

struct Named {
    name: String,
    secret: Secret<Vec<u8>>,
}

/// A secret of the configuration that is not read yet.
struct Stated<'l> {
    found: Found<'l, &'l SecretTable>,
    source: Source,
}

impl Secrets {
    /// Reads every secret, and lets nothing be printed that holds one. Where one cannot be read,
    /// or must not be named, none is used.
    pub(crate) fn read(layers: &Layers) -> Result<Secrets> {
        let stated = stated(layers)?;
        // A program that is asked for one secret is not handed the others.
        let variables: Vec<&str> =
            layers.secrets().filter_map(|(_, it)| it.value.env.as_deref()).collect();
        let mut secrets = Vec::new();
        for (name, Stated { found, source }) in stated {
            let secret = source.read(&variables).map_err(|why| {
                found
                    .problem(Some(source.key()), format!("the secret `{name}` {why}"))
                    .code("secret.unreadable")
                    .hint("nothing is run without it: mend it, or take it out of the configuration")
            })?;
            secrets.push(Named { name: name.to_owned(), secret });
        }
        let secrets = Secrets(secrets);
        out::keep_out(secrets.redactor());
        Ok(secrets)
    }

    /// The names of all secrets, without reading any.
    pub(crate) fn names(layers: &Layers) -> Result<Vec<&str>> {
        Ok(stated(layers)?.into_keys().collect())
    }

    /// Hands a run its secrets: each tool has those that it takes.
    pub(crate) fn give(&self, run: Run, layers: &Layers) -> Result<Run> {
        self.0.iter().try_fold(run, |run, Named { name, secret }| {
            run.secret(name, secret.clone()).map_err(|err| refused(layers, name, &err.to_string()))
        })
    }

    /// The secret of this name.
    fn named(&self, name: &str) -> Option<&Secret<Vec<u8>>> {
        self.0.iter().find(|named| named.name == name).map(|named| &named.secret)
    }

    fn redactor(&self) -> Redactor {
        let secrets = self.0.iter().map(|named| named.secret.expose());
        // A run that cannot look for them refuses to begin, and says why.
        Redactor::new(secrets).unwrap_or_default()
    }
}

/// A sandbox whose processes may use the secrets that the configuration says, and hold none.
///
/// Where none was read, what they are does not matter.
pub(crate) fn brokered(
    layers: &Layers,
    sandbox: Sandbox,
    secrets: Option<&Secrets>,
) -> Result<Sandbox> {
    stated(layers)?.into_iter().try_fold(sandbox, |sandbox, (name, Stated { found, .. })| {
        let Some(BrokerTable { host, variable }) = &found.value.broker else { return Ok(sandbox) };
        let unusable = |why: String| found.problem(Some("broker"), why);
        let host: Host = host.parse().map_err(|err| unusable(format!("{err}")))?;
        let variable: Variable = variable.parse().map_err(|err| unusable(format!("{err}")))?;
        let name: Word = name.parse().map_err(|err| unusable(format!("{err}")))?;
        let secret = secrets.map(|secrets| secrets.named(name.as_str()).cloned());
        let secret = secret.flatten().unwrap_or_else(|| Secret::new(b"unread".to_vec()));
        let sandbox = sandbox.broker(name, variable.to_string(), host, secret);
        sandbox.map_err(|err| unusable(err.to_string()))
    })
}

fn refused(layers: &Layers, name: &str, why: &str) -> Box<crate::report::Problem> {
    let all: Vec<_> = layers.secrets().filter(|(other, _)| *other == name).collect();
    let (_, found) = all.into_iter().next_back().expect("a secret that was read was named");
    found.problem(None, why).code("secret.unusable")
}

/// Whom the configuration lets decide where each secret is read from.
///
/// The user decides. A project may name a file in its own folder, where its user names nothing:
/// whoever runs a project need not trust it with a variable or a program.
fn stated(layers: &Layers) -> Result<BTreeMap<&str, Stated<'_>>> {
    let mut all: BTreeMap<&str, Stated<'_>> = BTreeMap::new();
    let mut untrusted = Vec::new();
    for (name, found) in layers.secrets() {
        if let Err(err) = name.parse::<Word>() {
            return Err(found.problem(None, err.to_string()));
        }
        let source = source(&found)?;
        if found.layer.rank() == Rank::Project && source.key() != "file" {
            untrusted.push((name, found, source));
            continue;
        }
        // The strongest layer comes first, and a user is asked before a project.
        all.insert(name, Stated { found, source });
    }
    match untrusted.into_iter().find(|(name, _, _)| !all.contains_key(name)) {
        None => Ok(all),
        Some((name, found, source)) => {
            let why = "a project names only files in its own folder";
            let what = format!("write `[secrets.{name}]` and `{}`", source.config());
            let place = "into your own configuration, `~/.config/tooltape/config.toml`";
            let hint = format!("if you trust it, {what} {place}");
            Err(found.problem(Some(source.key()), why).hint(hint))
        }
    }
}

/// Where a secret is read from.
fn source(found: &Found<'_, &SecretTable>) -> Result<Source> {
    let SecretTable { env, file, command, seconds, broker: _ } = found.value;
    if let (None, Some(_)) = (command, seconds) {
        return Err(found.stray("seconds", "only a `command` takes time"));
    }
    match (env, file, command) {
        (Some(name), None, None) => match name.parse::<Variable>() {
            Ok(_) => Ok(Source::Variable(name.clone())),
            Err(err) => Err(found.problem(Some("env"), err.to_string())),
        },
        (None, Some(path), None) if path.is_empty() => {
            Err(found.problem(Some("file"), "expected a path, found nothing"))
        }
        (None, Some(path), None) => Ok(Source::File(found.part("file").below(path)?)),
        (None, None, Some(argv)) => {
            let seconds = seconds.map_or(read::COMMAND_SECONDS_DEFAULT, std::num::NonZeroU32::get);
            match Source::command(argv, found.layer.folder(), seconds) {
                Ok(source) => Ok(source),
                Err(why) => Err(found.problem(Some("command"), why)),
            }
        }
        (_, _, _) => {
            Err(found.problem(None, "expected exactly one of `env`, `file` and `command`"))
        }
    }
}
