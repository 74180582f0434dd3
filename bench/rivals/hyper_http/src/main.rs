// hyper on tokio, as its own "hello" example has it: a task for each connection.
//
//   hyper_http --listen 127.0.0.1:0 --workers 2
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use tokio::net::TcpListener;

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = Full::new(Bytes::from_static(b"Hello, World!"));
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert("content-type", hyper::header::HeaderValue::from_static("text/plain"));
    Ok(response)
}

fn option(name: &str, otherwise: &str) -> String {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).unwrap_or(otherwise.to_string())
}

async fn serve(listen: String) -> std::io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}

fn main() -> std::io::Result<()> {
    let workers = option("--workers", "1").parse().expect("a number of workers");
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?
        .block_on(async { tokio::spawn(serve(option("--listen", "127.0.0.1:0"))).await? })
}
