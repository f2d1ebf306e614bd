//! Models and agents: acceptance 27 and 85, and the conformance of our own models.

use expect_test::expect;
use tooltape::testing::{Spy, model_conforms};
use tooltape::{
    Access, Agent, AgentError, Event, MemoryTape, ModelError, Output, Proposal, Recorded, Recovery,
    Run, Script, Stopped, Toolbox, Turn, TurnStop, Verdict, builtin,
};

fn call(name: &str, text: &str) -> Proposal {
    Proposal::new(format!("{name}_1"), name, text)
}

fn run(spy: &Spy) -> Run {
    Run::new(&Toolbox::new([spy.tool()]).unwrap()).policy(|_: &_| Verdict::allow("test"))
}

#[tokio::test]
async fn an_agent_knows_tools_only_through_the_tool_trait() {
    let spy = Spy::new("fake", Access::Read);
    let model = Script::new([Turn::calls([call("fake", "{}")]), Turn::answer("done")]);
    let answered = Agent::new(model, run(&spy)).ask("go").await.unwrap();
    assert_eq!((answered.text.as_deref(), answered.calls, spy.calls()), (Some("done"), 1, 1));
}

#[tokio::test]
async fn after_a_bad_call_the_model_is_told_and_the_loop_goes_on() {
    let spy = Spy::new("fake", Access::Read);
    let turns = [
        Turn::calls([call("fake", "{")]),
        Turn::calls([call("fake", "{}")]),
        Turn::answer("put right"),
    ];
    let answered = Agent::new(Script::new(turns), run(&spy)).ask("go").await.unwrap();
    assert_eq!((answered.turns, answered.calls, answered.errors), (3, 2, 1));
    assert_eq!(spy.calls(), 1);
}

#[tokio::test]
async fn where_recovery_is_forbidden_the_model_is_not_asked_again() {
    let spy = Spy::new("fake", Access::Read);
    let model = Script::new([Turn::calls([call("fake", "{")]), Turn::answer("never")]);
    let tape = MemoryTape::default();
    let run = run(&spy).recovery(Recovery::Forbidden).tape(tape.clone());
    let agent = Agent::new(model, run);
    assert!(matches!(agent.ask("go").await, Err(AgentError::Run(_))));
    let turns = tape.records(agent.run().id());
    let turns = turns.iter().filter(|record| matches!(record.event, Event::Turn(_)));
    assert_eq!(turns.count(), 1);
}

#[tokio::test]
async fn a_turn_cut_off_by_length_executes_nothing() {
    let spy = Spy::new("fake", Access::Read);
    let cut = Turn::calls([call("fake", "{}")]).stopped(TurnStop::Length);
    let tape = MemoryTape::default();
    let agent = Agent::new(Script::new([cut]), run(&spy).tape(tape.clone()));
    let answered = agent.ask("go").await.unwrap();
    assert_eq!((answered.stop, answered.errors, spy.calls()), (Stopped::Length, 1, 0));
    let records = tape.records(agent.run().id());
    let settled = records.iter().filter(|record| matches!(record.event, Event::Settled(_)));
    assert_eq!(settled.count(), 1, "every proposal gets its reply");
}

#[tokio::test]
async fn a_model_that_never_answers_is_stopped_by_the_turn_limit() {
    let spy = Spy::new("fake", Access::Read);
    let turns = (0..9).map(|_| Turn::calls([call("fake", "{}")]));
    let agent = Agent::new(Script::new(turns), run(&spy)).turns_max(3);
    let answered = agent.ask("go").await.unwrap();
    assert_eq!((answered.stop, answered.turns, spy.calls()), (Stopped::Turns, 3, 3));

    let agent = Agent::new(Script::new([Turn::answer("never said")]), run(&spy)).turns_max(0);
    let answered = agent.ask("go").await.unwrap();
    assert_eq!((answered.stop, answered.turns, answered.text), (Stopped::Turns, 0, None));
}

#[tokio::test]
async fn a_script_that_is_over_is_an_error_that_says_so() {
    let spy = Spy::new("fake", Access::Read);
    let agent = Agent::new(Script::new([Turn::calls([call("fake", "{}")])]), run(&spy));
    let Err(AgentError::Model(err)) = agent.ask("go").await else { panic!("it is over") };
    assert_eq!(err, ModelError::Over { turn: 2, turns: 1 });
}

