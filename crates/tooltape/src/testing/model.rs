//! What every model promises.

use std::collections::HashSet;

use crate::agent::{Next, Talk};
use crate::model::{Model, Request};
use crate::run::Run;
use crate::toolbox::Toolbox;

/// The turns that a conversation takes at most while a model is checked.
const TURNS_MAX: u32 = 16;

/// Holds a model to its promises, in a conversation over these tools.
///
/// The tools are offered and their calls answered by a run that may only read.
pub async fn model_conforms(model: &impl Model, toolbox: &Toolbox, question: &str) {
    let run = Run::new(toolbox);
    let offer = run.offer_all();
    let mut talk = Talk::new(question, TURNS_MAX);
    // A turn that is given up before it began uses nothing up.
    drop(model.turn(&Request::new(talk.messages(), &offer)));
    let mut next = Next::Model;
    loop {
        next = match next {
            Next::Model => {
                let request = Request::new(talk.messages(), &offer);
                let turn = model.turn(&request).await.expect("the model takes a turn");
                let said = turn.text.is_some() || !turn.proposals.is_empty();
                assert!(said, "a turn says something or proposes something");
                let ids: Vec<_> =
                    turn.proposals.iter().map(|it| &it.id).filter(|id| !id.is_empty()).collect();
                let distinct: HashSet<_> = ids.iter().collect();
                assert_eq!(distinct.len(), ids.len(), "the ids of one turn differ");
                talk.turn(turn)
            }
            Next::Calls(proposals) => {
                let count = proposals.len();
                let replies = run.answer(&offer, proposals).await.expect("the run can start");
                assert_eq!(replies.len(), count, "every proposal gets one reply");
                talk.replies(replies)
            }
            Next::Stop(answered) => {
                assert!(answered.turns >= 1, "a conversation has a turn");
                return;
            }
        };
    }
}
