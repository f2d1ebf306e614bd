//! Amounts in rights: of money, and of agents.

use std::borrow::Cow;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::error::ScopeError;

const MILLION: u64 = 1_000_000;
/// Digits after the point of an amount.
const FRACTION_DIGITS_MAX: usize = 6;

/// An exact amount of money that is not zero, in millionths.
///
/// ```
/// use tooltape::scope::Amount;
///
/// let amount: Amount = "2.50".parse().unwrap();
/// assert_eq!(amount.millionths().get(), 2_500_000);
/// assert_eq!(amount.to_string(), "2.5");
/// assert!("0.0000001".parse::<Amount>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Amount(NonZeroU64);

impl Amount {
    /// So many millionths.
    pub fn of_millionths(millionths: NonZeroU64) -> Amount {
        Amount(millionths)
    }

    /// How many millionths it is.
    pub fn millionths(self) -> NonZeroU64 {
        self.0
    }
}

impl FromStr for Amount {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Amount, ScopeError> {
        let expected = "more than 0 and at most 18446744073709, as `5` or `0.25`, \
                        with at most 6 digits after the point";
        let refused = || ScopeError::form("amount", text, expected);
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(refused()),
            Some(parts) => parts,
            None => (text, ""),
        };
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_padded = whole.len() > 1 && whole.starts_with('0');
        let is_fine = fraction.len() <= FRACTION_DIGITS_MAX && are_digits(fraction);
        if whole.is_empty() || !are_digits(whole) || is_padded || !is_fine {
            return Err(refused());
        }
        let fraction = format!("{fraction:0<6}").parse().unwrap_or(0);
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(MILLION));
        let millionths = whole.and_then(|whole| whole.checked_add(fraction));
        millionths.and_then(NonZeroU64::new).map(Amount).ok_or_else(refused)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0.get() / MILLION, self.0.get() % MILLION);
        match format!("{fraction:06}").trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            digits => write!(f, "{whole}.{digits}"),
        }
    }
}

/// A currency by its three letters, in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

impl FromStr for Currency {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Currency, ScopeError> {
        match <[u8; 3]>::try_from(text.as_bytes()) {
            Ok(letters) if letters.iter().all(u8::is_ascii_lowercase) => Ok(Currency(letters)),
            Ok(_) | Err(_) => {
                Err(ScopeError::form("currency", text, "three lower-case letters such as `usd`"))
            }
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// So much money at most; written `currency:amount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpendScope {
    /// Of what.
    pub currency: Currency,
    /// How much.
    pub most: Amount,
}

impl SpendScope {
    /// Whether `other` is at most this, of the same currency.
    pub fn covers(&self, other: &SpendScope) -> bool {
        self.currency == other.currency && self.most >= other.most
    }

    /// Every amount includes the smaller ones, so any two of a currency do.
    pub(super) fn overlaps(&self, other: &SpendScope) -> bool {
        self.currency == other.currency
    }
}

impl FromStr for SpendScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<SpendScope, ScopeError> {
        let (currency, most) = text.split_once(':').unwrap_or((text, ""));
        Ok(SpendScope { currency: currency.parse()?, most: most.parse()? })
    }
}

impl<'de> Deserialize<'de> for SpendScope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SpendScope, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for SpendScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.currency, self.most)
    }
}

/// So many agents at most, and so many levels of them; written `count/depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpawnScope {
    /// How many.
    pub count: NonZeroU32,
    /// How deep.
    pub depth: NonZeroU32,
}

impl SpawnScope {
    /// Whether `other` has no more agents and no more levels.
    pub fn covers(&self, other: &SpawnScope) -> bool {
        self.count >= other.count && self.depth >= other.depth
    }

    pub(super) fn meet(&self, other: &SpawnScope) -> SpawnScope {
        let (count, depth) = (self.count.min(other.count), self.depth.min(other.depth));
        SpawnScope { count, depth }
    }
}

impl FromStr for SpawnScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<SpawnScope, ScopeError> {
        let number = |text: &str| {
            let number = text.parse::<NonZeroU32>().ok();
            number.filter(|number| number.to_string() == text)
        };
        let scope = text.split_once('/').and_then(|(count, depth)| {
            Some(SpawnScope { count: number(count)?, depth: number(depth)? })
        });
        scope.ok_or_else(|| ScopeError::form("count", text, "`count/depth`, each 1 to 4294967295"))
    }
}

impl fmt::Display for SpawnScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.depth)
    }
}
