//! Makes calls on the whole path, for a profiler to watch.

use tooltape_board::Subject;

fn main() {
    let times = std::env::args().nth(1).and_then(|times| times.parse().ok()).unwrap_or(1_000_000);
    let spent = Subject::adding_among(10).calls(times);
    eprintln!("{} ns per call", spent.as_nanos() as usize / times);
}
