//! Whom tools may ask on the web, as the configuration says.

use std::num::NonZeroU16;

use tooltape::scope::{Host, NetScope};
use tooltape::{Right, Rights};
use tooltape_kit::Http;

use crate::config::{Found, Layers, Rank};
use crate::report::Result;

/// A handle to the web for the hosts that the user names. A project leaves fewer of them, and
/// without its user there are none.
pub(crate) fn http(layers: &Layers) -> Result<Http> {
    let mut allowed = Rights::none();
    let said = layers.narrowed("http.allow", |config| config.http.allow.clone());
    let (projects, users): (Vec<_>, Vec<_>) =
        said.iter().partition(|found| found.layer.rank() == Rank::Project);
    if let Some(user) = users.first() {
        allowed = hosts(user)?;
    }
    for project in projects {
        allowed = allowed.meet(&hosts(project)?);
    }
    let private = layers.all("http.private", |config| config.http.private.as_ref());
    private.into_iter().try_fold(Http::new().allow(allowed), |http, found| {
        if found.layer.rank() == Rank::Project {
            let why = "a project cannot open this machine or its network to tools; your own \
                       configuration can";
            return Err(found.problem(None, why));
        }
        let (host, port) = place(&found)?;
        Ok(http.private(host, port))
    })
}

/// The right to ask each of these hosts for pages.
fn hosts(found: &Found<'_, Vec<String>>) -> Result<Rights> {
    let right = |host: &String| {
        let text = match host.starts_with("net:") {
            true => host.clone(),
            false => format!("net:get:{host}"),
        };
        text.parse::<Right>().map_err(|err| found.problem(None, err.to_string()))
    };
    let rights: Result<Vec<Right>> = found.value.iter().map(right).collect();
    Ok(Rights::of(rights?))
}

/// A host and its port, both of which have to be named.
fn place(found: &Found<'_, &String>) -> Result<(Host, NonZeroU16)> {
    let unclear = |why: String| found.problem(None, why);
    let right = format!("net:get:{}", found.value).parse();
    let Right::Net(NetScope { port, .. }) = right.map_err(|err| unclear(format!("{err}")))? else {
        return Err(unclear("expected `host:port`".to_owned()));
    };
    let host = found.value.strip_suffix(&format!(":{port}"));
    let host = host.and_then(|host| host.parse().ok());
    let host = host.ok_or_else(|| {
        unclear(format!("found `{}`, expected one host and its port", found.value))
    })?;
    Ok((host, port))
}
