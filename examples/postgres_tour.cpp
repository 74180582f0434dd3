// Uses PostgreSQL from fibers: many fibers share a few connections, several queries go in one round
// trip, and a query is cancelled at its deadline.
//
//   postgres_tour --postgres "host=/run/postgresql dbname=test" --connections 4 --fibers 100
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>

#include "command_line.hpp"
#include "postgres_pool.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 60s;
const Query kInsert{"INSERT INTO visits (name) VALUES ($1)", {"somebody"}};

long milliseconds_since(Clock::time_point start) {
  return static_cast<long>((Clock::now() - start) / 1ms);
}

// Starts fibers that each use one of the connections for one query.
void share(PostgresPool& pool, int fibers) {
  std::atomic<int> at_once{0}, most{0};
  weft::TaskGroup all;
  for (int i = 0; i < fibers; ++i) {
    all.spawn([&] {
      pool.with_session(kPatience, [&](PostgresSession& session) {
        const int now = ++at_once;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        (void)session.ask(kInsert, kPatience);
        --at_once;
      });
    });
  }
  all.join();
  const auto rows = pool.with_session(kPatience, [](PostgresSession& session) {
    const auto answer = session.ask({"SELECT count(*) FROM visits"}, kPatience);
    return std::string(PQgetvalue(answer.get(), 0, 0));
  });
  std::printf("%d fibers, at most %d at once: %s rows\n", fibers, most.load(), rows.c_str());
}

void compare_round_trips(PostgresSession& session, int queries) {
  const auto start = Clock::now();
  for (int i = 0; i < queries; ++i) (void)session.ask(kInsert, kPatience);
  const long apart = milliseconds_since(start);
  const std::vector<Query> many(static_cast<std::size_t>(queries), kInsert);
  const auto middle = Clock::now();
  const auto answers = session.ask(many, kPatience);
  std::printf("%zu inserts: %ld ms in one round trip, %ld ms in as many\n", answers.size(),
              milliseconds_since(middle), apart);
}

std::string number_of(PostgresSession& session) {
  const auto answer = session.ask({"SELECT pg_backend_pid()"}, kPatience);
  return PQgetvalue(answer.get(), 0, 0);
}

void give_up(PostgresSession& session) {
  const std::string before = number_of(session);
  try {
    (void)session.ask({"SELECT pg_sleep(600)"}, 100ms);
  } catch (const PostgresError& error) {
    std::printf("after 100 ms: %s\n", error.what());
  }
  std::printf("the session goes on: %s\n", number_of(session) == before ? "yes" : "no");
}

// If a caller does not end its transaction, the pool closes that session; the next caller gets
// another session.
void leave_open(const std::string& where) {
  PostgresPool pool(where, 1, {{"SET application_name = 'postgres_tour'"}});
  pool.with_session(kPatience, [](PostgresSession& session) {
    const std::vector<Query> begin = {{"BEGIN"}, {"SET LOCAL application_name = 'left open'"}};
    (void)session.ask(begin, kPatience);
  });
  pool.with_session(kPatience, [](PostgresSession& session) {
    const auto answer = session.ask({"SHOW application_name"}, kPatience);
    std::printf("the next session is that of %s\n", PQgetvalue(answer.get(), 0, 0));
  });
}

int tour(const std::string& where, std::size_t connections, int fibers) {
  PostgresPool pool(where, connections, {{"SET application_name = 'postgres_tour'"}});
  pool.with_session(kPatience, [](PostgresSession& session) {
    (void)session.ask({"CREATE TABLE IF NOT EXISTS visits (id BIGSERIAL, name TEXT NOT NULL)"},
                      kPatience);
  });
  share(pool, fibers);
  pool.with_session(kPatience, [&](PostgresSession& session) {
    compare_round_trips(session, 1000);
    give_up(session);
  });
  leave_open(where);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("postgres_tour", "Asks PostgreSQL from many fibers.");
  std::string where;
  std::size_t connections = 4;
  int fibers = 100;
  line.add("--postgres", where, "where it is, as libpq wants it");
  line.require("--postgres");
  line.add("--connections", connections, 1, 1000, "at most so many");
  line.add("--fibers", fibers, 1, 1'000'000, "that share them");
  return line.run(argc, argv,
                  [&] { return weft::run([&] { return tour(where, connections, fibers); }); });
}
