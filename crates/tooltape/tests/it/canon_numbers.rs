//! Numbers: one text for one value, and never one text for two integers.

use proptest::prelude::*;
use tooltape::{Doc, Limits, Unreadable};

fn canonical(literal: &str) -> Result<String, Unreadable> {
    let canon = Doc::read(literal, &Limits::default())?.canonical();
    let again = Doc::read(canon.as_str(), &Limits::default()).expect("canonical text is accepted");
    assert!(again.is_canonical(), "{literal} became {canon}");
    Ok(canon.as_str().to_owned())
}

/// The exact value of a literal: a sign, digits without zeros at either end, a power of ten.
fn exact(literal: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let significant = digits.trim_end_matches('0');
    let exponent: i64 = exponent.parse().expect("a test's exponent fits");
    let power = exponent - fraction.len() as i64 + (digits.len() - significant.len()) as i64;
    let significant = significant.trim_start_matches('0');
    match significant {
        "" => (false, String::new(), 0),
        _ => (mantissa.starts_with('-'), significant.to_owned(), power),
    }
}

#[test]
fn each_value_has_one_text() {
    for (text, literals) in [
        ("0", &["0", "-0", "0.0", "-0.0", "0e5", "-0E-9", "0.000e+7", "1e-400", "-1e-400"][..]),
        ("1", &["1", "1.0", "1e0", "10e-1", "0.1E1", "0.001e+3", "1.00000000000000000001"]),
        ("-1500", &["-1500", "-1.5e3", "-1500.000", "-15E+2"]),
        ("0.1", &["0.1", "0.10", "1e-1", "0.1000000000000000055511151231257827"]),
        ("0.000001", &["0.000001", "1e-6", "0.0000010"]),
        ("1e-7", &["1e-7", "0.0000001", "1E-07", "0.1e-6"]),
        ("333333333.3333333", &["333333333.33333329", "3.3333333333333333e8"]),
        ("9007199254740991", &["9007199254740991", "9007199254740991.0", "9.007199254740991e15"]),
        ("9007199254740992", &["9007199254740992", "9007199254740992.0", "9.007199254740992e15"]),
        ("9007199254740993", &["9007199254740993", "9007199254740993.0", "9.007199254740993E15"]),
        ("10000000000000000", &["10000000000000000", "1e16", "10.0e15"]),
        // 2^60, whose shortest text as a double would be 1152921504606847000, another integer.
        (
            "1152921504606846976",
            &["1152921504606846976", "1152921504606846976.0", "1152921504606846976e0"],
        ),
        ("1152921504606847000", &["1152921504606847000", "1.152921504606847e18"]),
        ("100000000000000000000", &["100000000000000000000", "1e20"]),
        ("1e+21", &["1e21", "1.0E+21", "1000000000000000000000.0"]),
        ("1000000000000000000000", &["1000000000000000000000"]),
        (
            "1234567890123456789012",
            &["1234567890123456789012", "1234567890123456789012.0", "1.234567890123456789012e21"],
        ),
        ("1e+300", &["1e300", "10.000e299"]),
        ("1.7976931348623157e+308", &["1.7976931348623157e308"]),
        ("5e-324", &["5e-324", "4.9406564584124654e-324", "3e-324"]),
    ] {
        for literal in literals {
            assert_eq!(canonical(literal).as_deref(), Ok(text), "{literal}");
        }
    }
}

#[test]
fn a_number_that_no_text_is_true_to_is_refused() {
    let code = |literal: &str| canonical(literal).map_err(|unreadable| unreadable.code());
    for literal in [
        "9007199254740992.5",
        "-9007199254740993.1",
        "9007199254740991.5",
        "1234567890123456789012.5",
    ] {
        assert_eq!(code(literal), Err("fraction_lost"), "{literal}");
    }
    for literal in [
        "1e309",
        "-1.8e308",
        "1e99999999999999999999",
        "0.1e400",
        &format!("{}.5", "9".repeat(400)),
    ] {
        assert_eq!(code(literal), Err("number_out_of_range"), "{literal}");
    }
    assert_eq!(code(&format!("1{}1.0", "0".repeat(307))), Err("integer_too_long"));
    assert_eq!(code(&format!("1{}.0", "0".repeat(308))), Ok("1e+308".to_owned()));
    // Zero stays zero at any scale, and a long way of writing a small number is no reason.
    assert_eq!(code("0e99999999999999999999"), Ok("0".to_owned()));
    assert_eq!(code(&format!("0.{}1e4001", "0".repeat(4000))), Ok("1".to_owned()));
    assert_eq!(code(&format!("1{}e-4000", "0".repeat(4000))), Ok("1".to_owned()));
}

#[test]
fn neighbouring_integers_never_share_a_text() {
    // Around the powers of two and ten where doubles grow sparse, and where exponents begin.
    let mut centres: Vec<i128> = (52..90).map(|power| 1_i128 << power).collect();
    centres.extend((15..25).map(|power| 10_i128.pow(power)));
    for centre in centres {
        for sign in [1, -1] {
            let texts: Vec<String> = (centre - 40..centre + 40)
                .map(|integer| canonical(&(sign * integer).to_string()).unwrap())
                .collect();
            for (offset, text) in texts.iter().enumerate() {
                assert_eq!(text.parse(), Ok(sign * (centre - 40 + offset as i128)));
            }
        }
    }
}

proptest! {
    #[test]
    fn an_integer_keeps_its_value_however_it_is_spelled(
        negative: bool,
        digits in "[1-9][0-9]{0,40}",
        shift in 0_usize..41,
        more in 0_i64..60,
    ) {
        // Moves the point some places to the left, and makes up for it with the exponent.
        let (whole, fraction) = digits.split_at(digits.len().saturating_sub(shift).max(1));
        let exponent = fraction.len() as i64 + more;
        let sign = if negative { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        let literal = format!("{sign}{whole}{point}{fraction}e{exponent}");
        let text = canonical(&literal).unwrap();
        prop_assert_eq!(exact(&text), exact(&literal), "{}", text);
        let plain = format!("{sign}{digits}{}", "0".repeat(more as usize));
        if plain.trim_start_matches('-').len() <= 21 {
            prop_assert_eq!(&text, &plain);
        }
        prop_assert_eq!(canonical(&plain).unwrap(), plain);
    }

    #[test]
    fn a_fraction_is_its_nearest_double(whole in 0_u64..1 << 53, fraction in "[0-9]{0,25}[1-9]") {
        let literal = format!("{whole}.{fraction}");
        let double: f64 = literal.parse().unwrap();
        match canonical(&literal) {
            Ok(text) => prop_assert_eq!(text.parse(), Ok(double)),
            Err(unreadable) => {
                prop_assert_eq!(unreadable.code(), "fraction_lost");
                prop_assert!(double >= 9_007_199_254_740_992.0);
            }
        }
    }

    #[test]
    fn a_double_has_the_text_that_rfc_8785_gives_it(bits: u64) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        let expected = serde_json_canonicalizer::to_string(&double).unwrap();
        for literal in [format!("{double:e}"), format!("{double:?}"), format!("{double}.0")] {
            // With its fraction, `{double}.0` is no number; without, it has all digits and a zero.
            if literal.matches('.').count() <= 1 && literal.contains(['.', 'e']) {
                prop_assert_eq!(&canonical(&literal).unwrap(), &expected);
            }
        }
    }
}
