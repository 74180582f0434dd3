// A server that answers what it has been told, and notes what it was asked.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>

#include "tests/support/http_test.hpp"

namespace weft::test {

// Answers each connection with the next of `answers`, whatever it is asked, and ends it.
class Script {
 public:
  explicit Script(std::vector<std::string> answers)
      : answers_(std::move(answers)),
        listener_(net::TcpListener::listen(net::Address::loopback_v4(0)).value),
        url_("http://" + listener_.local_address().value.to_string() + "/"),
        fiber_(spawn([this] { run(); })) {}
  [[nodiscard]] const std::string& url() const { return url_; }
  void join() { fiber_.join(); }
  // The heads of what it was asked. Parks until all answers have been given.
  [[nodiscard]] std::vector<std::string> requests() {
    if (fiber_.joinable()) fiber_.join();
    return requests_;
  }

 private:
  void run() {
    for (const std::string& answer : answers_) {
      net::TcpStream stream = listener_.accept().value;
      // '|' is where the next request is waited for.
      std::string_view rest = answer;
      while (!rest.empty()) {
        requests_.push_back(receive_until(stream, "\r\n\r\n"));
        const std::size_t end = std::min(rest.find('|'), rest.size());
        send_text(stream, rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (rest.empty() && answer.back() == '|') (void)receive_until(stream, "\r\n\r\n");
      }
    }
  }

  const std::vector<std::string> answers_;
  std::vector<std::string> requests_;  // The fiber writes it; it is read after the fiber's end.
  net::TcpListener listener_;
  const std::string url_;
  JoinHandle<void> fiber_;
};

inline const std::string kGood = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

}  // namespace weft::test
