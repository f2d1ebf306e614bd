//! The model that an agent asks: a script, or one behind an API.

use std::env;
use std::net::IpAddr;

use tooltape::http::{HttpModel, Provider, ProviderError};
use tooltape::limits::SECRET_BYTES_MIN;
use tooltape::wire::Api;
use tooltape::{BoxFuture, Model, ModelError, Redactor, Request, Script, Secret, Turn};

use crate::config::{Found, Layers, Rank};
use crate::exit::Exit;
use crate::model::ModelName;
use crate::report::{Problem, Result};

/// The variable with the key for a server that is named by its address.
const SERVER_KEY: &str = "TOOLTAPE_MODEL_KEY";

/// A model that can be asked.
pub(crate) enum Chosen {
    Script(Script),
    Http(Box<Remote>),
}

impl Chosen {
    /// Its name, for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Chosen::Script(_) => "the script".to_owned(),
            Chosen::Http(remote) => remote.name.clone(),
        }
    }
}

impl Model for Chosen {
    fn turn<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, std::result::Result<Turn, ModelError>> {
        match self {
            Chosen::Script(script) => script.turn(request),
            Chosen::Http(remote) => remote.model.turn(request),
        }
    }
}

/// The model that the configuration names; a script unless it names one.
pub(crate) fn named(layers: &Layers) -> Option<Found<'_, ModelName>> {
    layers.find("agent.model", |config| config.agent.model.clone())
}

/// A model behind an API, ready to be asked.
pub(crate) struct Remote {
    pub(crate) name: String,
    pub(crate) model: HttpModel,
}

/// The model behind an API that the configuration names. `None` where a script is played.
pub(crate) fn remote(layers: &Layers) -> Result<Option<Remote>> {
    let Some(found) = named(layers) else { return Ok(None) };
    check_server(&found)?;
    behind(&found.value)
}

/// Whoever runs a project need not trust it with what is said to a model, nor with a key.
pub(crate) fn check_server(found: &Found<'_, ModelName>) -> Result {
    match (&found.value, found.layer.rank()) {
        (ModelName::Served { .. }, Rank::Project) => {
            let why = "a project cannot say which server is asked: name it with `--model`";
            Err(found.problem(None, why))
        }
        (_, _) => Ok(()),
    }
}

/// The model of this name behind an API. `None` where it is a script.
pub(crate) fn behind(name: &ModelName) -> Result<Option<Remote>> {
    let (provider, key) = match name {
        ModelName::Script | ModelName::ScriptFile(_) => return Ok(None),
        ModelName::Provided(api, model) => provided(*api, model)?,
        ModelName::Served { base, model } => {
            let provider = Provider::new(Api::Compatible, model.clone()).at(base);
            let provider = proxied(provider.map_err(|err| unusable(&err))?);
            (provider, key_of(name))
        }
    };
    let provider = match &key {
        Some(key) => provider.key(key).map_err(|err| unusable(&err))?,
        None => provider,
    };
    let model = provider.build().map_err(|err| unusable(&err))?;
    Ok(Some(Remote { name: name.to_string(), model }))
}

/// What keeps the keys of models out of all that is written down.
pub(crate) fn redactor<'n>(names: impl IntoIterator<Item = &'n ModelName>) -> Redactor {
    let keys: Vec<_> = names.into_iter().filter_map(key_of).collect();
    // What is too short to be looked for is no key.
    let keys = keys.iter().map(|key| key.expose()).filter(|key| key.len() >= SECRET_BYTES_MIN);
    Redactor::new(keys).unwrap_or_default()
}

/// The key that the environment has for a model.
fn key_of(name: &ModelName) -> Option<Secret<String>> {
    match name {
        ModelName::Script | ModelName::ScriptFile(_) => None,
        ModelName::Provided(api, _) => key(variables(*api).0),
        ModelName::Served { .. } => key(&[SERVER_KEY]),
    }
}

/// The variables that may have the key for an API, and the one that may have its address.
fn variables(api: Api) -> (&'static [&'static str], &'static str) {
    match api {
        Api::OpenAi | Api::Responses => (&["OPENAI_API_KEY"], "OPENAI_BASE_URL"),
        Api::Anthropic => (&["ANTHROPIC_API_KEY"], "ANTHROPIC_BASE_URL"),
        Api::Gemini => (&["GEMINI_API_KEY", "GOOGLE_API_KEY"], "GEMINI_BASE_URL"),
        Api::Mistral => (&["MISTRAL_API_KEY"], "MISTRAL_BASE_URL"),
        Api::Compatible => (&[SERVER_KEY], ""),
    }
}

/// A model of a provider, at the address and with the key that the environment has.
fn provided(api: Api, model: &str) -> Result<(Provider, Option<Secret<String>>)> {
    let (keys, base) = variables(api);
    let Some(key) = key(keys) else {
        let name = keys[0];
        let message = format!("`{api}:{model}` wants a key, and `{name}` is not set");
        return Err(Problem::new(Exit::Unauthorised, "model.unauthorised", message)
            .hint(format!("set `{name}`, or play a script: no key is needed for that")));
    };
    let provider = Provider::new(api, model);
    let base = env::var(base).ok().filter(|base| !base.is_empty());
    let provider = match &base {
        Some(base) => provider.at(base).map_err(|err| unusable(&err))?,
        None => provider,
    };
    Ok((proxied(provider), Some(key)))
}

fn key(names: &[&str]) -> Option<Secret<String>> {
    let mut keys = names.iter().filter_map(|name| env::var(name).ok());
    keys.find(|key| !key.trim().is_empty()).map(|key| Secret::new(key.trim().to_owned()))
}

/// Goes through the proxy that the environment names for such servers, if it names one.
fn proxied(provider: Provider) -> Provider {
    let (scheme, host) = provider.server();
    let names = match scheme.as_str() {
        "http" => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    };
    let unproxied = env::var("NO_PROXY").or_else(|_| env::var("no_proxy")).unwrap_or_default();
    let mut unproxied = unproxied.split(',').map(str::trim).filter(|name| !name.is_empty());
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_own = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    let is_left_out = unproxied.any(|name| {
        let name = name.trim_start_matches('.');
        name == "*" || host == name || host.ends_with(&format!(".{name}"))
    });
    let mut proxies = names.iter().filter_map(|name| env::var(name).ok());
    match proxies.find(|proxy| !proxy.is_empty()) {
        Some(proxy) if !is_own && !is_left_out => provider.proxy(proxy),
        Some(_) | None => provider,
    }
}

fn unusable(err: &ProviderError) -> Box<Problem> {
    Problem::new(Exit::Usage, "model.unusable", err.to_string())
        .hint("`--model` takes `openai:MODEL`, `anthropic:MODEL`, `gemini:MODEL` or an address")
}
