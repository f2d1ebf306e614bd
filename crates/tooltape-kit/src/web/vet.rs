//! Which addresses are those of the public network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tooltape::scope::Host;

/// Names under which clouds tell a machine its own keys.
const METADATA_NAMES: [&str; 8] = [
    "metadata",
    "instance-data",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "instance-data.ec2.internal",
    "rancher-metadata",
];

/// Addresses under which they do so, beside all link-local ones.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(169, 254, 169, 254),
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Networks of IPv4 that are not public: the network, its bits, and what it is.
const NETWORKS_V4: [(Ipv4Addr, u32, Kind); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, Kind::Reserved),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Kind::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Kind::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Kind::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Kind::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Kind::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Kind::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Kind::Reserved),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Kind::Translated),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Kind::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Kind::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Kind::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Kind::Reserved),
    (Ipv4Addr::new(192, 52, 193, 0), 24, Kind::Translated),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Kind::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Kind::Reserved),
];

/// The only networks of IPv6 that are public, and what is not in it.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const NETWORKS_V6: [(Ipv6Addr, u32, Kind); 14] = [
    (Ipv6Addr::LOCALHOST, 128, Kind::Loopback),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, Kind::Translated),
    (Ipv6Addr::UNSPECIFIED, 96, Kind::Translated),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, Kind::Translated),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, Kind::Translated),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Kind::Translated),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Kind::Reserved),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Kind::Reserved),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, Kind::Translated),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Kind::Reserved),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Kind::Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Kind::LinkLocal),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Kind::Private),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Kind::Multicast),
];

/// What an address is that is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Loopback,
    Private,
    LinkLocal,
    Multicast,
    /// It stands for an IPv4 address, which may be any.
    Translated,
    Reserved,
    Metadata,
}

impl Kind {
    /// Whether a host may let tools ask it, by naming it.
    pub(super) fn may_be_named(self) -> bool {
        match self {
            Kind::Loopback | Kind::Private => true,
            Kind::LinkLocal
            | Kind::Multicast
            | Kind::Translated
            | Kind::Reserved
            | Kind::Metadata => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Loopback => "this machine",
            Kind::Private => "a private network",
            Kind::LinkLocal => "the local link",
            Kind::Multicast => "a group of machines",
            Kind::Translated => "another address in disguise",
            Kind::Reserved => "reserved",
            Kind::Metadata => "the metadata service of a cloud",
        })
    }
}

/// What an address is; nothing, where it is public.
pub(super) fn kind(address: IpAddr) -> Option<Kind> {
    match address {
        IpAddr::V4(address) if METADATA_V4.contains(&address) => Some(Kind::Metadata),
        IpAddr::V6(address) if METADATA_V6.contains(&address) => Some(Kind::Metadata),
        IpAddr::V4(address) => {
            let is_in = |network: Ipv4Addr, bits: u32| {
                (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits
            };
            let found = NETWORKS_V4.iter().find(|(network, bits, _)| is_in(*network, *bits));
            found.map(|(_, _, kind)| *kind)
        }
        IpAddr::V6(address) => {
            let is_in = |network: Ipv6Addr, bits: u32| {
                (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits
            };
            let found = NETWORKS_V6.iter().find(|(network, bits, _)| is_in(*network, *bits));
            let is_public = is_in(PUBLIC_V6.0, PUBLIC_V6.1);
            found.map(|(_, _, kind)| *kind).or((!is_public).then_some(Kind::Reserved))
        }
    }
}

/// Whether a name is one under which clouds tell a machine its own keys.
pub(super) fn is_metadata(host: &Host) -> bool {
    let is_below = |name: &str, known: &str| {
        name.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    host.name().is_some_and(|name| METADATA_NAMES.iter().any(|known| is_below(name, known)))
}
