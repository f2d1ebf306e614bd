//! Nothing at all: the peers are dev-dependencies, which only the benchmarks build.
