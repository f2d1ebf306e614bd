//! Secrets taken out of what comes piece by piece, wherever the pieces end.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::{Anchored, nfa::contiguous::NFA};
use zeroize::Zeroizing;

use super::{Redactor, Secrets};
use crate::grant::REDACTED;

/// The most bytes of a character beside its first.
const CHAR_REST_BYTES_MAX: usize = 3;

/// A text that comes piece by piece, without secrets.
///
/// What it lets out, put together, is what [`Redactor::redact`] makes of the pieces put together.
/// Only what may be the beginning of a secret is held back, so at most as many bytes as the longest
/// form of one. The time is linear in the text, however it is cut.
///
/// ```
/// use tooltape::Redactor;
///
/// let redactor = Redactor::new(["correct horse"])?;
/// let mut stream = redactor.stream();
/// assert_eq!(stream.push("say\n"), "say\n");
/// let shown = [stream.push("the corr"), stream.push("ect horse!"), stream.finish()];
/// assert_eq!(shown.concat(), "the [redacted]!");
/// # Ok::<(), tooltape::RedactError>(())
/// ```
pub struct RedactedText(Flow);

/// Bytes that come piece by piece, without secrets: what [`RedactedText`] is to text.
pub struct RedactedBytes(Flow);

impl Redactor {
    /// Takes secrets out of a text that comes piece by piece.
    pub fn stream(&self) -> RedactedText {
        RedactedText(Flow::new(self, CHAR_REST_BYTES_MAX))
    }

    /// Takes secrets out of bytes that come piece by piece, such as what a process prints.
    pub fn stream_bytes(&self) -> RedactedBytes {
        RedactedBytes(Flow::new(self, 0))
    }
}

impl RedactedText {
    /// What may be let out once this piece has come.
    #[must_use]
    pub fn push(&mut self, piece: &str) -> String {
        for (at, character) in piece.char_indices() {
            self.0.take(&piece.as_bytes()[at..at + character.len_utf8()]);
        }
        text(self.0.let_out())
    }

    /// What is left, where nothing more comes.
    #[must_use]
    pub fn finish(mut self) -> String {
        text(self.0.rest())
    }
}

impl RedactedBytes {
    /// What may be let out once this piece has come.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        piece.chunks(1).for_each(|byte| self.0.take(byte));
        self.0.let_out()
    }

    /// What is left, where nothing more comes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.0.rest()
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("no character is ever let out in part")
}

/// What came, and what of it may not be let out yet. Places count from where the stream began.
struct Flow {
    secrets: Option<Arc<Secrets>>,
    state: Option<StateID>,
    /// How far a place may be widened.
    widened: usize,
    /// The last bytes that came, of which some were let out.
    bytes: Zeroizing<Vec<u8>>,
    /// Where these bytes begin.
    from: usize,
    /// Up to where everything was let out.
    out: usize,
    /// Where secrets are that were not let out yet, in their order.
    places: VecDeque<Range<usize>>,
    /// Whether the mark of the first place was let out.
    is_marked: bool,
}

impl Flow {
    fn new(redactor: &Redactor, widened: usize) -> Flow {
        let secrets = redactor.0.clone();
        let state = secrets.as_ref().map(|secrets| start(&secrets.forms));
        let (bytes, places) = (Zeroizing::default(), VecDeque::new());
        Flow { secrets, state, widened, bytes, from: 0, out: 0, places, is_marked: false }
    }

    /// Takes one byte, or one character.
    fn take(&mut self, unit: &[u8]) {
        self.bytes.extend_from_slice(unit);
        let (Some(secrets), Some(mut state)) = (&self.secrets, self.state) else { return };
        let (end, forms) = (self.from + self.bytes.len(), &secrets.forms);
        let mut found: Option<usize> = None;
        for (at, byte) in (end - unit.len() + 1..).zip(unit) {
            state = forms.next_state(Anchored::No, state, *byte);
            let start = longest(forms, state).map(|len| at - len);
            found = found.into_iter().chain(start).min();
        }
        self.state = Some(state);
        if let Some(start) = found {
            self.hide(start..end);
        }
    }

    /// Places that overlap or touch are one.
    fn hide(&mut self, place: Range<usize>) {
        let mut start = place.start;
        while self.widened > 0 && start > self.out && !self.is_boundary(start) {
            start -= 1;
        }
        while let Some(before) = self.places.pop_back_if(|before| before.end >= start) {
            start = start.min(before.start);
        }
        self.places.push_back(start..place.end);
    }

    fn is_boundary(&self, at: usize) -> bool {
        // A continuation byte of UTF-8 begins with the bits 10.
        self.bytes.get(at - self.from).is_none_or(|byte| byte & 0xC0 != 0x80)
    }

    /// Everything in which no secret can begin any more.
    fn let_out(&mut self) -> Vec<u8> {
        let end = self.from + self.bytes.len();
        let Some(secrets) = &self.secrets else { return self.release(end) };
        if self.state == Some(start(&secrets.forms)) {
            return self.release(end);
        }
        let window = secrets.forms.max_pattern_len() - 1 + self.widened;
        let mut to = end.saturating_sub(window).max(self.out);
        while self.widened > 0 && to > self.out && !self.is_boundary(to) {
            to -= 1;
        }
        self.release(to)
    }

    fn rest(&mut self) -> Vec<u8> {
        self.release(self.from + self.bytes.len())
    }

    /// Lets out everything up to there, and a mark for each secret.
    fn release(&mut self, to: usize) -> Vec<u8> {
        let mut shown = Vec::new();
        while self.out < to {
            let at = self.out;
            match self.places.front() {
                // No secret that is found later touches this one.
                Some(place) if at >= place.end => {
                    self.places.pop_front();
                    self.is_marked = false;
                    continue;
                }
                Some(place) if at >= place.start => {
                    self.out = place.end.min(to);
                    if !self.is_marked {
                        shown.extend_from_slice(REDACTED.as_bytes());
                    }
                    self.is_marked = true;
                    continue;
                }
                Some(place) => self.out = place.start.min(to),
                None => self.out = to,
            }
            shown.extend_from_slice(&self.bytes[at - self.from..self.out - self.from]);
        }
        // Moved seldom, so that the time stays linear where pieces are small.
        let gone = self.out - self.from;
        if gone >= self.bytes.len() - gone {
            self.bytes.drain(..gone);
            self.from = self.out;
        }
        shown
    }
}

fn start(forms: &NFA) -> StateID {
    forms.start_state(Anchored::No).expect("it looks for secrets wherever they begin")
}

/// How long the longest form is that ends here.
fn longest(forms: &NFA, state: StateID) -> Option<usize> {
    if !forms.is_match(state) {
        return None;
    }
    let ending = 0..forms.match_len(state);
    ending.map(|nth| forms.pattern_len(forms.match_pattern(state, nth))).max()
}

impl Secrets {
    /// How many of the last bytes may be the beginning of a secret.
    pub(super) fn begun(&self, bytes: &[u8]) -> usize {
        let most = bytes.len().min(self.forms.max_pattern_len() - 1);
        let state = |len: usize| {
            let last = bytes[bytes.len() - len..].iter();
            last.fold(start(&self.forms), |state, byte| {
                self.forms.next_state(Anchored::No, state, *byte)
            })
        };
        // A state is the longest such beginning, so whoever reads at least that comes to it.
        let (end, mut least, mut enough) = (state(most), 0, most);
        while least < enough {
            let half = least.midpoint(enough);
            if state(half) == end { enough = half } else { least = half + 1 }
        }
        enough
    }
}
