//! The named limits of the strict reader.

/// The longest argument text that is read, in bytes.
pub const ARGUMENT_BYTES_MAX: usize = 1 << 20;

/// The longest result text that is read, in bytes.
pub const RESULT_BYTES_MAX: usize = 64 << 20;

/// The deepest nesting of arrays and objects that arguments may have.
pub const DEPTH_MAX: usize = 64;

/// The most values that arguments may hold; the key of a field is part of its value.
pub const NODES_MAX: usize = 262_144;

/// The longest integer that is kept exactly, in digits.
///
/// An integer of 308 digits is still below the largest double, so every number that was read can
/// also be read as a double by those who know no other number.
pub const INTEGER_DIGITS_MAX: usize = 308;

/// The deepest nesting that any limits allow: what `serde_json` can read back.
pub(super) const DEPTH_CEILING: usize = 127;

/// The longest text that any limits allow: offsets are kept in 32 bits.
const BYTES_CEILING: usize = u32::MAX as usize - 1;

/// Named limits of the strict reader.
///
/// Any value is valid. Beyond a depth of 127, 4 GiB, or integers of [`INTEGER_DIGITS_MAX`] digits a
/// limit widens nothing more: those are the reader's own bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest text, in bytes.
    pub bytes: usize,
    /// The deepest nesting of arrays and objects; a lone number has depth 0.
    pub depth: usize,
    /// The most values; the key of a field is part of its value.
    pub nodes: usize,
    /// The longest integer, in digits.
    pub integer_digits: usize,
}

impl Limits {
    /// For what a model proposes as arguments.
    pub const ARGUMENTS: Self = Self {
        bytes: ARGUMENT_BYTES_MAX,
        depth: DEPTH_MAX,
        nodes: NODES_MAX,
        integer_digits: INTEGER_DIGITS_MAX,
    };

    /// For what a tool returns.
    pub const RESULT: Self = Self {
        bytes: RESULT_BYTES_MAX,
        depth: 96,
        nodes: 4_194_304,
        integer_digits: INTEGER_DIGITS_MAX,
    };

    /// For what this program serialised itself, such as an event that wraps a result.
    pub const OWN: Self = Self {
        bytes: 2 * RESULT_BYTES_MAX,
        depth: DEPTH_CEILING,
        nodes: 8_388_608,
        integer_digits: INTEGER_DIGITS_MAX,
    };

    /// Of each limit, the lower one.
    pub(crate) fn meet(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.min(other.bytes),
            depth: self.depth.min(other.depth),
            nodes: self.nodes.min(other.nodes),
            integer_digits: self.integer_digits.min(other.integer_digits),
        }
    }

    /// These limits within the reader's own bounds.
    pub(super) fn bounded(&self) -> Self {
        Self {
            bytes: self.bytes.min(BYTES_CEILING),
            depth: self.depth.min(DEPTH_CEILING),
            nodes: self.nodes,
            integer_digits: self.integer_digits.min(INTEGER_DIGITS_MAX),
        }
    }
}

/// The limits for arguments.
impl Default for Limits {
    fn default() -> Self {
        Self::ARGUMENTS
    }
}
