//! Faults of disks, for tapes to survive: what a disk did is written down, and played back broken.

mod disk;
mod image;
mod power;
mod vfs;

pub use disk::{Disk, Fault, Op};
pub use image::{Image, Mode, Replay};
pub use power::{LoopDisk, TinyDisk};
pub use vfs::{NAME, watch};
