// A line protocol in few lines: enough SMTP to take mail, which it prints. A fiber for each client.
// client.
//
//   mail_server 127.0.0.1:2525 &
//   curl smtp://127.0.0.1:2525 --mail-from a@b.c --mail-rcpt d@e.f --upload-file letter
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net/serve.hpp>
#include <weft/runtime.hpp>

namespace {

// Reads lines, and writes answers; both end when a client takes too long.
class Lines {
 public:
  explicit Lines(weft::net::ByteStream& stream) : stream_(stream) {}
  // False at the end.
  bool next(std::string& line) {
    for (std::size_t end = 0; (end = read_.find("\r\n")) == std::string::npos;) {
      std::array<std::byte, 2048> part;
      const auto [count, error] = stream_.read_some(part, std::chrono::minutes(1));
      if (error || read_.size() > 4096) return false;
      read_.append(reinterpret_cast<const char*>(part.data()), count);
    }
    line = read_.substr(0, read_.find("\r\n"));
    read_.erase(0, line.size() + 2);
    return true;
  }
  void say(const char* line) {
    const std::string text = std::string(line) + "\r\n";
    (void)stream_.write_all(std::as_bytes(std::span(text)), std::chrono::minutes(1));
  }

 private:
  weft::net::ByteStream& stream_;
  std::string read_;
};

void talk(weft::net::ByteStream& stream) {
  Lines lines(stream);
  lines.say("220 mail_server");
  std::string mail;
  std::string line;
  while (lines.next(line)) {
    const std::string verb = line.substr(0, 4);
    if (verb == "QUIT") return lines.say("221 bye");
    if (verb == "DATA") {
      lines.say("354 go on");
      for (;;) {
        if (!lines.next(line)) return;
        if (line == ".") break;
        mail += line.substr(line.rfind("..", 0) == 0) + "\n";
      }
      std::fputs(mail.c_str(), stdout);
      std::fflush(stdout);
    } else if (verb == "MAIL" || verb == "RCPT") {
      mail += line + "\n";
    } else if (verb != "HELO" && verb != "NOOP" && verb != "RSET") {
      lines.say("502 what?");
      continue;
    }
    if (verb == "RSET" || verb == "HELO" || verb == "DATA") mail.clear();
    lines.say("250 fine");
  }
}

int serve(const char* where) {
  auto signals = weft::io::SignalSet::watch({SIGTERM, SIGINT});
  auto [listener, error] = weft::net::TcpListener::listen(weft::net::Address::parse(where).value);
  if (error) return 1;
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  auto ending = weft::spawn([&, &open = listener] { (void)signals.value.wait(), open.close(); });
  return weft::net::serve(listener, talk) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return weft::run([&] { return serve(argc > 1 ? argv[1] : "127.0.0.1:0"); });
}
