//! One rule of `tooltape.toml`, read and tried on its examples.

use tooltape::rule::{Argument, Flaw, Literal, Mark, Number, Part, Says, Side, Test, Walls};
use tooltape::scope::Hosts;
use tooltape::{Access, Canon, Enforced, Label, Registered, Rule, Toolbox};

use crate::arguments::can_have;
use crate::config::{
    AccessWord, Condition, ConditionTable, EnforcedWord, ExampleTable, Found, OneOrMore, Rank,
    RuleTable, Scalar, VerdictWord,
};
use crate::report::{Problem, Result};

/// Reads a rule. One that could never match is refused at its place.
pub(super) fn read(found: &Found<'_, &RuleTable>, toolbox: &Toolbox) -> Result<Rule> {
    let table = found.value;
    let mut rule = Rule::new(found.rule_name(), says(table.verdict));
    rule.side = if found.layer.rank() == Rank::User { Side::User } else { Side::Project };
    rule.message = table.message.clone();
    rule.tool = table.tool.clone();
    rule.access = table.access.map(access);
    let effects = table.effect.as_ref().map_or(&[][..], OneOrMore::as_slice);
    rule.effects = effects.to_vec();
    rule.walls = walls(found)?;
    let marks = table.label.as_ref().map_or(&[][..], OneOrMore::as_slice);
    rule.marks = marks.to_vec();
    rule.hosts = hosts(found, "host", table.host.as_ref())?;
    for (name, condition) in table.arguments.iter().flatten() {
        read_argument(found, &mut rule, name, condition)?;
    }
    if table.effect.is_some() && effects.is_empty() {
        return Err(found.problem(Some("effect"), "found an empty list, expected an effect"));
    }
    if table.label.is_some() && marks.is_empty() {
        return Err(found.problem(Some("label"), "found an empty list, expected a label"));
    }
    check_tool(found, &rule, toolbox)?;
    for (argument, _) in &rule.arguments {
        check_argument(found, toolbox, argument)?;
    }
    if let Some(flaw) = rule.flaw() {
        return Err(flawed(found, &flaw));
    }
    try_examples(found, &rule, toolbox)?;
    Ok(rule)
}

/// The problem that a rule could never match.
fn flawed(found: &Found<'_, &RuleTable>, Flaw { part, why, .. }: &Flaw) -> Box<Problem> {
    let table = found.value;
    let part = match part {
        Part::Access => "access".to_owned(),
        Part::Effects => "effect".to_owned(),
        Part::Walls if table.enforced_by.is_some() => "enforced_by".to_owned(),
        Part::Walls => "enforced_below".to_owned(),
        Part::Marks => "label".to_owned(),
        Part::Hosts => "host".to_owned(),
        Part::Argument(argument) => format!("where.{argument}"),
        _ => "verdict".to_owned(),
    };
    found.problem(Some(&part), why.as_str())
}

/// A mistyped tool, or one that is nothing like the rule says, must not leave a rule that never
/// matches. A user's rules are for all programs, and not every program has every tool.
fn check_tool(found: &Found<'_, &RuleTable>, rule: &Rule, toolbox: &Toolbox) -> Result {
    let Some(name) = &rule.tool else { return Ok(()) };
    match toolbox.get(name) {
        Some(tool) => match rule.flaw_for(tool) {
            None => Ok(()),
            Some(flaw) => Err(flawed(found, &flaw)),
        },
        None if found.layer.rank() == Rank::User => Ok(()),
        None => {
            let why = format!("there is no tool named `{name}`, so this rule would never match");
            Err(found.problem(Some("tool"), why))
        }
    }
}

