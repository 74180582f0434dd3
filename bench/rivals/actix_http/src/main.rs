// actix-web: workers that share nothing, among which the connections are dealt out.
//
//   actix_http --listen 127.0.0.1:0 --workers 2
use actix_web::{http::header::ContentType, web, App, HttpResponse, HttpServer};

async fn answer() -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::plaintext()).body("Hello, World!")
}

fn option(name: &str, otherwise: &str) -> String {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).unwrap_or(otherwise.to_string())
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let workers = option("--workers", "1").parse().expect("a number of workers");
    let server = HttpServer::new(|| App::new().route("/", web::get().to(answer)))
        .workers(workers)
        .bind(option("--listen", "127.0.0.1:0"))?;
    println!("listening on {}", server.addrs()[0]);
    server.run().await
}
