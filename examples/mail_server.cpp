// Is a small server for a line protocol: it takes mail by SMTP and prints it. Each client has a
// fiber.
//
//   mail_server 127.0.0.1:2525 & curl smtp://127.0.0.1:2525 --mail-rcpt a@b.c -T letter
#include <strings.h>

#include <iostream>
#include <span>
#include <string>
#include <weft/net/serve.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

constexpr std::chrono::minutes kPatience(1);  // For a client that neither sends nor reads.
constexpr std::size_t kLargest = 1'000'000;   // A letter, in bytes.

// Reads a line, without its end; `read` keeps later bytes. Returns false at the connection's end.
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

// Reads a letter up to its final dot; drops the bytes beyond the size limit. Returns false at the
// connection's end.
bool next_letter(weft::net::ByteStream& stream, std::string& read, std::string& letter) {
  letter.clear();
  for (std::string line; next(stream, read, line);) {
    if (line == ".") return true;
    if (letter.size() <= kLargest) letter += line.substr(line.starts_with("..") ? 1 : 0) + "\n";
  }
  return false;
}

void talk(weft::net::ByteStream& stream) {
  const auto say = [&](const std::string& text) {
    (void)stream.write_all(std::as_bytes(std::span(text)), kPatience);
  };
  say("220 mail_server\r\n");
  std::string read, line, from, to, letter;
  while (to.size() < kLargest && next(stream, read, line)) {
    const auto is = [&](const char* verb) { return ::strncasecmp(line.c_str(), verb, 4) == 0; };
    if (is("QUIT")) return say("221 bye\r\n");
    if (is("DATA") && !to.empty()) {
      say("354 go on\r\n");
      if (!next_letter(stream, read, letter)) return;
      const bool fits = letter.size() <= kLargest;
      if (fits) std::cout << from + to + letter << std::flush;
      say(fits ? "250 fine\r\n" : "552 too large\r\n");
    } else if (is("DATA") || (is("RCPT") && from.empty())) {
      say("503 not yet\r\n");
      continue;
    } else {
      const bool known = is("HELO") || is("RSET") || is("MAIL") || is("RCPT") || is("NOOP");
      say(known ? "250 fine\r\n" : "502 what?\r\n");
    }
    if (is("RCPT")) to += line + "\n";
    if (is("DATA") || is("HELO") || is("RSET") || is("MAIL")) from.clear(), to.clear();
    if (is("MAIL")) from = line + "\n";
  }
}

int main(int argc, char** argv) {
  return weft::run([&] {
    const weft::StopOnSignal stop;
    const auto where = weft::net::Address::parse(argc > 1 ? argv[1] : "127.0.0.1:0").value;
    auto [listener, error] = weft::net::TcpListener::listen(where);
    if (error) return 1;
    std::cout << "listening on " << listener.local_address().value.to_string() << std::endl;
    return weft::net::serve(listener, {.stop = stop.get_token()}, talk) ? 0 : 1;
  });
}