/// A mistyped argument must not leave a rule that never matches.
fn check_argument(found: &Found<'_, &RuleTable>, toolbox: &Toolbox, argument: &Argument) -> Result {
    let name = argument.name();
    let is_known = |tool: &Registered| can_have(&tool.spec().input, name);
    let (is_known, whose) = match &found.value.tool {
        Some(tool) => {
            (toolbox.get(tool).is_none_or(|tool| is_known(tool)), format!("`{tool}` has"))
        }
        // A user's rules are for all programs, and another one may have such a tool.
        None if found.layer.rank() == Rank::User => return Ok(()),
        None => (toolbox.tools().any(|tool| is_known(tool)), "some tool has".to_owned()),
    };
    let why = || format!("found `{name}`, expected an argument that {whose}");
    if is_known { Ok(()) } else { Err(found.stray(&format!("where.{argument}"), why())) }
}

fn read_argument(
    found: &Found<'_, &RuleTable>,
    rule: &mut Rule,
    name: &str,
    condition: &Condition,
) -> Result {
    let part = format!("where.{name}");
    let argument: Argument = name.parse().map_err(|err| stray(found, &part, &err))?;
    let mut add = |test: Test| rule.arguments.push((argument.clone(), test));
    let glob = |part: &str, glob: &str| {
        glob.parse().map(Test::Glob).map_err(|err| wrong(found, part, &err))
    };
    let table = match condition {
        Condition::Glob(text) => {
            add(glob(&part, text)?);
            return Ok(());
        }
        Condition::All(table) => table,
    };
    let of = |key: &str| format!("{part}.{key}");
    let ConditionTable { equals, one_of, at_least, at_most, longer_than, shorter_than, .. } = table;
    let literal = |key: &str, scalar: &Scalar| literal(found, &of(key), scalar);
    let number = |key: &str, scalar: &Scalar| match literal(key, scalar)? {
        Literal::Number(number) => Ok(number),
        other => Err(wrong(found, &of(key), &format!("found {other}, expected a number"))),
    };
    let texts = [("glob", &table.glob)];
    for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
        add(glob(&of(key), text)?);
    }
    if let Some(scalar) = equals {
        add(Test::OneOf(vec![literal("equals", scalar)?]));
    }
    if let Some(scalars) = one_of {
        let literals = scalars.iter().map(|scalar| literal("one_of", scalar));
        add(Test::OneOf(literals.collect::<Result<_>>()?));
    }
    if let Some(scalar) = at_least {
        add(Test::AtLeast(number("at_least", scalar)?));
    }
    if let Some(scalar) = at_most {
        add(Test::AtMost(number("at_most", scalar)?));
    }
    longer_than.iter().for_each(|chars| add(Test::LongerThan(*chars)));
    shorter_than.iter().for_each(|chars| add(Test::ShorterThan(*chars)));
    if table.host.is_some() {
        add(Test::Host(hosts(found, &of("host"), table.host.as_ref())?));
    }
    match rule.arguments.iter().any(|(it, _)| *it == argument) {
        true => Ok(()),
        false => Err(stray(found, &part, &"found an empty table, expected what it must be like")),
    }
}

/// A value, exactly.
fn literal(found: &Found<'_, &RuleTable>, part: &str, scalar: &Scalar) -> Result<Literal> {
    /// From here on a double may be another number than the one that was written.
    const EXACT_END: f64 = 9_007_199_254_740_992.0;
    Ok(match scalar {
        Scalar::Bool(truth) => Literal::Bool(*truth),
        Scalar::Integer(number) => Literal::Number(Number::from(*number)),
        Scalar::Text(text) => Literal::Text(text.clone()),
        Scalar::Float(number) if number.abs() < EXACT_END => {
            let number = serde_json::Value::from(*number).to_string();
            Literal::Number(number.parse().map_err(|err| wrong(found, part, &err))?)
        }
        Scalar::Float(number) => {
            let why = format!("found `{number}`, expected a fraction below 2^53, or an integer");
            return Err(wrong(found, part, &why));
        }
    })
}

