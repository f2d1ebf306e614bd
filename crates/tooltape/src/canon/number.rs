//! Numbers: their grammar, their exact value, and their canonical text.

use std::cmp::Ordering;

use super::unreadable::Flaw;

/// From here on not every integer is a double.
const EXACT_END: f64 = 9_007_199_254_740_992.0;

/// The most significant digits that a double always gives back unchanged.
const DOUBLE_DIGITS: usize = 15;

/// A number that was found.
pub(super) struct Scan {
    /// The offset after its last character.
    pub(super) end: usize,
    /// The digits of an integer literal; a literal with a fraction or exponent has none.
    pub(super) integer_digits: Option<usize>,
}

/// The end of the number that begins at `start`, if it is an integer that is neither signed nor 0.
#[inline]
pub(super) fn scan_plain(bytes: &[u8], start: usize) -> Option<usize> {
    let mut end = start;
    while bytes.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    let plain = matches!(bytes.get(start), Some(b'1'..=b'9'))
        && !matches!(bytes.get(end), Some(b'.' | b'e' | b'E'));
    plain.then_some(end)
}

/// Finds the end of the number that begins at `start`.
pub(super) fn scan(bytes: &[u8], start: usize) -> Result<Scan, Flaw> {
    let first = start + usize::from(bytes.get(start) == Some(&b'-'));
    let mut end = digits_end(bytes, first)?;
    if end - first > 1 && bytes[first] == b'0' {
        return Err(Flaw::Expected("no further digit after a leading `0`", first + 1));
    }
    if !matches!(bytes.get(end), Some(b'.' | b'e' | b'E')) {
        return Ok(Scan { end, integer_digits: Some(end - first) });
    }
    if bytes[end] == b'.' {
        end = digits_end(bytes, end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        end = digits_end(bytes, end + 1 + usize::from(signed))?;
    }
    Ok(Scan { end, integer_digits: None })
}

fn digits_end(bytes: &[u8], start: usize) -> Result<usize, Flaw> {
    let count = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 { Err(Flaw::Expected("a digit", start)) } else { Ok(start + count) }
}

/// How a literal with a fraction or an exponent is written.
///
/// Such a literal is a double, as in RFC 8785, unless that would change an integer. Doubles beyond
/// 2^53 are all integers, but their shortest text is filled up with zeros: it reads as *another*
/// integer, and ours keep their exact meaning. So an integral literal is written as the shortest
/// text of its double only if that text has exactly its value, and as its exact digits otherwise;
/// a literal with a true fraction out there is refused, because no text would be true to it.
pub(super) enum Form {
    /// An integer, exactly.
    Digits(usize),
    /// A double in its shortest text, which the literal may be already.
    Shortest { verbatim: bool },
    /// Larger than the largest double.
    OutOfRange,
    /// A fraction that no double of this size can hold.
    FractionLost,
}

/// Decides how a literal with a fraction or an exponent is written.
pub(super) fn form(literal: &str) -> Form {
    if is_surely_shortest(literal) {
        return Form::Shortest { verbatim: true };
    }
    let decimal = Decimal::of(literal);
    if decimal.is_integer() && decimal.integer_digits() <= DOUBLE_DIGITS as i64 {
        return Form::Digits(decimal.integer_digits().max(1) as usize);
    }
    let double = double(literal);
    if double.is_infinite() {
        return Form::OutOfRange;
    }
    if !decimal.is_integer() && double.abs() >= EXACT_END {
        return Form::FractionLost;
    }
    let mut buffer = ryu_js::Buffer::new();
    let shortest = buffer.format_finite(double);
    if decimal.is_integer() && Decimal::of(shortest) != decimal {
        return Form::Digits(decimal.integer_digits() as usize);
    }
    Form::Shortest { verbatim: shortest == literal }
}

/// Whether a literal with a fraction is surely canonical, seen without computing its double.
///
/// Up to fifteen significant digits no two decimals share a double, so the literal is its shortest.
fn is_surely_shortest(literal: &str) -> bool {
    let unsigned = literal.strip_prefix('-').unwrap_or(literal).as_bytes();
    // Below 0.000001 the shortest text has an exponent.
    if unsigned.len() > DOUBLE_DIGITS + ".".len() || unsigned.starts_with(b"0.000000") {
        return false;
    }
    let exponent = unsigned.iter().any(|byte| matches!(byte, b'e' | b'E'));
    !exponent && !unsigned.ends_with(b"0")
}

fn double(literal: &str) -> f64 {
    literal.parse().expect("a JSON number is a number")
}

/// Appends the canonical text of an accepted literal.
pub(super) fn rewrite(literal: &str, out: &mut String) {
    match form(literal) {
        Form::Digits(_) => Decimal::of(literal).write_integer(out),
        Form::Shortest { .. } => {
            out.push_str(ryu_js::Buffer::new().format_finite(double(literal)));
        }
        Form::OutOfRange | Form::FractionLost => unreachable!("the reader refused this number"),
    }
}

/// Whether a literal's value is an integer, however it is written.
pub(super) fn is_integer(literal: &str) -> bool {
    Decimal::of(literal).is_integer()
}

/// The exact digits of a literal whose value is an integer of at most `digits_max` digits.
pub(super) fn integer(literal: &str, digits_max: usize) -> Option<String> {
    let decimal = Decimal::of(literal);
    let short = decimal.is_integer() && decimal.integer_digits() <= digits_max as i64;
    short.then(|| {
        let mut out = String::new();
        decimal.write_integer(&mut out);
        out
    })
}

/// Compares the exact values of two numbers.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    // Most numbers are short integers.
    let short = |text: &str| if text.len() <= 18 { text.parse::<i64>().ok() } else { None };
    if let (Some(one), Some(other)) = (short(one), short(other)) {
        return one.cmp(&other);
    }
    let (one, other) = (Decimal::of(one), Decimal::of(other));
    match (one.negative, other.negative) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => one.size(&other),
        (true, true) => other.size(&one),
    }
}

