//! A small world in which every right is the set of things that it lets one do, counted out.

use tooltape::{Right, Rights};

/// A set of things, by their numbers.
pub(crate) type Things = [u64; 4];

/// A right as its text, as the library reads it, and as what it lets one do.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) text: String,
    pub(crate) right: Right,
    pub(crate) things: Things,
}

/// Everything that can be done in the small world.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    /// By an action, at a root, on a path.
    File(&'static str, &'static str, Vec<&'static str>),
    /// By a method, to a host with its labels from the right, at a port.
    Ask(&'static str, Vec<&'static str>, u16),
    Pay(&'static str, u32),
    Spawn(u32, u32),
    /// What has no parts.
    Do(String),
}

const METHODS: [&str; 6] = ["get", "head", "post", "put", "patch", "delete"];
const HOSTS: [&[&str]; 8] = [
    &["com", "e"],
    &["com", "e", "a"],
    &["com", "e", "a", "b"],
    &["com", "ae"],
    &["e", "com"],
    &["10.0.0.1"],
    // In no right of the pool: there is always another host.
    &["com", "e", "z"],
    &["com", "e", "a", "z"],
];
const PORTS: [u16; 2] = [443, 8443];

/// Every right of the small world, and the numbers of those that may be allowed and denied.
///
/// The others are names that no right speaks of by itself, as there are more names than anybody
/// can list.
pub(crate) struct Universe {
    pub(crate) cases: Vec<Case>,
    pub(crate) pool: Vec<usize>,
}

impl Universe {
    pub(crate) fn new() -> Universe {
        let things = all_things();
        assert!(things.len() <= 64 * 4, "{} things", things.len());
        let mut cases = Vec::new();
        let mut add = |text: String, within: &dyn Fn(&Thing) -> bool| {
            let mut set = Things::default();
            let numbers = (0..things.len()).filter(|number| within(&things[*number]));
            numbers.for_each(|number| set[number / 64] |= 1 << (number % 64));
            assert_ne!(set, Things::default(), "{text} lets one do nothing");
            let right = text.parse().unwrap_or_else(|err| panic!("{err}"));
            cases.push(Case { text, right, things: set });
        };
        for thing in &things {
            match thing {
                Thing::File(action, root, path) => {
                    let rest = if path.is_empty() { ".".to_owned() } else { path.join("/") };
                    add(format!("fs:{action}:{root}{rest}"), &|it| match it {
                        Thing::File(a, r, p) => (a, r) == (action, root) && p.starts_with(path),
                        _ => false,
                    });
                }
                Thing::Ask(method, host, port) => add_asks(&mut add, method, host, *port),
                Thing::Pay(currency, amount) => {
                    add(format!("spend:{currency}:{amount}"), &|it| match it {
                        Thing::Pay(c, a) => c == currency && a <= amount,
                        _ => false,
                    });
                }
                Thing::Spawn(count, depth) => {
                    add(format!("agents:spawn:{count}/{depth}"), &|it| match it {
                        Thing::Spawn(c, d) => c <= count && d <= depth,
                        _ => false,
                    });
                }
                Thing::Do(text) => add(text.clone(), &|it| it == thing),
            }
        }
        let is_spare = |case: &Case| case.text.contains('z');
        let pool = (0..cases.len()).filter(|number| !is_spare(&cases[*number])).collect();
        Universe { cases, pool }
    }

    pub(crate) fn find(&self, text: &str) -> usize {
        self.cases.iter().position(|case| case.text == text).unwrap_or_else(|| panic!("{text}"))
    }
}

/// The rights to ask one host and all below it, by one method and, once, by any.
fn add_asks(
    add: &mut impl FnMut(String, &dyn Fn(&Thing) -> bool),
    method: &str,
    host: &[&str],
    port: u16,
) {
    let labels: Vec<&str> = host.iter().rev().copied().collect();
    let name = labels.join(".");
    let words = if method == "get" { vec![method, "any"] } else { vec![method] };
    let is_asked = |word: &str, it: &Thing, hosts: &dyn Fn(&[&str]) -> bool| match it {
        Thing::Ask(m, h, p) => (word == "any" || *m == word) && *p == port && hosts(h),
        _ => false,
    };
    for word in words {
        add(format!("net:{word}:{name}:{port}"), &|it| is_asked(word, it, &|h| h == host));
        if host == HOSTS[0] || host == HOSTS[1] {
            let below = |h: &[&str]| h.len() > host.len() && h.starts_with(host);
            add(format!("net:{word}:*.{name}:{port}"), &|it| is_asked(word, it, &below));
        }
    }
}

fn all_things() -> Vec<Thing> {
    let mut things = Vec::new();
    let names = ["a", "ab", "z"];
    let mut paths = vec![vec![]];
    paths.extend(names.map(|name| vec![name]));
    paths.extend(names.iter().flat_map(|one| names.map(|other| vec![*one, other])));
    for (action, root) in [("read", ""), ("read", "@r/"), ("write", ""), ("write", "@rr/")] {
        things.extend(paths.iter().map(|path| Thing::File(action, root, path.clone())));
    }
    for (host, port) in HOSTS.iter().flat_map(|host| PORTS.map(|port| (host, port))) {
        things.extend(METHODS.map(|method| Thing::Ask(method, host.to_vec(), port)));
    }
    for amount in 1..=3 {
        things.extend(["usd", "eur"].map(|currency| Thing::Pay(currency, amount)));
        things.extend((1..=3).map(|depth| Thing::Spawn(amount, depth)));
    }
    let hash = |digit: &str| digit.repeat(64);
    let whole = [
        "process:run:/bin/l",
        "process:run:/bin/ls",
        "process:shell:l",
        "process:shell:ls",
        "env:read:A",
        "env:read:AB",
        "secret:use:A",
        "secret:use:AB",
        "clock:read:now",
        "random:read:any",
    ];
    things.extend(whole.map(|text| Thing::Do(text.to_owned())));
    for tool in ["s/t", "s/tt", "ss/t"] {
        things.extend(["1", "2"].map(|it| Thing::Do(format!("mcp:call:{tool}@{}", hash(it)))));
    }
    things
}

pub(crate) fn is_within(one: &Things, other: &Things) -> bool {
    one.iter().zip(other).all(|(one, other)| one & !other == 0)
}

pub(crate) fn common(one: &Things, other: &Things) -> Things {
    std::array::from_fn(|index| one[index] & other[index])
}

/// What somebody is given: the numbers of the rights that are allowed, and of those denied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) allowed: Vec<usize>,
    pub(crate) denied: Vec<usize>,
}

impl Given {
    pub(crate) fn rights(&self, universe: &Universe) -> Rights {
        let rights = |numbers: &[usize]| -> Vec<Right> {
            numbers.iter().map(|number| universe.cases[*number].right.clone()).collect()
        };
        Rights::of(rights(&self.allowed)).denying(rights(&self.denied))
    }

    /// By counting: one right allows all of it, and none of it is denied.
    pub(crate) fn covers(&self, universe: &Universe, wanted: usize) -> bool {
        let things = |number: &usize| &universe.cases[*number].things;
        let wanted = things(&wanted);
        self.allowed.iter().any(|allowed| is_within(wanted, things(allowed)))
            && !self.is_denied(universe, wanted)
    }

    pub(crate) fn is_denied(&self, universe: &Universe, wanted: &Things) -> bool {
        let things = |number: &usize| &universe.cases[*number].things;
        self.denied.iter().any(|denied| common(wanted, things(denied)) != Things::default())
    }
}

/// The same numbers for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as usize % most
    }

    pub(crate) fn one_in(&mut self, most: usize) -> bool {
        self.below(most) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// How many of something a test does: what the variable says, or else the default.
pub(crate) fn wanted(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}