fn hosts(
    found: &Found<'_, &RuleTable>,
    part: &str,
    named: Option<&OneOrMore<String>>,
) -> Result<Vec<Hosts>> {
    let Some(named) = named else { return Ok(Vec::new()) };
    if named.as_slice().is_empty() {
        return Err(wrong(found, part, &"found an empty list, expected a host"));
    }
    let hosts = named.as_slice().iter().map(|text| text.parse());
    hosts.collect::<std::result::Result<_, _>>().map_err(|err| wrong(found, part, &err))
}

fn walls(found: &Found<'_, &RuleTable>) -> Result<Option<Walls>> {
    match (found.value.enforced_by, found.value.enforced_below) {
        (None, None) => Ok(None),
        (Some(word), None) => Ok(Some(Walls::AtLeast(enforced(word)))),
        (None, Some(word)) => Ok(Some(Walls::Below(enforced(word)))),
        (Some(_), Some(_)) => {
            Err(found.problem(Some("enforced_below"), "a rule has `enforced_by` or this"))
        }
    }
}

fn wrong(found: &Found<'_, &RuleTable>, part: &str, why: &dyn std::fmt::Display) -> Box<Problem> {
    found.problem(Some(part), why.to_string())
}

fn stray(found: &Found<'_, &RuleTable>, part: &str, why: &dyn std::fmt::Display) -> Box<Problem> {
    found.stray(part, why.to_string())
}

/// Tries the rule on the calls that its file names.
fn try_examples(found: &Found<'_, &RuleTable>, rule: &Rule, toolbox: &Toolbox) -> Result {
    for (at, example) in found.value.examples.iter().flatten().enumerate() {
        let ExampleTable { tool, args, label, matches } = example;
        let part = format!("examples.{at}");
        let Some(name) = tool.as_deref().or(rule.tool.as_deref()) else {
            let why = "the rule names no tool, so its examples must";
            return Err(found.problem(Some(&part), why));
        };
        let Some(tool) = toolbox.get(name) else {
            // A user's rules are for all programs, and not every program has every tool.
            if found.layer.rank() == Rank::User {
                continue;
            }
            let why = format!("there is no tool named `{name}`");
            return Err(found.problem(Some(&part), why));
        };
        let args = Canon::of(&args.clone().unwrap_or_default());
        let args = args.map_err(|err| found.problem(Some(&part), err.to_string()))?;
        let words = label.as_ref().map_or(&[][..], OneOrMore::as_slice);
        let label = words.iter().fold(Label::default(), |label, word| label.join(&labelled(*word)));
        let (does, should) = (rule.would_match(tool, &args, &label), matches.unwrap_or(true));
        if does != should {
            let word = |matches| if matches { "matches" } else { "does not match" };
            let why = format!("the rule {} it, expected that it {}", word(does), word(should));
            return Err(found.problem(Some(&part), why));
        }
    }
    Ok(())
}

fn access(word: AccessWord) -> Access {
    match word {
        AccessWord::Pure => Access::Pure,
        AccessWord::Read => Access::Read,
        AccessWord::Write => Access::Write,
    }
}

/// A label that says this, for an example.
fn labelled(mark: Mark) -> Label {
    match mark {
        Mark::Trusted => Label::default(),
        Mark::Untrusted => Label::untrusted("example"),
        Mark::Internal => Label::internal(),
        Mark::Secret => Label::secret("example"),
    }
}

fn enforced(word: EnforcedWord) -> Enforced {
    match word {
        EnforcedWord::Declaration => Enforced::Declaration,
        EnforcedWord::Host => Enforced::Host,
        EnforcedWord::Sandbox => Enforced::Sandbox,
        EnforcedWord::Wasm => Enforced::Wasm,
    }
}

fn says(word: VerdictWord) -> Says {
    match word {
        VerdictWord::Allow => Says::Allow,
        VerdictWord::Ask => Says::Ask,
        VerdictWord::Deny => Says::Deny,
    }
}
