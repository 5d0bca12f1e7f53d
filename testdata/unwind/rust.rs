// SPDX-License-Identifier: Apache-2.0
//! Generic functions, closures, trait objects, callbacks of the standard library, and
//! panics: rust [SECONDS]
use std::ffi::{c_char, c_void, CString};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// As large as struct truth, which begins with the set.
#[repr(C, align(16))]
struct Truth([u8; 2048]);

extern "C" {
    fn truth_begin(root: *const c_char);
    fn truth_describe(truth: *mut Truth, name: *const c_char, format: *const c_char, ...);
    fn truth_publish_set(set: *const c_void);
    fn run_sleep_once();
}

fn describe(truth: &mut Truth, name: &str, words: &str) {
    let (name, words) = (CString::new(name).unwrap(), CString::new(words).unwrap());
    // The set refers to the name as long as the program lives.
    unsafe { truth_describe(truth, name.into_raw(), c"%s".as_ptr(), words.as_ptr()) }
}

fn publish(truth: Option<&Truth>) {
    let set = truth.map_or(std::ptr::null(), |t| t as *const Truth as *const c_void);
    unsafe { truth_publish_set(set) }
}

#[inline(always)]
fn work(count: u64) -> u64 {
    (0..count).fold(0, |sum, n| black_box(sum ^ n))
}

#[inline(never)]
fn w_spin(t: &Truth) -> u64 {
    publish(Some(t));
    let n = work(200_000);
    publish(None);
    n
}

trait Step {
    fn w_step(&self, path: &[u8], t: &Truth) -> u64;
}

struct Small(u64);
struct Large([u64; 500]);

impl Step for Small {
    #[inline(never)]
    fn w_step(&self, path: &[u8], t: &Truth) -> u64 {
        black_box(w_next(path, t) + self.0)
    }
}

impl Step for Large {
    #[inline(never)]
    fn w_step(&self, path: &[u8], t: &Truth) -> u64 {
        let copy = black_box(self.0);
        black_box(w_next(path, t) + copy[path.len()])
    }
}

#[inline(never)]
fn w_next(path: &[u8], t: &Truth) -> u64 {
    let step: &dyn Step = match path.first() {
        None => return black_box(w_spin(t) + 1),
        Some(b'S') => &Small(1),
        Some(_) => &Large([2; 500]),
    };
    black_box(step.w_step(&path[1..], t) + 1)
}

#[inline(never)]
fn w_deep(t: &mut Truth, seed: usize) {
    let path: Vec<u8> = (0..40).map(|n| if seed >> (n % 13) & 1 == 0 { b'S' } else { b'L' }).collect();
    let words = "w_next;w_step;".repeat(path.len());
    describe(t, "deep", &format!("w_turns;w_deep;{words}w_next;w_spin;?1"));
    black_box(w_next(&path, t));
}

#[inline(never)]
fn w_compare(a: &u64, b: &u64, t: &Truth) -> std::cmp::Ordering {
    publish(Some(t));
    work(2000);
    publish(None);
    black_box(a.cmp(b))
}

#[inline(never)]
fn w_sort(t: &mut Truth) {
    describe(t, "sort", "w_turns;w_sort;~24;w_compare;?1");
    let mut numbers: Vec<u64> = (0..200).map(|n| n * 7919 % 200).collect();
    numbers.sort_by(|a, b| w_compare(a, b, t));
    black_box(numbers);
}

struct Guard(u64);

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        self.0 = work(100);
    }
}

#[inline(never)]
fn w_down(depth: u64) -> u64 {
    let guard = Guard(depth);
    if black_box(depth) == 0 {
        std::panic::panic_any(depth);
    }
    let n = w_down(depth - 1) + guard.0;
    black_box(n)
}

#[inline(never)]
fn w_panic(t: &mut Truth) {
    describe(t, "panic", &format!("w_turns;w_panic;?8;{}?24", "+w_down;".repeat(21)));
    publish(Some(t));
    for _ in 0..50 {
        let _ = black_box(std::panic::catch_unwind(|| w_down(20)));
    }
    publish(None);
}

#[inline(never)]
fn w_turns(end: Instant) {
    let mut t = Box::new(Truth([0; 2048]));
    let mut seed = 1;
    while Instant::now() < end {
        seed = seed * 5 + 1 & 0xffff;
        for _ in 0..20 {
            w_deep(&mut t, seed);
        }
        w_sort(&mut t);
        w_panic(&mut t);
    }
}

#[inline(never)]
fn w_thread(end: Instant) {
    unsafe {
        truth_begin(c"w_thread".as_ptr());
        run_sleep_once();
    }
    w_turns(end);
    black_box(());
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).map_or(10.0, |s| s.parse().unwrap());
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    std::panic::set_hook(Box::new(|_| ()));
    println!("ready {}", std::process::id());
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(move || w_thread(end))).collect();
    for t in threads {
        t.join().unwrap();
    }
}
