// Is a service with six faults, for practice in finding which tool shows which fault.
//
//   sick_service --seconds 60 &
//   curl http://127.0.0.1:8080/debug/weft/fibers
//
// docs/production.md, "When it is slow", describes the checks; sick_service_test runs them and
// compares the results with the faults, which are marked here.
#include <poll.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/http/live_page.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

using namespace std::chrono_literals;
using weft::http::Request;
using weft::http::Response;

// Fault 1 is a hot function: each request takes milliseconds of processor time.
[[gnu::noinline]] std::uint64_t grind(std::uint64_t number) {
  for (int i = 0; i < 3'000'000; ++i) number = number * 6364136223846793005U + 1442695040888963407U;
  return number;
}
void answer_price(Request& /*request*/, Response& response) {
  (void)response.send(std::to_string(grind(1)) + "\n");
}

// Fault 2 is a leak of fibers, because no caller sets the event.
void remember(weft::Event& never) { never.wait(); }
void answer_subscribe(weft::Event& never, Response& response) {
  weft::go([&never] { remember(never); });
  (void)response.send("subscribed\n");
}

// Fault 3 is a call that blocks a worker.
[[gnu::noinline]] void ask_old_database() { (void)::poll(nullptr, 0, 3'000); }
void answer_account(Request& /*request*/, Response& response) {
  ask_old_database();
  (void)response.send("42\n");
}

// Fault 4 is a pool that is too small for the arriving tasks.
void answer_mail(weft::FiberPool& mail, Response& response) {
  const auto accepted = mail.try_submit([] { weft::this_fiber::sleep_for(1s); });
  if (!accepted) response.set_status(503);
  (void)response.send(accepted ? "queued\n" : "try again later\n");
}

// Fault 5 is a client that sends its upload byte by byte.
void answer_upload(Request& request, Response& response) {
  std::array<std::byte, 4096> part;
  std::size_t total = 0;
  for (;;) {
    const auto [count, error] = request.read_some(part);
    if (error == weft::Errc::end_of_stream) break;
    if (error) return;
    total += count;
  }
  (void)response.send(std::to_string(total) + "\n");
}

// Fault 6 is a route that is slow although it does no work.
void answer_search(Request& /*request*/, Response& response) {
  weft::this_fiber::sleep_for(400ms);
  (void)response.send("nothing found\n");
}

int serve(const std::string& where, double seconds) {
  const auto [address, malformed] = weft::net::Address::parse(where);
  auto [listener, error] = weft::net::TcpListener::listen(address);
  if (malformed || error) {
    std::fprintf(stderr, "sick_service: cannot listen on %s\n", where.c_str());
    return 1;
  }
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);

  weft::Event never;
  weft::FiberPool mail({.capacity = 2, .queue_capacity = 20, .name = "mail"});
  weft::http::Router router;
  router.get("/price", answer_price).get("/account", answer_account).get("/search", answer_search);
  router.get("/subscribe",
             [&](Request&, Response& response) { answer_subscribe(never, response); });
  router.get("/mail", [&](Request&, Response& response) { answer_mail(mail, response); });
  router.post("/upload", answer_upload);
  weft::http::mount_live_page(router, "/debug/weft");
  const weft::StopOnSignal stop;
  weft::http::ServerOptions options;
  options.stop = stop.get_token();
  weft::http::Server server(router, options);
  weft::TaskGroup limit;
  limit.spawn_after(std::chrono::duration<double>(seconds), [&server] { server.stop(); });
  const std::error_code failed = server.serve(listener);
  limit.cancel();
  mail.close(weft::Close::discard);
  never.set();
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("sick_service", "A service with six faults at once.");
  std::string listen = "127.0.0.1:8080";
  double seconds = 60;
  line.add("--listen", listen, "address and port; port 0 lets the system choose");
  line.add("--seconds", seconds, "how long");
  return line.run(argc, argv, [&] {
    return weft::run({.workers = 4, .dump_signal = SIGQUIT},
                     [&] { return serve(listen, seconds); });
  });
}
