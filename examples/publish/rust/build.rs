// SPDX-License-Identifier: Apache-2.0
//! Has the linker export what profilers look for. Only the package of a program can do that: a
//! program that uses the crate has these lines in its own build.rs.

fn main() {
    for symbol in ["custom_labels_abi_version", "custom_labels_current_set"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbol}");
    }
}
