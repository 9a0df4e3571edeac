//! Real servers as processes.

use std::net::SocketAddr;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::install;
use crate::support::{free_port, until};

/// A server as a process, with its children.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    process: Child,
    _files: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = self.process.id().and_then(|id| Pid::from_raw(id.try_into().unwrap()));
        if let Some(pid) = pid {
            let _ended_before = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Server {
    /// uWSGI's HTTP router, which closes after each answer and does not say so.
    pub async fn uwsgi() -> Self {
        Self::uwsgi_with(|port| format!("--http 127.0.0.1:{port}")).await
    }

    /// uWSGI without its router: a worker speaks HTTP itself.
    pub async fn uwsgi_worker() -> Self {
        Self::uwsgi_with(|port| format!("--http-socket 127.0.0.1:{port}")).await
    }

    async fn uwsgi_with(listen: impl Fn(u16) -> String) -> Self {
        let run = |port| {
            let listen = listen(port);
            format!(
                "bin/uwsgi {listen} --module receiver:wsgi --master --processes 2 --need-app \
                 --disable-logging --buffer-size 16384"
            )
        };
        Self::python("uwsgi", run).await
    }

    /// uvicorn, with further arguments.
    pub async fn uvicorn(more: &str) -> Self {
        let run = |port| format!("-m uvicorn receiver:asgi --port {port} --log-level error {more}");
        Self::python("uvicorn", run).await
    }

    pub async fn hypercorn() -> Self {
        let run = |port| format!("-m hypercorn receiver:asgi --bind 127.0.0.1:{port}");
        Self::python("hypercorn", run).await
    }

    /// gunicorn, with further arguments.
    pub async fn gunicorn(more: &str) -> Self {
        let run = |port| {
            format!("-m gunicorn receiver:wsgi --bind 127.0.0.1:{port} --log-level error {more}")
        };
        Self::python("gunicorn", run).await
    }

    pub async fn express() -> Self {
        let mut node = Command::new("node");
        let receiver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/upstreams/receiver.js");
        let port = free_port();
        node.arg(receiver)
            .arg(port.to_string())
            .env("NODE_PATH", install::node().join("node_modules"));
        Self::start(node, port, TempDir::new().unwrap()).await
    }

    pub async fn nginx() -> Self {
        let port = free_port();
        let server =
            format!("server {{ listen 127.0.0.1:{port}; location / {{ return 200 ok; }} }}");
        Self::nginx_with(port, &server).await
    }

    /// nginx with these directives in its block `http`, one of which has it listen on this port.
    pub async fn nginx_with(port: u16, http: &str) -> Self {
        let files = TempDir::new().unwrap();
        let conf = format!(
            "daemon off; error_log stderr crit; pid nginx.pid; worker_processes 1;\n\
             events {{ }}\nhttp {{ access_log off; client_body_temp_path body;\n\
             proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;\n\
             scgi_temp_path scgi;\n{http}\n}}\n"
        );
        std::fs::write(files.path().join("nginx.conf"), conf).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut nginx = Command::new("nginx");
        // Debian keeps it where only root looks.
        nginx.env("PATH", format!("{path}:/usr/sbin")).arg("-p").arg(files.path());
        nginx.args(["-c", "nginx.conf", "-e", "stderr"]);
        Self::start(nginx, port, files).await
    }

    async fn python(name: &str, run: impl Fn(u16) -> String) -> Self {
        let port = free_port();
        let packages = install::python();
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/upstreams");
        let mut python = Command::new("python3");
        python
            .args(run(port).split_whitespace())
            .current_dir(packages)
            .env("PYTHONPATH", format!("{}:{sources}", packages.display()))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let files = TempDir::with_prefix(name).unwrap();
        Self::start(python, port, files).await
    }

    async fn start(mut command: Command, port: u16, files: TempDir) -> Self {
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.kill_on_drop(true);
        let process = command.spawn().expect("the server is installed");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let listens = async || TcpStream::connect(address).await.is_ok();
        until(&format!("it listens: {command:?}"), listens).await;
        Self { address, process, _files: files }
    }
}
