// Tests faults while contexts are made, and while TLS connections begin, talk and end.
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/tls/error.hpp>
#include <weft/tls/stream.hpp>

#include "tests/faults/other_side.hpp"
#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/tls/certificates.hpp"

TEST_SUITE_BEGIN("faults/tls");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::net::TcpListener;
using weft::net::TcpStream;
using weft::test::Call;
using weft::test::Certificates;
using weft::test::demand;
using weft::test::Documented;
using weft::test::expect_none;
using weft::test::kShort;
using weft::test::sweep_in_runtime;
namespace tls = weft::tls;

// The parent process creates the certificates before it starts the child processes.
const Certificates& certificates() {
  static const Certificates* const made = [] {
    static Certificates all;
    all.make("server", "a.test");
    all.make("client", "b.test");
    return &all;
  }();
  return *made;
}

// OpenSSL reports a different error for each place of the fault. OpenSSL allocates some ten
// thousand times to read a few files.
constexpr unsigned kStride = 61;

const std::error_code kNoMemory = std::make_error_code(std::errc::not_enough_memory);
const std::error_code kRefused = std::make_error_code(std::errc::protocol_error);
void expect_no_error(std::error_code error) {
  const bool is_refused = error.category() == tls::openssl_category() ||
                          error.category() == tls::verification_category();
  if (is_refused) error = kRefused;
  expect_none(error);
}

struct Contexts {
  tls::Context server;
  tls::Context client;
};

Contexts make_contexts() {
  const Certificates& files = certificates();
  auto [server, no_server] = tls::Context::server({.certificate_file = files.certificate("server"),
                                                   .key_file = files.key("server"),
                                                   .alpn = {"http/1.1"},
                                                   .client_authorities_file = files.authority()});
  expect_no_error(no_server);
  auto [client, no_client] = tls::Context::client({.authorities_file = files.authority(),
                                                   .alpn = {"http/1.1"},
                                                   .certificate_file = files.certificate("client"),
                                                   .key_file = files.key("client")});
  expect_no_error(no_client);
  return {std::move(server), std::move(client)};
}

void contexts() {
  Contexts made = make_contexts();
  expect_no_error(made.server.reload());
  expect_no_error(made.client.reload());
}
TEST_CASE("a TLS context is made and reloaded, or an error is returned, when a system call fails") {
  (void)certificates();
  sweep_in_runtime(&contexts,
                   {{Call::open_file, EMFILE},
                    {Call::allocate, ENOMEM},
                    {Call::allocate_in_tls, ENOMEM, 1, kStride}},
                   {kNoMemory, kRefused});
}

constexpr std::size_t kSize = 20'000;  // Several TLS records.

std::string text_of(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

// Sends back all bytes that arrive, until the end of the stream.
std::error_code echo(TcpStream tcp, const tls::Context& context) {
  auto [stream, refused] = tls::Stream::accept(std::move(tcp), context, Deadline::after(20s));
  if (refused) return refused;
  demand(stream.alpn() == "http/1.1", "a protocol is agreed upon");
  demand(stream.peer_subject() == "CN = b.test", "the client is who it says");
  stream.set_read_deadline(Deadline::after(20s));
  std::vector<std::byte> buffer(3000);
  for (;;) {
    const auto [count, error] = stream.read_some(buffer);
    if (error == weft::Errc::end_of_stream) return stream.shutdown(Deadline::after(20s));
    if (error) return error;
    const auto written = stream.write_all(std::span(buffer).first(count), Deadline::after(20s));
    if (written.error) return written.error;
  }
}

std::error_code talk(TcpStream tcp, const tls::Context& context) {
  auto [stream, refused] =
      tls::Stream::connect(std::move(tcp), context, "a.test", Deadline::after(20s));
  if (refused) return refused;
  stream.set_read_deadline(Deadline::after(20s));
  const std::string text = text_of(kSize);
  const auto sent = stream.write_all(std::as_bytes(std::span(text)), Deadline::after(20s));
  if (sent.error) return sent.error;
  std::string answer(text.size(), '\0');
  const auto come = stream.read_exactly(std::as_writable_bytes(std::span(answer)));
  if (come.error) return come.error;
  demand(answer == text, "what was sent comes back");
  if (const std::error_code error = stream.shutdown(Deadline::after(20s))) return error;
  std::byte rest{};
  const std::error_code end = stream.read_some(std::span(&rest, 1)).error;
  return end == weft::Errc::end_of_stream ? std::error_code() : end;
}

// Each side of the connection ends, whatever happens to the other. The client's error is reported,
// or otherwise the server's.
void visit(const Contexts& contexts) {
  auto [listener, refused] = TcpListener::listen(weft::net::Address::loopback_v4(0));
  expect_none(refused);
  const auto [address, unknown] = listener.local_address();
  expect_none(unknown);
  auto [connected, unreachable] = TcpStream::connect(address, Deadline::after(20s));
  expect_none(unreachable);
  auto [accepted, failed] = listener.accept(Deadline::after(20s));
  expect_none(failed);
  auto server = weft::spawn([&contexts, tcp = std::move(accepted)]() mutable {
    return echo(std::move(tcp), contexts.server);
  });
  std::error_code error;
  std::exception_ptr thrown;
  try {
    error = talk(std::move(connected), contexts.client);
  } catch (...) {
    thrown = std::current_exception();
    connected = {};  // Closes it if the server did not accept it.
  }
  const std::error_code of_server = server.join();
  if (thrown) std::rethrow_exception(thrown);
  expect_no_error(error);
  expect_no_error(of_server);
}

// The second visit resumes the session of the first; the third resumes that of the second with
// other keys.
void visits() {
  Contexts contexts = make_contexts();
  visit(contexts);
  visit(contexts);
  expect_no_error(contexts.server.reload());
  visit(contexts);
}

const Documented kOtherSide = weft::test::of_other_side({kRefused, tls::Errc::truncated});

TEST_CASE("a TLS connection continues or returns an error when a system call fails") {
  (void)certificates();
  sweep_in_runtime(&visits,
                   {{Call::receive, EINTR, 3},
                    {Call::receive, EAGAIN, 3},
                    {Call::receive, kShort, 300},
                    {Call::receive, ECONNRESET},
                    {Call::send, EINTR, 3},
                    {Call::send, EAGAIN, 3},
                    {Call::send, kShort, 300},
                    {Call::send, EPIPE},
                    {Call::map, ENOMEM},
                    {Call::close_file, EINTR}},
                   kOtherSide);
}
TEST_CASE("a TLS connection continues or returns the error when an allocation fails") {
  (void)certificates();
  sweep_in_runtime(&visits, {{Call::allocate, ENOMEM}}, kOtherSide);
}
TEST_CASE("a TLS connection continues or returns the error when an allocation in OpenSSL fails") {
  (void)certificates();
  sweep_in_runtime(&visits, {{Call::allocate_in_tls, ENOMEM, 1, kStride}}, kOtherSide);
}

}  // namespace

TEST_SUITE_END();
