//! Tools that models find: deferred until a search, and then offered behind all others.

use std::sync::{Arc, Mutex};

use tooltape::{
    Access, Agent, BoxFuture, Empty, Message, Model, ModelError, Proposal, Request, Run, Script,
    Spec, Tool, ToolError, Toolbox, Turn, tool_fn,
};

fn tool(name: &'static str, description: &str, deferred: bool) -> Arc<dyn Tool> {
    let spec = Spec::new(name, description).access(Access::Read);
    let spec = if deferred { spec.deferred() } else { spec };
    tool_fn(spec, move |_: Empty| async move { Ok::<_, ToolError>(name) })
}

fn toolbox() -> Toolbox {
    let mut toolbox = Toolbox::new([
        tool("weather", "Tells the weather of a city.", true),
        tool("look", "Looks around.", false),
        tool("sendMail", "Sends a mail to somebody.", true),
        tool("mail_list", "Lists the mails of a folder.", true),
        tool("wait", "Waits.", false),
    ])
    .unwrap();
    toolbox.searchable().unwrap();
    toolbox
}

/// A model that notes what it is offered.
struct Noting(Script, Arc<Mutex<Vec<String>>>);

impl Model for Noting {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let names = request.offer.tools().map(|tool| tool.spec().name.to_string());
        self.1.lock().unwrap().push(names.collect::<Vec<_>>().join(" "));
        self.0.turn(request)
    }
}

fn search(query: &str, limit: u8) -> Proposal {
    let arguments = serde_json::json!({ "query": query, "limit": limit });
    Proposal::new("s", "tool_search", arguments.to_string())
}

#[tokio::test]
async fn a_deferred_tool_is_offered_once_it_was_found_and_behind_all_others() {
    let offers = Arc::default();
    let turns = [
        Turn::calls([Proposal::new("c1", "sendMail", "{}")]),
        Turn::calls([search("send mails", 1)]),
        Turn::calls([search("weather in a city", 1), Proposal::new("c2", "sendMail", "{}")]),
        Turn::calls([Proposal::new("c3", "weather", "{}")]),
        Turn::answer("done"),
    ];
    let model = Noting(Script::new(turns), Arc::clone(&offers));
    let agent = Agent::new(model, Run::new(&toolbox()));
    let mut conversation = agent.open();
    let answered = conversation.ask("Mail the weather.").await.unwrap();
    assert_eq!((answered.calls, answered.errors), (5, 1));
    let first = conversation.messages().iter().find_map(|message| match message {
        Message::Replies(replies) => Some(replies[0].text()),
        Message::User(_) | Message::Model(_) => None,
    });
    assert!(first.unwrap().starts_with("not executed"));
    let base = "look wait tool_search";
    let expected = [
        base.to_owned(),
        base.to_owned(),
        format!("{base} sendMail"),
        format!("{base} sendMail weather"),
        format!("{base} sendMail weather"),
    ];
    assert_eq!(*offers.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_search_ranks_names_before_descriptions_and_finds_nothing_for_nothing() {
    let run = Run::new(&toolbox());
    let names = async |query: &str| {
        let replies = run.batch(vec![search(query, 20)]).await.unwrap();
        let hits: Vec<serde_json::Value> = serde_json::from_str(&replies[0].text()).unwrap();
        hits.iter().map(|hit| hit["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("mail").await, ["sendMail", "mail_list"]);
    assert_eq!(names("list mail").await, ["mail_list", "sendMail"]);
    assert_eq!(names("SendMail").await, ["sendMail", "mail_list"]);
    assert_eq!(names("quantum").await, [""; 0]);
    let replies = run.batch(vec![search("?!", 5), search("mail", 0)]).await.unwrap();
    assert!(replies.iter().all(|reply| reply.text().starts_with("not executed")));
}

#[test]
fn a_toolbox_without_deferred_tools_has_no_search() {
    let mut toolbox = Toolbox::new([tool("look", "Looks.", false)]).unwrap();
    toolbox.searchable().unwrap();
    assert_eq!(toolbox.names().collect::<Vec<_>>(), ["look"]);
}
