// Tests lookups through the system's resolver, while it does not answer.
#include <netdb.h>

#include <chrono>
#include <stop_token>
#include <system_error>
#include <weft/blocking.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/net/dial.hpp>

#include "tests/faults/held_look_ups.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

TEST_SUITE_BEGIN("faults/resolver");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::Errc;
using weft::net::Resolver;
using weft::test::await_parked;
using weft::test::HeldLookUps;

// Returns the error of a lookup for a name that the system never answers.
std::error_code look_up(Resolver& resolver, const weft::Until& until) {
  return resolver.resolve("held.test", 80, until).error;
}

}  // namespace

FIBER_TEST_CASE(
    "a deadline or a stop request ends a running or queued name lookup, and later lookups "
    "succeed") {
  Resolver resolver({.max_threads = 1});
  std::stop_source source;
  weft::JoinHandle<std::error_code> patient;
  {
    const HeldLookUps held;
    auto asked = weft::spawn([&] { return look_up(resolver, source.get_token()); });
    weft::blocking([&] { held.await(1); });
    // The resolver has only one thread, so a second lookup waits for it in the queue.
    CHECK(look_up(resolver, Deadline::after(2ms)) == Errc::timed_out);
    auto stopped = weft::spawn([&] { return look_up(resolver, source.get_token()); });
    patient = weft::spawn([&] { return look_up(resolver, {}); });
    await_parked(3);
    (void)source.request_stop();
    CHECK(asked.join() == Errc::cancelled);
    CHECK(stopped.join() == Errc::cancelled);
  }
  CHECK(patient.join() == std::error_code(EAI_NONAME, weft::net::resolver_category()));
  // The resolver never started the lookups that their callers abandoned in the queue.
  CHECK(resolver.stats().finished == 2);
  CHECK(!resolver.resolve("localhost", 80).value.empty());
  // The shared resolver behaves in the same way.
  const HeldLookUps held;
  CHECK(weft::net::resolve("held.test", 80, Deadline::after(2ms)).error == Errc::timed_out);
  CHECK(weft::net::resolve("held.test", 80, source.get_token()).error == Errc::cancelled);
  CHECK(weft::net::dial("held.test:80", Deadline::after(2ms)).error == Errc::timed_out);
  CHECK(weft::net::dial("held.test:80", source.get_token()).error == Errc::cancelled);
}

THREAD_TEST_CASE(
    "a deadline or a stop request ends a plain thread's name lookup that the system does not "
    "answer") {
  Resolver resolver({.max_threads = 1});
  const HeldLookUps held;
  std::stop_source source;
  auto stopper = weft::spawn([&] {
    weft::blocking([&] { held.await(1); });
    (void)source.request_stop();
  });
  CHECK(look_up(resolver, source.get_token()) == Errc::cancelled);
  stopper.join();
  CHECK(look_up(resolver, source.get_token()) == Errc::cancelled);
  CHECK(look_up(resolver, Deadline::after(2ms)) == Errc::timed_out);
  CHECK(weft::net::resolve("held.test", 80, Deadline::after(2ms)).error == Errc::timed_out);
}

TEST_SUITE_END();
