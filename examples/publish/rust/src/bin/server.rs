// SPDX-License-Identifier: Apache-2.0
//! An HTTP server with a thread for each connection, which labels what it does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const MAX_REQUEST: u64 = 4096;

/// What a request does.
fn work() {
    let end = Instant::now() + Duration::from_millis(10);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn serve(mut client: TcpStream) -> std::io::Result<()> {
    let (mut route, mut tenant) = (String::new(), "unknown".to_string());
    for line in BufReader::new(client.try_clone()?.take(MAX_REQUEST)).lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if route.is_empty() {
            let target = line.split(' ').nth(1).unwrap_or("/");
            route = target.split('?').next().unwrap_or("/").to_string();
        } else if let Some((name, value)) = line.split_once(':') {
            if name.eq_ignore_ascii_case("X-Tenant") {
                tenant = value.trim().to_string();
            }
        }
    }
    labels::Labels::new(&[("tenant", &tenant), ("route", &route)]).enter(work);
    client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ndone\n")
}

fn main() -> std::io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .and_then(|p| p.parse().ok())
        .unwrap_or(8080);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("listening on {}", listener.local_addr()?.port());
    for client in listener.incoming() {
        let client = client?;
        std::thread::spawn(move || serve(client));
    }
    Ok(())
}
