//! The approval card: all that somebody must see who is asked about a call.

mod draw;

use std::path::{Path, PathBuf};

use serde::Serialize;
use tooltape::{
    CallNo, Canon, Clock, Effects, Enforced, Facts, Hash, Need, OpenQuestion, Pending, Question,
    Reach, Registered, Right, RightError, Rights, RunId, Spec, ToolError,
};

use crate::when;

pub(crate) use draw::Columns;

/// Where a question is asked.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The folder that file tools work in.
    pub(crate) folder: PathBuf,
    /// What the run may do.
    pub(crate) held: Rights,
}

/// A question as `--json` prints it and as a person reads it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Card {
    pub(crate) id: Option<Hash>,
    pub(crate) run: Option<RunId>,
    pub(crate) call: CallNo,
    pub(crate) tool: String,
    /// What a call may do, in a few words; nothing, where there is no such tool any more.
    pub(crate) effect: Option<String>,
    /// Byte for byte what a yes is good for.
    pub(crate) args: Option<Canon>,
    pub(crate) args_hash: Hash,
    pub(crate) definition: Option<Hash>,
    /// What the call would change, as things are now.
    pub(crate) preview: Option<Previewed>,
    /// What it needs, with paths resolved.
    pub(crate) touches: Vec<Touch>,
    /// What keeps the tool to that.
    pub(crate) bounds: Option<Bounds>,
    /// Where the model had read what nobody vouches for.
    pub(crate) untrusted: Vec<String>,
    pub(crate) rule: String,
    pub(crate) policy: Option<Hash>,
    /// The attempt of which nobody knows what it did, where the question is whether to repeat it.
    pub(crate) attempt: Option<u32>,
    pub(crate) asked: Option<String>,
    pub(crate) until: Option<String>,
    /// Whether it is too late to say yes.
    pub(crate) expired: bool,
    /// Whether the tool is declared in another way by now, so that a yes would be none.
    pub(crate) changed: bool,
    /// Whether the call would change something else by now than when it was asked, so that the run
    /// asks again after a yes.
    pub(crate) other_change: bool,
}

/// What a tool shows of a call before it runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Previewed {
    /// A text, such as a unified diff.
    Shown(String),
    /// Why there is none.
    Unknown(String),
}

/// Something that a call needs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Touch {
    /// Such as `fs:write:a.txt`.
    pub(crate) right: String,
    /// Where that is on this machine.
    pub(crate) path: Option<String>,
    /// Where the path leads, if that is elsewhere.
    pub(crate) leads_to: Option<String>,
}

/// What keeps a tool to what it declares.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bounds {
    /// Who enforces it.
    enforced_by: Enforced,
    /// The handles that it is given.
    handles: Vec<String>,
    /// The folder of its files, where it is given one.
    folder: Option<String>,
    /// What the run may do.
    rights: Rights,
}

impl Card {
    /// The card for a call that waits in this process.
    pub(crate) fn of_pending(pending: &Pending, setting: &Setting) -> Card {
        let call = pending.call();
        let mut card = Card::of(call.facts(), pending.rule());
        card.preview = pending.preview().map(Previewed::of);
        card.touches = touches(call.needs(), setting);
        let card = card.of_tool(call.spec(), call.enforced_by(), setting);
        match pending.question() {
            Some(question) => card.standing(question),
            None => card,
        }
    }

    /// The card for a question that waits on a tape.
    pub(crate) fn of_open(open: &OpenQuestion) -> Card {
        let OpenQuestion { run, question, asked_us, facts, .. } = open;
        let mut card = Card::of(facts, &question.rule);
        (card.run, card.asked) = (Some(*run), Some(when::rfc3339(*asked_us)));
        card.standing(question)
    }

    /// What is known of a call, whatever its tool is now.
    fn of(facts: &Facts, rule: &str) -> Card {
        let sources = facts.context().sources();
        Card {
            id: None,
            run: None,
            call: facts.call,
            tool: facts.tool().map_or_else(|| facts.name.to_string(), ToString::to_string),
            effect: None,
            args: facts.args.clone(),
            args_hash: facts.args_hash,
            definition: facts.definition(),
            preview: None,
            touches: Vec::new(),
            bounds: None,
            untrusted: sources.map(str::to_owned).collect(),
            rule: rule.to_owned(),
            policy: None,
            attempt: None,
            asked: None,
            until: None,
            expired: false,
            changed: false,
            other_change: false,
        }
    }

    /// The same, with what the tool says that would be called now.
    pub(crate) fn with_tool(
        mut self,
        tool: &Registered,
        setting: &Setting,
        preview: Option<Result<String, ToolError>>,
    ) -> Card {
        self.changed = self.definition != Some(tool.definition());
        self.preview = preview.as_ref().map(Previewed::of);
        let needs = self.args.as_ref().map_or(Ok(Vec::new()), |args| tool.needs_of(args));
        self.touches = touches(needs, setting);
        self.of_tool(tool.spec(), tool.enforced_by(), setting)
    }

    fn of_tool(mut self, spec: &Spec, enforced_by: Enforced, setting: &Setting) -> Card {
        let is_folder = |need: &Need| *need == Need::of::<tooltape_kit::Workspace>();
        let folder = spec.needs.iter().any(is_folder);
        self.effect = Some(effect(&spec.effects));
        self.bounds = Some(Bounds {
            enforced_by,
            handles: spec.needs.iter().map(|need| need.name()).collect(),
            folder: folder.then(|| setting.folder.display().to_string()),
            rights: setting.held.clone(),
        });
        self
    }

    fn standing(mut self, question: &Question) -> Card {
        self.id = Some(question.approval);
        (self.policy, self.attempt) = (Some(question.policy), question.attempt);
        self.until = Some(when::rfc3339(question.until_us));
        self.expired = Clock::system().unix_us() >= question.until_us;
        self
    }
}

impl Previewed {
    fn of(preview: &Result<String, ToolError>) -> Previewed {
        match preview {
            Ok(text) => Previewed::Shown(text.clone()),
            Err(err) => Previewed::Unknown(err.told().to_owned()),
        }
    }
}

/// What a call may do to the world, in a few words.
fn effect(effects: &Effects) -> String {
    let access = format!("{:?}", effects.access).to_lowercase();
    let also = [
        (effects.filesystem, "files"),
        (effects.reach == Reach::Network, "network"),
        (effects.process, "processes"),
        (effects.spend, "spends"),
    ];
    let also: Vec<&str> = also.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    if also.is_empty() { access } else { format!("{access}: {}", also.join(", ")) }
}

fn touches(needs: Result<Vec<Right>, RightError>, setting: &Setting) -> Vec<Touch> {
    let touch = |right: &Right| {
        let path = path_of(right, &setting.folder);
        let real = path.as_ref().and_then(|path| path.canonicalize().ok());
        let leads_to = real.filter(|real| Some(real) != path.as_ref());
        let shown = |path: PathBuf| path.display().to_string();
        Touch { right: right.to_string(), path: path.map(shown), leads_to: leads_to.map(shown) }
    };
    match needs {
        Ok(rights) => rights.iter().map(touch).collect(),
        Err(err) => vec![Touch { right: err.to_string(), path: None, leads_to: None }],
    }
}

/// Where the files of a right are on this machine. Other roots are the program's own.
fn path_of(right: &Right, folder: &Path) -> Option<PathBuf> {
    match right {
        Right::FsRead(scope) | Right::FsWrite(scope) if scope.root.is_none() => {
            let path = scope.path.to_string();
            Some(if path == "." { folder.to_owned() } else { folder.join(path) })
        }
        _ => None,
    }
}
