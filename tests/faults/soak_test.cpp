// Tests that a service continues while many calls fail by chance.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <weft/blocking_group.hpp>
#include <weft/channel.hpp>
#include <weft/files.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/server.hpp>
#include <weft/io.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

TEST_SUITE_BEGIN("faults/soak");

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::test::demand;
using weft::test::expect_none;
using weft::test::Random;

constexpr std::uint64_t kChances = 50;
constexpr auto kLong = 20s;
// The longest time in seconds until the next pause. The deadlines of all callers are shorter.
constexpr unsigned kPatience = 120;

// Returns for how long faults happen: WEFT_SOAK_SECONDS, or a few seconds.
std::chrono::seconds length_of_soak() {
  const char* text = std::getenv("WEFT_SOAK_SECONDS");
  return std::chrono::seconds(text != nullptr ? std::strtol(text, nullptr, 10) : 3);
}

// Runs an echo server whose handlers run in a pool, an HTTP server, and the pool. All three start
// and end without faults.
class Service {
 public:
  Service() {
    echoing_ = weft::spawn([this] {
      const std::error_code error = echo_.serve(echo_listener_);
      demand(!error, "nothing but stop() ends the echo server");
    });
    answering_ = weft::spawn([this] { (void)http_.serve(http_listener_); });
  }
  ~Service() {
    echo_.stop();
    http_.shutdown(Deadline::after(kLong));
    echoing_.join();
    answering_.join();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] const weft::net::Address& echo_address() const noexcept { return echo_address_; }
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] weft::FiberPool& pool() noexcept { return pool_; }

 private:
  static weft::net::TcpListener listen() {
    auto [listener, error] = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
    expect_none(error);
    return std::move(listener);
  }
  static weft::net::Next echo(weft::net::Connection& connection) {
    std::array<std::byte, 256> buffer;
    const auto [count, failed] = connection.bytes().read_some(buffer, Deadline::after(kLong));
    if (failed) return weft::net::Next::close;
    const auto text = std::span(buffer).first(count);
    const auto error = connection.bytes().write_all(text, Deadline::after(kLong)).error;
    return error ? weft::net::Next::close : weft::net::Next::idle;
  }
  static void answer(weft::http::Request& request, weft::http::Response& response) {
    auto [body, failed] = request.read_all();
    if (!failed) (void)response.send("you sent " + body);
  }

  weft::FiberPool pool_{{.capacity = 4, .queue_capacity = 100}};
  weft::FiberPool handlers_{{.capacity = 4}};
  weft::net::TcpListener echo_listener_ = listen();
  weft::net::TcpListener http_listener_ = listen();
  const weft::net::Address echo_address_ = echo_listener_.local_address().value;
  const std::string url_ =
      "http://127.0.0.1:" + std::to_string(http_listener_.local_address().value.port()) + "/";
  weft::net::Server echo_{&echo, {.run = weft::net::in_pool(handlers_), .grace = 1s}};
  weft::http::Server http_{
      &answer,
      {.max_running = 4, .max_queued = 4, .on_exception = [](const std::exception_ptr&) {}}};
  weft::JoinHandle<void> echoing_;
  weft::JoinHandle<void> answering_;
};

// ---- Clients and tasks: each result is right, or an error gives the reason.

void talk(const weft::net::Address& address, Random& random) {
  auto [stream, refused] = weft::net::TcpStream::connect(address, Deadline::after(kLong));
  expect_none(refused);
  for (int i = 0; i < 3; ++i) {
    std::string text(1 + random.below(2000), static_cast<char>('a' + random.below(26)));
    expect_none(stream.write_all(std::as_bytes(std::span(text)), Deadline::after(kLong)).error);
    std::string echo(text.size(), '\0');
    const auto bytes = std::as_writable_bytes(std::span(echo));
    expect_none(stream.read_exactly(bytes, Deadline::after(kLong)).error);
    demand(echo == text, "what was sent comes back");
  }
}

