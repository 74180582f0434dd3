// A line protocol in few lines: enough SMTP to take mail, which it prints. A fiber for each client.
//
//   mail_server 127.0.0.1:2525 & curl smtp://127.0.0.1:2525 --mail-rcpt a@b.c -T letter
#include <csignal>
#include <iostream>
#include <span>
#include <string>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/serve.hpp>
#include <weft/runtime.hpp>

constexpr std::chrono::minutes kPatience(1);  // With a client that is silent, or does not read.

// The next line, without its end; `read` keeps what has come behind it. False at the end.
bool next(weft::net::ByteStream& stream, std::string& read, std::string& line) {
  while (read.find("\r\n") == std::string::npos) {
    char part[2048];
    const auto got = stream.read_some(std::as_writable_bytes(std::span(part)), kPatience);
    if (got.error || read.size() > 4096) return false;
    read.append(part, got.value);
  }
  line = read.substr(0, read.find("\r\n"));
  read.erase(0, line.size() + 2);
  return true;
}

void talk(weft::net::ByteStream& stream) {
  const auto say = [&](const std::string& text) {
    (void)stream.write_all(std::as_bytes(std::span(text)), kPatience);
  };
  say("220 mail_server\r\n");
  std::string read, line, mail;
  for (bool in_letter = false; mail.size() < 1'000'000 && next(stream, read, line);) {
    const bool is_text = in_letter && line != ".";
    if (is_text) mail += line.substr(line.starts_with("..") ? 1 : 0) + "\n";
    if (is_text) continue;
    const auto is = [&](const char* verb) { return !in_letter && line.starts_with(verb); };
    if (is("QUIT")) return say("221 bye\r\n");
    if (in_letter) std::cout << mail << std::flush;
    if (in_letter || is("HELO") || is("RSET")) mail.clear();
    const bool names = is("MAIL") || is("RCPT");
    if (names) mail += line + "\n";
    const bool known = in_letter || is("HELO") || is("RSET") || names || is("NOOP");
    in_letter = is("DATA");
    say(in_letter ? "354 go on\r\n" : known ? "250 fine\r\n" : "502 what?\r\n");
  }
}

int main(int argc, char** argv) {
  return weft::run([&] {
    auto signals = weft::io::SignalSet::watch({SIGTERM, SIGINT});
    const auto where = weft::net::Address::parse(argc > 1 ? argv[1] : "127.0.0.1:0").value;
    auto [listener, error] = weft::net::TcpListener::listen(where);
    if (error) return 1;
    std::cout << "listening on " << listener.local_address().value.to_string() << std::endl;
    auto ending = weft::spawn([&, &open = listener] { (void)signals.value.wait(), open.close(); });
    return weft::net::serve(listener, talk) ? 1 : 0;
  });
}
