// A server that sends prepared answers, and records the requests.
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

// Sends the next of `answers` on each connection, whatever the request is, and closes the
// connection.
class Script {
 public:
  explicit Script(std::vector<std::string> answers)
      : answers_(std::move(answers)),
        listener_(net::TcpListener::listen(net::Address::loopback_v4(0)).value),
        url_("http://" + listener_.local_address().value.to_string() + "/"),
        fiber_(spawn([this] { run(); })) {}
  [[nodiscard]] const std::string& url() const { return url_; }
  void join() { fiber_.join(); }
  // Returns the heads of the requests. Parks until all answers have been sent.
  [[nodiscard]] std::vector<std::string> requests() {
    if (fiber_.joinable()) fiber_.join();
    return requests_;
  }

 private:
  void run() {
    for (const std::string& answer : answers_) {
      net::TcpStream stream = listener_.accept().value;
      // At a '|', the server waits for the next request.
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