#[tokio::test]
async fn the_tools_can_vote_to_end_the_run() {
    let stops = Spy::new("finish", Access::Read)
        .returning(|_| tooltape::IntoOutput::into_output(tooltape::Stop(Output::text("finished"))));
    let model = Script::new([Turn::calls([call("finish", "{}")]), Turn::answer("never")]);
    let answered = Agent::new(model, run(&stops)).ask("go").await.unwrap();
    assert_eq!((answered.stop, answered.turns), (Stopped::Vote, 1));
}

#[tokio::test]
async fn a_gate_decides_what_each_turn_is_offered() {
    let spy = Spy::new("fake", Access::Read);
    let turns = [
        Turn::calls([call("fake", "{}")]),
        Turn::calls([call("fake", "{}")]),
        Turn::answer("done"),
    ];
    let agent = Agent::new(Script::new(turns), run(&spy)).gate(|turn, _| turn > 1);
    let answered = agent.ask("go").await.unwrap();
    assert_eq!((answered.errors, spy.calls()), (1, 1));
}

#[tokio::test]
async fn a_recorded_model_says_again_what_it_said() {
    let spy = Spy::new("fake", Access::Read);
    let turns = [Turn::calls([call("fake", "{"), call("fake", "{}")]), Turn::answer("done")];
    let tape = MemoryTape::default();
    let agent = Agent::new(Script::new(turns), run(&spy).tape(tape.clone()));
    let first = agent.ask("go").await.unwrap();
    let records = tape.records(agent.run().id());

    let again = MemoryTape::default();
    let recorded = Recorded::new(&records);
    let question = recorded.question().unwrap().to_owned();
    let agent = Agent::new(recorded, run(&spy).tape(again.clone()));
    assert_eq!(agent.ask(question).await.unwrap(), first);
    let contents = |tape: &MemoryTape, run| -> Vec<_> {
        let records = tape.records(run);
        records.iter().skip(1).map(|record| record.content_hash().unwrap()).collect()
    };
    assert_eq!(contents(&again, agent.run().id()), contents(&tape, records[0].run));
}

#[test]
fn a_script_file_is_read_strictly() {
    let place = |text: &str| Script::parse(text).map(|_| ()).unwrap_err().to_string();
    expect!["line 1, column 6: unknown field `sya`, expected one of `ask`, `say`, `calls`, `stop`"]
        .assert_eq(&place(r#"{"sya":"x"}"#));
    expect!["line 2, column 1: `ask` stands only in the first line"]
        .assert_eq(&place("{\"say\":\"a\"}\n{\"ask\":\"b\"}"));
    expect!["line 1, column 1: expected `ask`, `say` or `calls`"].assert_eq(&place("{}"));
    let both = r#"{"calls":[{"tool":"x","args":{},"text":""}]}"#;
    assert!(place(both).contains("expected one of `args` and `text`, found both"));
}

#[test]
fn a_script_keeps_the_spelling_of_arguments() {
    let script = Script::parse(
        "{\"calls\":[{\"tool\":\"a\",\"args\":{\"n\": 1.0}},{\"tool\":\"b\",\"text\":\"{\"}]}",
    )
    .unwrap();
    let texts: Vec<_> = script.turns()[0].proposals.iter().map(|it| it.text().clone()).collect();
    assert_eq!((&*texts[0], &*texts[1]), ("{\"n\": 1.0}", "{"));
}

#[tokio::test]
async fn our_models_conform() {
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    let turns = || [Turn::calls([call("echo", r#"{"text":"a"}"#)]), Turn::answer("done")];
    model_conforms(&Script::new(turns()), &toolbox, "go").await;

    let tape = MemoryTape::default();
    let agent = Agent::new(Script::new(turns()), Run::new(&toolbox).tape(tape.clone()));
    agent.ask("go").await.unwrap();
    let recorded = Recorded::new(&tape.records(agent.run().id()));
    model_conforms(&recorded, &toolbox, "go").await;
}