/// The exact value of a literal: its significant digits times a power of ten.
struct Decimal<'l> {
    negative: bool,
    /// The digits before and after the point, which may begin and end with zeros.
    digits: [&'l [u8]; 2],
    /// The zeros that they begin with.
    zeros: usize,
    /// How many digits are between the first and last that are not zero; none for zero itself.
    significant: usize,
    /// The power of ten of the last significant digit.
    exponent: i64,
}

impl<'l> Decimal<'l> {
    fn of(literal: &'l str) -> Self {
        let (mantissa, exponent) = match literal.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, saturating_exponent(exponent)),
            None => (literal, 0),
        };
        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = [whole.as_bytes(), fraction.as_bytes()];
        let zero = |byte: &&u8| **byte == b'0';
        let zeros = digits.iter().copied().flatten().take_while(zero).count();
        let total = whole.len() + fraction.len();
        let zeros_last = digits.iter().copied().flatten().rev().take_while(zero).count();
        Self {
            negative: mantissa.len() > unsigned.len() && zeros < total,
            digits,
            zeros,
            significant: total.saturating_sub(zeros + zeros_last),
            exponent: exponent - fraction.len() as i64 + zeros_last as i64,
        }
    }

    fn is_integer(&self) -> bool {
        self.exponent >= 0 || self.significant == 0
    }

    /// How many digits the integer part has; zero or fewer if there is none.
    fn integer_digits(&self) -> i64 {
        if self.significant == 0 { 0 } else { self.significant as i64 + self.exponent }
    }

    fn significant_digits(&self) -> impl Iterator<Item = u8> {
        self.digits.into_iter().flatten().copied().skip(self.zeros).take(self.significant)
    }

    /// Compares the values without their signs.
    fn size(&self, other: &Self) -> Ordering {
        match (self.significant, other.significant) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            // The digits end with none that is 0, so a longer text of the same begin is more.
            (_, _) => (self.integer_digits().cmp(&other.integer_digits()))
                .then_with(|| self.significant_digits().cmp(other.significant_digits())),
        }
    }

    fn write_integer(&self, out: &mut String) {
        if self.significant == 0 {
            return out.push('0');
        }
        if self.negative {
            out.push('-');
        }
        out.extend(self.significant_digits().map(char::from));
        out.extend((0..self.exponent).map(|_| '0'));
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negative == other.negative
            && self.exponent == other.exponent
            && self.significant_digits().eq(other.significant_digits())
    }
}

/// Reads an exponent, stopping where it is larger than any text is long.
fn saturating_exponent(text: &str) -> i64 {
    const ENOUGH: i64 = 1 << 40;
    let digits = text.trim_start_matches(['+', '-']);
    let size =
        digits.bytes().fold(0, |size: i64, byte| (size * 10 + i64::from(byte - b'0')).min(ENOUGH));
    if text.starts_with('-') { -size } else { size }
}
