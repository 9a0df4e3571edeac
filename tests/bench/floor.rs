//! The floor: a proxy that does nothing but pass requests on, built on the HTTP library that
//! Onceward uses. One runtime per core, and one upstream connection for each of a sender's.
//! `floor LISTEN UPSTREAM`, both with address and port; `tests/bench/run` measures it.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use std::cell::RefCell;
use std::env;
use std::net::SocketAddr;
use std::thread;

use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::task::{LocalSet, spawn_local};

fn main() {
    let addresses: Vec<SocketAddr> =
        env::args().skip(1).map(|address| address.parse().unwrap()).collect();
    let [listen, upstream] = addresses.try_into().unwrap();
    let cores = thread::available_parallelism().unwrap().get();
    let threads = (0..cores).map(|_| thread::spawn(move || serve(listen, upstream)));
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}

/// Accepts what the kernel deals to this thread.
fn serve(listen: SocketAddr, upstream: SocketAddr) {
    let socket = Socket::new(Domain::for_address(listen), Type::STREAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.bind(&listen.into()).unwrap();
    socket.listen(1024).unwrap();
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::from_std(socket.into()).unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            spawn_local(pass(stream, upstream));
        }
    });
}

/// Passes on what arrives on one connection, until either side ends it.
async fn pass(from: TcpStream, upstream: SocketAddr) {
    let to = TcpStream::connect(upstream).await.unwrap();
    from.set_nodelay(true).unwrap();
    to.set_nodelay(true).unwrap();
    let (sender, connection) = client::handshake(TokioIo::new(to)).await.unwrap();
    let driven = spawn_local(connection);
    let sender = RefCell::new(sender);
    let service = service_fn(|request| sender.borrow_mut().send_request(request));
    let _either_ended = server::Builder::new().serve_connection(TokioIo::new(from), service).await;
    driven.abort();
}