void ask(weft::http::Client& client, const std::string& url, Random& random) {
  const std::string body(random.below(5000), 'q');
  auto [reply, failed] =
      client.send({.method = "POST", .url = url, .body = body}, Deadline::after(kLong));
  expect_none(failed);
  const auto [text, broken] = reply.read_all(Deadline::after(kLong));
  expect_none(broken);
  // The server answers 400 if it could not read the body.
  if (reply.status() == 500 || reply.status() == 503 || reply.status() == 400) {
    expect_none(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  demand(reply.status() == 200 && text == "you sent " + body, "an answer is whole");
}

void use_channel() {
  weft::Channel<int> numbers(4);
  auto sender = weft::spawn([&numbers] {
    for (int i = 1; i <= 100; ++i) (void)numbers.send(i);
    numbers.close();
  });
  int sum = 0;
  for (const int number : numbers) sum += number;
  sender.join();
  demand(sum == 5050, "all that is sent is received");
}

void use_file(const std::string& path) {
  const std::string text(3000, 'f');
  expect_none(weft::files::replace_file(path, text));
  const auto [whole, unread] = weft::files::read_file(path);
  expect_none(unread);
  demand(whole == text, "a file is what was written");
}

void dial(const weft::net::Address& address, weft::net::Resolver& resolver) {
  const std::string name = "localhost:" + std::to_string(address.port());
  expect_none(weft::net::dial(name, {.resolver = &resolver}, Deadline::after(kLong)).error);
}

void run_command() {
  const auto [result, error] = weft::io::run_command({"echo", "said"}, {}, Deadline::after(kLong));
  expect_none(error);
  demand(result.output == "said\n", "what a program writes is read");
}

// Runs fibers that repeat an action, and pauses in which no faults happen.
class Work {
 public:
  explicit Work(Service& service) : service_(service) {
    char* const folder = ::mkdtemp(folder_.data());
    demand(folder != nullptr, "there is a folder");
    for (int i = 0; i < 3; ++i)
      add([this](Random& random) { talk(service_.echo_address(), random); });
    for (int i = 0; i < 3; ++i)
      add([this](Random& random) { ask(client_, service_.url(), random); });
    for (int i = 0; i < 3; ++i) add([this](Random& random) { use_pool(random); });
    add([](Random&) { use_channel(); });
    add([this](Random&) { use_file(file()); });
    add([this](Random&) { dial(service_.echo_address(), resolver_); });
    add([this](Random&) {
      const auto [value, refused] = group_.run([] { return 7; });
      expect_none(refused);
      demand(value == 7, "a call returns");
    });
    add([](Random& random) {
      run_command();
      weft::this_fiber::sleep_for(std::chrono::milliseconds(random.below(20)));
    });
  }
  ~Work() {
    ends_ = true;
    go_on();
    fibers_.join();
    ::unlink(file().c_str());
    ::rmdir(folder_.data());
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void rest() {
    resting_ = true;
    while (at_rest_ < count_) weft::this_fiber::sleep_for(1ms);
    service_.pool().wait_idle();
    demand(ran_ == accepted_, "what the pool accepts runs, once");
  }
  void go_on() { resting_ = false; }
  // Checks, without faults, that the servers still work.
  void check_service() {
    Random random(count_);
    talk(service_.echo_address(), random);
    ask(client_, service_.url(), random);
  }
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }

 private:
  template <class Action>
  void add(Action action) {
    const std::uint64_t number = ++count_;
    fibers_.spawn([this, action, number] {
      Random random(number);
      while (!ends_) {
        if (resting_) {
          ++at_rest_;
          while (resting_) weft::this_fiber::sleep_for(1ms);
          --at_rest_;
          continue;  // The next pause may be due.
        }
        try {
          action(random);
          ++done_;
        } catch (const std::bad_alloc&) {
          ++failed_;
        } catch (const std::system_error& error) {
          demand(error.code() != weft::Errc::timed_out, "nobody is kept waiting");
          ++failed_;
        }
        weft::this_fiber::yield();
      }
    });
  }
  void use_pool(Random& random) {
    const weft::SubmitOptions options{.key = weft::TaskKey(random.below(3))};
    for (int i = 0; i < 20; ++i) {
      const auto task = [this] { ++ran_; };
      if (random.one_in(2) ? service_.pool().submit(options, task) : service_.pool().submit(task)) {
        ++accepted_;
      }
    }
    demand(service_.pool().run([] { return 3; }) == 3, "a call returns");
  }
  [[nodiscard]] std::string file() const { return std::string(folder_.data()) + "/file"; }

  Service& service_;
  std::array<char, 32> folder_{"/tmp/weft_soak_XXXXXX"};
  weft::http::Client client_;
  weft::net::Resolver resolver_;
  weft::BlockingGroup group_{{.max_threads = 2}};
  std::atomic<bool> resting_{false};
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> at_rest_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> ran_{0};
  std::uint64_t count_ = 0;
  weft::TaskGroup fibers_;
};

// Prints a line each minute, and at the end.
void tell(const Work& work, std::chrono::steady_clock::duration time) {
  std::ifstream pages("/proc/self/statm");
  std::size_t mapped = 0;
  std::size_t resident = 0;
  pages >> mapped >> resident;
  std::cerr << std::chrono::duration_cast<std::chrono::seconds>(time).count()
            << " s: " << work.done() << " done, " << work.failed() << " failed; " << resident * 4
            << " KiB, " << weft::test::held().blocks << " blocks, "
            << weft::test::count_descriptors() << " descriptors, "
            << weft::test::TestGuard::count_threads() << " threads" << std::endl;
}

void live(bool with_faults) {
  const auto length = with_faults ? length_of_soak() : 1s;
  weft::Runtime runtime({.workers = 2});
  runtime.run([&] {
    Service service;
    Work work(service);
    work.check_service();  // Its servers have started.
    const auto begin = std::chrono::steady_clock::now();
    auto passed = begin - begin;
    for (auto told = passed; passed < length;) {
      weft::test::still_alive(kPatience);
      if (with_faults) weft::test::arm_by_chance(kChances);
      weft::this_fiber::sleep_for(1s);
      (void)weft::test::disarm();
      work.rest();
      work.check_service();
      passed = std::chrono::steady_clock::now() - begin;
      if (with_faults && (passed - told >= 1min || passed >= length)) {
        tell(work, passed);
        told = passed;
      }
      work.go_on();
    }
    if (with_faults) demand(work.failed() > 0 && work.done() > 0, "some faults come, and not only");
  });
}

TEST_CASE(
    "a service continues and leaks nothing when its system calls and allocations fail at random") {
  weft::test::soak(&live);
}

}  // namespace

TEST_SUITE_END();
