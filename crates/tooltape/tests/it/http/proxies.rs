//! Proxies: none unless one is named.

use tooltape::wire::Api;
use tooltape::{AgentError, ModelError};

use super::{World, answering, looking};
use crate::fake::{Fake, KEY, Play};

/// The variables that other programs take proxies from.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

#[tokio::test]
async fn a_proxy_that_is_named_is_gone_through() {
    for api in Api::ALL {
        let proxy = Fake::start(api, [Play::Turn(looking(api)), Play::Turn(answering())]).await;
        let base = proxy.base().replace(&proxy.origin(), "http://model.invalid");
        let named = proxy.origin().replace("http://", "http://user:password@");
        let provider = proxy.provider().at(&base).unwrap().proxy(named);
        World::new().survives(&proxy, provider, 2).await;
        for seen in proxy.seen() {
            assert!(seen.line.starts_with("POST http://model.invalid/v1"), "{}", seen.line);
            let told = seen.header("proxy-authorization");
            assert_eq!(told, Some("Basic dXNlcjpwYXNzd29yZA=="), "{api}");
        }
    }
}

#[tokio::test]
async fn a_proxy_does_not_see_the_key_of_what_is_encrypted() {
    let proxy = Fake::start(Api::OpenAi, []).await;
    let provider = proxy.provider().at("https://model.invalid/v1").unwrap();
    let came = World::new().ask(provider.proxy(proxy.origin())).await;
    let Err(AgentError::Model(err)) = came.answered else { panic!("an error") };
    assert!(matches!(err, ModelError::Unreachable(_)), "{err}");
    let seen = proxy.seen();
    assert!(!seen.is_empty());
    for seen in seen {
        assert!(seen.line.starts_with("CONNECT model.invalid:443"), "{}", seen.line);
        assert!(seen.headers.iter().all(|(_, value)| !value.contains(KEY)));
    }
}

/// Runs by itself, and once more below with a proxy in its environment.
#[tokio::test]
async fn a_model_is_asked_directly() {
    let api = Api::OpenAi;
    let fake = Fake::start(api, [Play::Turn(looking(api)), Play::Turn(answering())]).await;
    World::new().survives(&fake, fake.provider(), 2).await;
}

#[tokio::test]
async fn a_proxy_that_only_the_environment_names_is_not_gone_through() {
    let proxy = Fake::start(Api::OpenAi, []).await;
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::a_model_is_asked_directly");
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args([&*test, "--exact"]).env_remove("NO_PROXY").env_remove("no_proxy");
    again.envs(VARIABLES.map(|name| (name, proxy.origin())));
    let done = tokio::task::spawn_blocking(move || again.output().unwrap()).await.unwrap();
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && told.contains("1 passed"), "{told}");
    assert_eq!(proxy.seen().len(), 0, "nobody came");
}
