//! Conversations to be shown to every API.

use std::collections::BTreeSet;

use tooltape::testing::Spy;
use tooltape::{
    Access, Block, Message, Name, Offer, Output, Proposal, Reply, Run, ToolError, Toolbox, Turn,
    Verdict,
};

/// A run whose tools are these, and three that succeed, fail and return an image.
pub(crate) struct Stage {
    run: Run,
    pub(crate) offer: Offer,
}

/// The least image that there is.
const IMAGE: &str = "iVBORw0KGgo=";

impl Stage {
    pub(crate) fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Stage {
        let own = ["succeed", "fail", "paint"];
        let names: BTreeSet<&str> = names.into_iter().filter(|it| !own.contains(it)).collect();
        let names = names.into_iter().filter(|name| Name::new(name).is_ok());
        let spy = |name: &str| Spy::new(name, Access::Write);
        let mut toolbox = Toolbox::new(names.map(|name| spy(name).tool())).unwrap();
        let fail = spy("fail").returning(|_| Err(ToolError::tell("no luck today")));
        let paint = spy("paint").returning(|_| {
            let (media_type, data) = ("image/png".to_owned(), IMAGE.to_owned());
            Ok(Output::text("Here:").block(Block::Image { media_type, data }))
        });
        for tool in [spy("succeed"), fail, paint] {
            toolbox.add(tool.tool()).unwrap();
        }
        let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"));
        Stage { offer: run.offer_all(), run }
    }

    pub(crate) async fn replies(&self, proposals: &[Proposal]) -> Vec<Reply> {
        self.run.answer(&self.offer, proposals.to_vec()).await.unwrap()
    }

    /// A turn in a conversation, and another that proposes a success, a failure and an image, with
    /// ids that no API takes.
    pub(crate) async fn around(&self, turn: Turn) -> Vec<Message> {
        let mut messages = vec![Message::User("Go.".into()), Message::User("Now.".into())];
        let long = "x".repeat(100);
        let second = Turn::calls([
            Proposal::new("", "succeed", "{}"),
            Proposal::new("same", "fail", r#"{"a": 1.50}"#),
            Proposal::new("same", "paint", "{}"),
            Proposal::new(long, "nobody at all", "[1]"),
            Proposal::new("", "", "{\"cut\": "),
        ]);
        for turn in [turn, second] {
            let replies = self.replies(&turn.proposals).await;
            messages.push(Message::Model(turn));
            if !replies.is_empty() {
                messages.push(Message::Replies(replies));
            } else {
                messages.push(Message::User("Go on.".into()));
            }
        }
        messages.push(Message::User("And now?".into()));
        messages
    }
}
