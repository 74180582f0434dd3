// Simulates the service of rest_service with a slow, failing store and a network that loses data
// and cuts connections. Afterwards, no note that the service confirmed may be missing.
//
//   rest_simulation [--seeds 200] [--forgets 5]      the store forgets 5 of 100 notes
//
// If a seed fails, the program prints the events before the failure, and its exit status is 1.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <weft/deadline.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/server.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/pool.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"
#include "notes_service.hpp"
#include "notes_store.hpp"

namespace {

using namespace std::chrono_literals;
namespace sim = weft::sim;

// Is a slow store that sometimes fails, either before or after it has performed a request.
class FailingStore final : public NotesStore {
 public:
  explicit FailingStore(std::uint64_t forgets) : forgets_(forgets) {}

  std::int64_t add(const std::string& text, const weft::Until& until) override {
    hinder(until);
    if (sim::random(100) < forgets_) return 1;
    const std::int64_t id = notes_->add(text, until);
    hinder(until);
    return id;
  }
  std::vector<Note> list(const weft::Until& until) override {
    hinder(until);
    return notes_->list(until);
  }
  std::vector<Note> find(std::int64_t id, const weft::Until& until) override {
    hinder(until);
    return notes_->find(id, until);
  }
  bool remove(std::int64_t id, const weft::Until& until) override {
    hinder(until);
    return notes_->remove(id, until);
  }

 private:
  void hinder(const weft::Until& until) const {
    const auto wait = std::chrono::milliseconds(sim::chance(0.05) ? 10'000 : sim::random(20));
    const weft::Deadline answers = weft::Deadline::after(wait);
    weft::this_fiber::sleep_until(std::min(answers, until.deadline()));
    if (!answers.passed()) throw StoreError("the store does not answer in time");
    if (sim::chance(0.05)) throw StoreError("the store has failed");
  }

  const std::unique_ptr<NotesStore> notes_ = make_memory_store();
  const std::uint64_t forgets_;  // Notes per 100.
};

void run_service(std::uint64_t forgets) {
  weft::FiberPool pool({.capacity = 4, .queue_capacity = 40, .on_full = weft::OnFull::reject});
  Service service(std::make_unique<FailingStore>(forgets), pool);
  weft::http::ServerOptions setup;
  setup.limits.request = 5s;
  setup.pool = &pool;
  weft::http::Server server(service.routes(), setup);
  service.server = &server;
  auto listener = weft::net::TcpListener::listen(weft::net::Address::any_v4(8080));
  (void)server.serve(listener.value);
}

// Adds notes, and inserts the confirmed notes into `confirmed`.
void add_notes(const std::string& name, std::set<std::string>& confirmed) {
  weft::http::Client client({.connect = 2s});
  for (int i = 0; i < 10; ++i) {
    const std::string text = name + std::to_string(i);
    const std::string body = json{{"text", text}}.dump();
    auto [reply, error] =
        client.send({.method = "POST", .url = "http://service:8080/notes", .body = body}, 20s);
    if (error) continue;
    const int status = reply.status();
    sim::check(status == 201 || status == 503, "a note is added, or the store has failed");
    if (status == 201) confirmed.insert(text);
  }
}

// Waits until the store answers, and returns all texts that the service has.
std::set<std::string> read_notes() {
  weft::http::Client client;
  for (;;) {
    auto [reply, error] = client.get("http://service:8080/notes", 20s);
    if (error || reply.status() != 200) continue;
    auto [body, unread] = reply.read_all();
    if (unread) continue;
    std::set<std::string> texts;
    for (const json& note : json::parse(body)) texts.insert(note.at("text"));
    return texts;
  }
}

void body(sim::World& world, std::uint64_t forgets) {
  world.network().latency(1ms, 30ms).loss(0.01);
  world.host("service", [=] { run_service(forgets); });
  world.run_for(1ms);
  world.disturb({.partitions = 2, .stops = 2, .within = 10s, .longest = 5s});
  std::set<std::string> confirmed;
  auto one = weft::spawn([&] { add_notes("one", confirmed); });
  auto other = weft::spawn([&] { add_notes("other", confirmed); });
  one.join();
  other.join();
  world.run_for(1min);
  const std::set<std::string> kept = read_notes();
  for (const std::string& text : confirmed) {
    sim::check(kept.contains(text), "a note that was confirmed is kept");
  }
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("rest_simulation", "The service that keeps notes, in simulation.");
  std::uint64_t seeds = 50;
  std::uint64_t forgets = 0;
  line.add("--seeds", seeds, "how many runs there are");
  line.add("--forgets", forgets, "how many of 100 notes the store forgets");
  return line.run(argc, argv, [&] {
    try {
      sim::explore({.seeds = seeds}, [&](sim::World& world) { body(world, forgets); });
      std::printf("no failure in %llu seeds\n", static_cast<unsigned long long>(seeds));
      return 0;
    } catch (const sim::Failure& failure) {
      std::printf("%s\n", failure.what());
      return 1;
    }
  });
}
