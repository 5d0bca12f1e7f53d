// SPDX-License-Identifier: Apache-2.0
//! Labels of threads for profilers: custom labels ABI v1, on Linux, x86-64 and aarch64.
//!
//! ```no_run
//! let labels = labels::Labels::new(&[("tenant", "acme"), ("route", "/browse")]);
//! labels.enter(|| println!("what is labelled"));
//! ```
//!
//! The variable that profilers look for is thread-local and has a name in the symbol table. Stable
//! Rust has no such variables, so a few lines of assembly define it and return its address; no
//! C compiler is needed. The program exports both symbols: see `build.rs`.
//!
//! A future is polled in turns with others, on any thread: [`Labelled`] publishes its labels
//! while it is polled, and only then.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{compiler_fence, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};

/// The version of the ABI, which profilers read by its name.
#[used]
#[no_mangle]
pub static custom_labels_abi_version: u32 = 1;

// A pointer for each thread, NULL at first, which is reached by a TLS descriptor: the linker
// makes it an offset where the variable is in the program. The function keeps to the calling
// convention of C; descriptors keep all registers but the first.
std::arch::global_asm!(
    ".section .tbss.custom_labels_current_set,\"awT\",@nobits",
    ".globl custom_labels_current_set",
    ".type custom_labels_current_set,@object",
    ".size custom_labels_current_set,8",
    ".balign 8",
    "custom_labels_current_set:",
    ".zero 8",
    ".section .text.labels_current_set_address,\"ax\",@progbits",
    ".hidden labels_current_set_address",
    ".globl labels_current_set_address",
    ".type labels_current_set_address,@function",
    "labels_current_set_address:",
);
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    "sub $8, %rsp",
    "lea custom_labels_current_set@TLSDESC(%rip), %rax",
    "call *custom_labels_current_set@TLSCALL(%rax)",
    "add %fs:0, %rax",
    "add $8, %rsp",
    "ret",
    ".size labels_current_set_address,.-labels_current_set_address",
    ".text",
    options(att_syntax)
);
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    "stp x29, x30, [sp, #-16]!",
    "adrp x0, :tlsdesc:custom_labels_current_set",
    "ldr x1, [x0, :tlsdesc_lo12:custom_labels_current_set]",
    "add x0, x0, :tlsdesc_lo12:custom_labels_current_set",
    ".tlsdesccall custom_labels_current_set",
    "blr x1",
    "mrs x1, tpidr_el0",
    "add x0, x0, x1",
    "ldp x29, x30, [sp], #16",
    "ret",
    ".size labels_current_set_address,.-labels_current_set_address",
    ".text",
);

extern "C" {
    fn labels_current_set_address() -> *mut *const Set;
}

/// custom_labels_string_t: a buffer that is not NULL, not even of an empty value.
#[repr(C)]
struct Text {
    len: usize,
    buf: *const u8,
}

/// custom_labels_label_t.
#[repr(C)]
struct Label {
    key: Text,
    value: Text,
}

/// custom_labels_labelset_t.
#[repr(C)]
struct Set {
    storage: *const Label,
    count: usize,
    capacity: usize,
}

/// What a set points at. It does not change, and is not freed while it is published.
struct Storage {
    set: Set,
    _labels: Box<[Label]>,
    texts: Vec<(Box<str>, Box<str>)>,
}

// Its pointers lead into what it owns, which does not change.
unsafe impl Send for Storage {}
unsafe impl Sync for Storage {}

/// A set of labels, which threads can publish; clones share it.
#[derive(Clone)]
pub struct Labels(Arc<Storage>);

impl Labels {
    /// Makes a set of keys and values. Of two labels with one key the first counts.
    pub fn new(pairs: &[(&str, &str)]) -> Self {
        let texts = pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect();
        Self::of(texts)
    }

    /// Makes a set with further labels, which come before those that are there.
    pub fn with(&self, pairs: &[(&str, &str)]) -> Self {
        let added = pairs.iter().map(|&(k, v)| (k.into(), v.into()));
        Self::of(added.chain(self.0.texts.iter().cloned()).collect())
    }

    fn of(texts: Vec<(Box<str>, Box<str>)>) -> Self {
        let text = |s: &str| Text {
            len: s.len(),
            buf: s.as_ptr(),
        };
        let labels: Box<[Label]> = texts
            .iter()
            .map(|(k, v)| Label {
                key: text(k),
                value: text(v),
            })
            .collect();
        let set = Set {
            storage: labels.as_ptr(),
            count: labels.len(),
            capacity: labels.len(),
        };
        Labels(Arc::new(Storage {
            set,
            _labels: labels,
            texts,
        }))
    }

    /// Publishes the labels for this thread while f runs; those before are back at its end,
    /// also if f panics.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(*const Set);
        impl Drop for Restore {
            fn drop(&mut self) {
                swap(self.0);
            }
        }
        let _restore = Restore(swap(&self.0.set));
        f()
    }
}

/// Publishes a set for this thread, and returns the one before. A thread is read between two of
/// its instructions: the compiler has to keep the order, processors do not matter.
fn swap(set: *const Set) -> *const Set {
    unsafe {
        let current = labels_current_set_address();
        let before = ptr::read_volatile(current);
        compiler_fence(Ordering::SeqCst);
        ptr::write_volatile(current, set);
        compiler_fence(Ordering::SeqCst);
        before
    }
}

/// A future that publishes labels each time that it is polled.
pub struct Labelled<F> {
    labels: Labels,
    future: Pin<Box<F>>,
}

impl<F: Future> Labelled<F> {
    /// Labels a future.
    pub fn new(labels: Labels, future: F) -> Self {
        Labelled {
            labels,
            future: Box::pin(future),
        }
    }
}

impl<F: Future> Future for Labelled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let labels = self.labels.clone();
        labels.enter(|| self.future.as_mut().poll(context))
    }
}
