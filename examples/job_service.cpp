// A service that takes jobs by HTTP, keeps them in SQLite, and runs them in a pool. No job is lost
// if the process ends, and a job that fails is tried again later.
//
//   job_service --database jobs.db --listen 127.0.0.1:8080
//   curl --data 'upper some text' http://127.0.0.1:8080/jobs       (answers with the job's number)
//   curl http://127.0.0.1:8080/jobs/1?wait=10                      (waits for its end)
//
// A job is a line: `upper TEXT`, `sleep MS TEXT`, `fail TIMES TEXT`. SQLite blocks, so a separate
// thread has the connection. SIGTERM or Ctrl-C ends the program; its next start runs the remaining
// jobs.
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/blocking_group.hpp>
#include <weft/context.hpp>
#include <weft/event.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/mutex.hpp>
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
using Rows = std::vector<std::vector<std::string>>;

struct Options {
  std::string database = "jobs.db", listen = "127.0.0.1:8080";
  std::size_t capacity = 8;
  int tries = 3, retry_ms = 100;
};

// Keeps a connection to SQLite, which one thread uses. Calling fibers park during a statement.
class Database {
 public:
  explicit Database(const std::string& path) {
    if (sqlite3_open(path.c_str(), &connection_) != SQLITE_OK) fail();
    sqlite3_busy_timeout(connection_, 5000);
  }
  ~Database() { sqlite3_close(connection_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs a statement to its end, even if the caller's context ends meanwhile.
  Rows run(std::string statement, std::vector<std::string> values = {}) {
    auto [rows, error] =
        thread_.run([this, statement = std::move(statement),
                     values = std::move(values)] { return run_here(statement, values); },
                    weft::Until::never());
    if (error) throw std::system_error(error, "SQLite");
    return std::move(rows);
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  [[noreturn]] void fail() const { throw std::runtime_error(sqlite3_errmsg(connection_)); }

  Rows run_here(const std::string& text, const std::vector<std::string>& values) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(connection_, text.c_str(), -1, &raw, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
      const std::string& value = values[static_cast<std::size_t>(i)];
      sqlite3_bind_text(raw, i + 1, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
    }
    Rows rows;
    for (;;) {
      const int state = sqlite3_step(raw);
      if (state == SQLITE_DONE) return rows;
      if (state != SQLITE_ROW) fail();
      std::vector<std::string>& row = rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(raw); ++i) {
        const auto* const value = reinterpret_cast<const char*>(sqlite3_column_text(raw, i));
        row.emplace_back(value == nullptr ? "" : value);
      }
    }
  }

  sqlite3* connection_ = nullptr;
  weft::BlockingGroup thread_{{.name = "sqlite", .max_threads = 1, .max_waiting = 10'000}};
};

// Runs a job and returns its result.
std::string work(const std::string& job, int attempt) {
  std::istringstream words(job);
  std::string verb;
  std::string text;
  int number = 0;
  words >> verb;
  if (verb != "upper") words >> number;
  std::getline(words >> std::ws, text);
  if (verb == "fail" && attempt <= number) throw std::runtime_error("attempt failed");
  if (verb == "sleep" && !weft::this_fiber::sleep_for(number * 1ms, weft::this_fiber::until())) {
    throw std::runtime_error("interrupted");
  }
  for (char& c : text) c = 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

class Jobs {
 public:
  explicit Jobs(const Options& options)
      : options_(options),
        database_(options.database),
        pool_({.capacity = options.capacity, .queue_capacity = weft::kUnlimited}),
        group_(pool_) {
    database_.run(
        "CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, job TEXT NOT NULL,"
        " state TEXT NOT NULL DEFAULT 'waiting', attempts INTEGER NOT NULL DEFAULT 0,"
        " result TEXT NOT NULL DEFAULT '')");
    for (const auto& row :
         database_.run("SELECT id, job, attempts FROM jobs WHERE state = 'waiting' ORDER BY id")) {
      start(row[0], row[1], std::stoi(row[2]) + 1, 0ms);
    }
  }

  std::string add(const std::string& job) {
    const std::string id =
        database_.run("INSERT INTO jobs (job) VALUES (?) RETURNING id", {job})[0][0];
    start(id, job, 1, 0ms);
    return id;
  }

  // Waits for the job's end, as long as the caller's context allows. Returns the state, the
  // attempts and the result, or nothing if there is no such job.
  std::optional<std::vector<std::string>> find(const std::string& id) {
    if (const auto ended = end_of(id)) (void)ended->wait_until(weft::this_fiber::until());
    Rows rows = database_.run("SELECT state, attempts, result FROM jobs WHERE id = ?", {id});
    if (rows.empty()) return {};
    return std::move(rows[0]);
  }

  // Ends the service; waiting jobs stay in the database.
  void end() {
    group_.cancel();
    group_.wait();
  }

 private:
  std::shared_ptr<weft::Event> end_of(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = ends_.find(id);
    return found == ends_.end() ? nullptr : found->second;
  }

  void start(const std::string& id, const std::string& job, int attempt,
             std::chrono::milliseconds delay) {
    {
      const std::lock_guard lock(mutex_);
      ends_.try_emplace(id, std::make_shared<weft::Event>());
    }
    group_.spawn_after(delay, [this, id, job, attempt] { attempt_job(id, job, attempt); });
  }

  void attempt_job(const std::string& id, const std::string& job, int attempt) {
    std::string state = "done";
    std::string result;
    try {
      result = work(job, attempt);
    } catch (const std::runtime_error& error) {
      if (group_.context().is_over()) return;  // The next process will run the job.
      state = attempt < options_.tries ? "waiting" : "failed";
      result = error.what();
    }
    database_.run("UPDATE jobs SET state = ?, attempts = ?, result = ? WHERE id = ?",
                  {state, std::to_string(attempt), result, id});
    if (state == "waiting") return start(id, job, attempt + 1, attempt * options_.retry_ms * 1ms);
    const std::lock_guard lock(mutex_);
    if (const auto node = ends_.extract(id)) node.mapped()->set();
  }

  const Options& options_;
  Database database_;
  weft::Mutex mutex_;
  std::map<std::string, std::shared_ptr<weft::Event>> ends_;  // For jobs that have not ended.
  weft::FiberPool pool_;
  weft::TaskGroup group_;  // Last, because its tasks use all other members.
};

void answer(Jobs& jobs, Request& request, Response& response) {
  double seconds = 0;
  const std::string wait = request.query_value("wait").value_or("0");
  (void)std::from_chars(wait.data(), wait.data() + wait.size(), seconds);
  const auto found =
      weft::with_timeout(std::chrono::duration<double>(std::clamp(seconds, 0.0, 60.0)),
                         [&] { return jobs.find(request.parameter("id")); });
  if (!found) return response.set_status(404);
  (void)response.send((*found)[0] + " after " + (*found)[1] + ": " + (*found)[2] + "\n");
}

int serve(const Options& options) {
  const weft::StopOnSignal stop;
  Jobs jobs(options);
  weft::http::Router router;
  router.post("/jobs", [&](Request& request, Response& response) {
    const auto [job, error] = request.read_all();
    if (error) return;
    response.set_status(201);
    (void)response.send(jobs.add(job) + "\n");
  });
  router.get("/jobs/{id}",
             [&](Request& request, Response& response) { answer(jobs, request, response); });
  weft::http::Server server(router, {.grace = 5s, .stop = stop.get_token()});
  auto [listener, error] =
      weft::net::TcpListener::listen(weft::net::Address::parse(options.listen).value);
  if (error) throw std::system_error(error, options.listen);
  std::printf("listening on %s\n", listener.local_address().value.to_string().c_str());
  std::fflush(stdout);
  const weft::Result<void> served = server.serve(listener);
  jobs.end();
  return served ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("job_service", "Jobs by HTTP, kept in SQLite, done in a pool.");
  Options options;
  line.add("--database", options.database, "file of SQLite");
  line.add("--listen", options.listen, "address and port; port 0 lets the system choose");
  line.add("--capacity", options.capacity, 1, 100'000, "jobs at once");
  line.add("--tries", options.tries, 1, 100, "after which a job has failed");
  line.add("--retry-ms", options.retry_ms, 0, 1'000'000, "before the second try");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(options); }); });
}
