//! Finds the word that was probably meant.

/// The longest word, in characters, that [`nearest`] compares.
pub const NEAREST_CHARS_MAX: usize = 64;

/// The most candidates that [`nearest`] looks at.
pub const NEAREST_WORDS_MAX: usize = 1_000;

/// The nearest of some words, if one is near enough to suggest.
///
/// Words are compared without regard to case, `_` and `-`, so `maxResults` finds `max_results`;
/// after that, one slip (a letter added, lost, changed or swapped with its neighbour) is allowed
/// for every three letters. The work is bounded by [`NEAREST_CHARS_MAX`] and
/// [`NEAREST_WORDS_MAX`]; of equally near words the first wins.
///
/// ```
/// assert_eq!(tooltape::nearest("pth", ["mode", "path"]), Some("path"));
/// assert_eq!(tooltape::nearest("colour", ["mode", "path"]), None);
/// ```
pub fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = Letters::of(word)?;
    let mut best = None;
    for candidate in among.into_iter().take(NEAREST_WORDS_MAX) {
        let Some(letters) = Letters::of(candidate) else { continue };
        let slips_max = best.map_or_else(|| word.slips_max(&letters) + 1, |(slips, _)| slips);
        if let Some(slips) = word.slips_below(&letters, slips_max) {
            best = Some((slips, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A word's letters, lower case, without the marks that only join them.
struct Letters {
    chars: [char; NEAREST_CHARS_MAX],
    len: usize,
}

impl Letters {
    /// The letters of a word, unless it has none or too many.
    fn of(word: &str) -> Option<Letters> {
        let mut letters = Letters { chars: ['\0'; NEAREST_CHARS_MAX], len: 0 };
        for char in word.chars().filter(|char| !matches!(char, '_' | '-')) {
            *letters.chars.get_mut(letters.len)? = char.to_lowercase().next().unwrap_or(char);
            letters.len += 1;
        }
        (letters.len > 0).then_some(letters)
    }

    fn as_slice(&self) -> &[char] {
        &self.chars[..self.len]
    }

    /// How many slips still make a suggestion: one for every three letters of the longer word.
    fn slips_max(&self, other: &Letters) -> usize {
        self.len.max(other.len).div_ceil(3).min(self.len.min(other.len) - 1)
    }

    /// The slips between two words (optimal string alignment), if fewer than `limit` and no
    /// more than these two words allow.
    fn slips_below(&self, other: &Letters, limit: usize) -> Option<usize> {
        let limit = limit.min(self.slips_max(other) + 1);
        if self.len.abs_diff(other.len) >= limit {
            return None;
        }
        let mut before_last = [0; NEAREST_CHARS_MAX + 1];
        let mut last: [usize; NEAREST_CHARS_MAX + 1] = std::array::from_fn(|column| column);
        let (ours, theirs) = (self.as_slice(), other.as_slice());
        for (row, &our) in ours.iter().enumerate() {
            let mut this = [0; NEAREST_CHARS_MAX + 1];
            this[0] = row + 1;
            for (column, &their) in theirs.iter().enumerate() {
                let changed = last[column] + usize::from(our != their);
                let mut slips = changed.min(last[column + 1] + 1).min(this[column] + 1);
                if row > 0 && column > 0 && our == theirs[column - 1] && ours[row - 1] == their {
                    slips = slips.min(before_last[column - 1] + 1);
                }
                this[column + 1] = slips;
            }
            before_last = last;
            last = this;
        }
        (last[other.len] < limit).then_some(last[other.len])
    }
}
