//! Tells the sources that a model checker stands in for their locks.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(tooltape_model)");
    println!("cargo::rustc-cfg=tooltape_model");
}
