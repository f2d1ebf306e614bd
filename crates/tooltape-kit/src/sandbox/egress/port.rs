//! A port of the box's own network, opened within and served from without.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The port, within.
const PORT: u16 = 3_128;

/// The address that processes are told, in the variables that programs look at.
pub(in crate::sandbox) fn variables() -> impl Iterator<Item = (String, String)> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"];
    let address = format!("http://{}:{PORT}", Ipv4Addr::LOCALHOST);
    names.into_iter().map(move |name| (name.to_owned(), address.clone()))
}

/// Opens the port within the box, and hands it out over what was handed down by this number.
#[expect(unsafe_code, reason = "a file that was handed down is known by its number alone")]
pub(in crate::sandbox) fn hand_out(number: &str) -> io::Result<()> {
    let number: RawFd = number.parse().map_err(io::Error::other)?;
    // SAFETY: the guard left this number open for us, and nobody else in this process knows it.
    let to = unsafe { OwnedFd::from_raw_fd(number) };
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    let files = [port.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(&to, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for the port; fails where the box ends before it has one.
pub(in crate::sandbox) fn receive(from: &UnixStream) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    let port = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    port.map(TcpListener::from).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
