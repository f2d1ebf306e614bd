//! What is kept of a stream that may be endless: its beginning and its end.

use std::collections::VecDeque;

/// What a process wrote to one stream: all of it, or its beginning and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The most bytes of each of the two.
    half: usize,
    total: u64,
}

impl Kept {
    pub(super) fn new(most: usize) -> Kept {
        Kept { head: Vec::new(), tail: VecDeque::new(), half: most.div_ceil(2), total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// How many bytes were written in all.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Whether some bytes in the middle were not kept.
    pub fn is_truncated(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// What was kept, in one piece: everything, unless it [is truncated](Self::is_truncated).
    pub fn bytes(&self) -> Vec<u8> {
        let (front, back) = self.tail.as_slices();
        [&self.head, front, back].concat()
    }

    /// What was kept as text. What is no text is replaced, and what is left out is counted.
    pub fn text(&self) -> String {
        if !self.is_truncated() {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        let (front, back) = self.tail.as_slices();
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        let head = String::from_utf8_lossy(&self.head);
        let tail = [front, back].concat();
        let tail = String::from_utf8_lossy(&tail);
        format!("{head}\n[{left_out} bytes left out]\n{tail}")
    }
}
