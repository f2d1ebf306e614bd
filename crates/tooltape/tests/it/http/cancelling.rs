//! Who gives a turn up closes its connection, and the server knows it.

use tooltape::wire::Api;
use tooltape::{Agent, AgentLimits, Answered, Message, Model, Request, Run, Stopped, Toolbox};

use super::{World, looking};
use crate::fake::{Fake, Play, Said, Then, hurried, said};

/// What a server has said when its turn is given up: nothing, or the half of it.
fn halves(api: Api) -> [Play; 2] {
    [Play::Hang, Play::Until(looking(api), "pla", Then::Hang)]
}

/// A server of nobody's patience: only who gives up ends it.
async fn patient(api: Api, play: Play) -> (Fake, tooltape::http::Provider) {
    let fake = Fake::start(api, [play]).await;
    let mut waits = hurried();
    waits.silence = tooltape::http::SILENCE_DEFAULT;
    let provider = fake.provider().waits(waits);
    (fake, provider)
}

#[tokio::test]
async fn a_turn_that_is_dropped_closes_its_connection() {
    for api in Api::ALL {
        for half in halves(api) {
            let (fake, provider) = patient(api, half).await;
            let model = provider.build().unwrap();
            let messages = [Message::User("Go.".into())];
            let offer = Run::new(&Toolbox::default()).offer_all();
            let request = Request::new(&messages, &offer);
            tokio::select! {
                turn = model.turn(&request) => panic!("{api}: {turn:?}"),
                () = fake.until_asked(1) => {}
            }
            fake.until_closed(1).await;
        }
    }
}

/// Asks, does something about it as soon as the server was asked, and waits for both ends.
async fn given_up<M: Model>(
    fake: &Fake,
    agent: &Agent<M>,
    give_up: impl FnOnce(&Agent<M>),
) -> Answered {
    let giving_up = async {
        fake.until_asked(1).await;
        give_up(agent);
        fake.until_closed(1).await;
    };
    let (answered, ()) = tokio::join!(agent.ask("Go."), giving_up);
    answered.unwrap()
}

#[tokio::test]
async fn a_turn_that_is_interrupted_or_cancelled_closes_its_connection_and_executes_nothing() {
    for api in Api::ALL {
        for half in halves(api) {
            let (fake, provider) = patient(api, half.clone()).await;
            let world = World::new();
            let agent = world.agent(provider);
            let answered = given_up(&fake, &agent, |agent| agent.steer().interrupt()).await;
            assert_eq!((answered.stop, answered.turns), (Stopped::Interrupted, 0), "{api}");

            let (fake, provider) = patient(api, half).await;
            let agent = World { tape: Default::default(), ..world }.agent(provider);
            let answered = given_up(&fake, &agent, |agent| agent.run().cancel()).await;
            assert_eq!((answered.stop, answered.turns), (Stopped::Cancelled, 0), "{api}");
        }
    }
}

#[tokio::test]
async fn a_turn_whose_time_is_up_closes_its_connection() {
    for half in halves(Api::Gemini) {
        let (fake, provider) = patient(Api::Gemini, half).await;
        let mut limits = AgentLimits::default();
        limits.wall = std::time::Duration::from_millis(100);
        let agent = World::new().agent(provider).limits(limits);
        let answered = given_up(&fake, &agent, |_| {}).await;
        assert_eq!((answered.stop, answered.turns), (Stopped::Time, 0));
    }
}

#[tokio::test]
async fn a_conversation_goes_on_after_a_turn_was_given_up() {
    for api in Api::ALL {
        let [_, half] = halves(api);
        let fake = Fake::start(api, [half, Play::Turn(answer())]).await;
        let agent = World::new().agent(fake.provider());
        let mut conversation = agent.open();
        let steering = async {
            fake.until_asked(1).await;
            agent.steer().say("Never mind. Where are you?").unwrap();
            agent.steer().interrupt();
        };
        let (answered, ()) = tokio::join!(conversation.ask("Go."), steering);
        assert_eq!(answered.unwrap().text.as_deref(), Some("Here."), "{api}");
        fake.until_closed(1).await;
        tooltape::testing::check_transcript(conversation.messages()).unwrap();
        assert_eq!(fake.refused(), [""; 0], "{api}");
    }
}

fn answer() -> Said {
    said(["Here.".into()])
}
