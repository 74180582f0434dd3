// Jobs from a Redis stream. Several such programs, on any machines, share the work: a consumer
// group hands each job to one of them. If a worker ends without acknowledging its jobs, other
// workers take them over, so each job is done at least once. A job that fails repeatedly goes to
// the stream "jobs:dead".
//
//   redis-server --port 0 --unixsocket /tmp/redis.sock &
//   job_worker_redis --broker /tmp/redis.sock --enqueue 1000
//   job_worker_redis --broker /tmp/redis.sock --name a --output done &
//   job_worker_redis --broker /tmp/redis.sock --report
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>

#include "job_worker.hpp"
#include "redis_connection.hpp"

namespace {

constexpr const char* kStream = "jobs";
constexpr const char* kDead = "jobs:dead";
constexpr const char* kGroup = "workers";
// One script acknowledges and deletes a job, because a stream keeps acknowledged jobs, and the
// worker could end between two commands.
constexpr const char* kAcknowledge =
    "redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) return redis.call('XDEL', KEYS[1], ARGV[2])";

std::string text_of(const redisReply& reply) { return {reply.str, reply.len}; }

void make_group(RedisConnection& redis) {
  try {
    redis.ask({"XGROUP", "CREATE", kStream, kGroup, "0", "MKSTREAM"});
  } catch (const RedisError& error) {
    if (std::string(error.what()).find("BUSYGROUP") == std::string::npos) throw;
  }
}

class RedisWorker {
 public:
  explicit RedisWorker(const WorkerOptions& options)
      : options_(options), redis_(options.broker), asking_(options.broker), work_(options) {
    make_group(redis_);
  }

  int run() {
    return worker_.run([this](std::size_t most) { fetch(most); });
  }

 private:
  void fetch(std::size_t most) {
    const std::string count = std::to_string(most);
    // First takes jobs that other workers left behind, then new jobs.
    const auto left = redis_.ask({"XAUTOCLAIM", kStream, kGroup, options_.name,
                                  std::to_string(options_.abandoned_ms), "0", "COUNT", count});
    if (take(*left->element[1], true) > 0) return;
    // This command waits, so it has a separate connection.
    const auto fresh = asking_.ask({"XREADGROUP", "GROUP", kGroup, options_.name, "COUNT", count,
                                    "BLOCK", "100", "STREAMS", kStream, ">"});
    if (fresh->type == REDIS_REPLY_ARRAY) take(*fresh->element[0]->element[1], false);
  }

  std::size_t take(const redisReply& entries, bool again) {
    for (std::size_t i = 0; i < entries.elements; ++i) {
      const redisReply& entry = *entries.element[i];  // An id, and [name, value, ...].
      const std::string id = text_of(*entry.element[0]);
      const std::string job = text_of(*entry.element[1]->element[1]);
      const std::lock_guard lock(mutex_);
      if (!running_.insert(id).second) continue;  // This worker still runs it.
      worker_.start([this, id, job, again] { do_job(id, job, again); });
    }
    return entries.elements;
  }

  void do_job(const std::string& id, const std::string& job, bool again) {
    try {
      const bool is_dead = again && deliveries(id) > options_.tries;
      if (is_dead) redis_.ask({"XADD", kDead, "*", "job", job});
      if (is_dead || attempt(id, job)) redis_.ask({"EVAL", kAcknowledge, "1", kStream, kGroup, id});
    } catch (const RedisError& error) {  // Not acknowledged: another worker takes it over.
      std::fprintf(stderr, "job %s: %s\n", id.c_str(), error.what());
    }
    const std::lock_guard lock(mutex_);
    running_.erase(id);
  }

  // Returns false if the job failed. The job is then marked as abandoned, so the next worker that
  // reads the stream takes it.
  bool attempt(const std::string& id, const std::string& job) {
    try {
      work_(job);
      return true;
    } catch (const std::exception&) {
      redis_.ask({"XCLAIM", kStream, kGroup, options_.name, "0", id, "IDLE",
                  std::to_string(options_.abandoned_ms), "JUSTID"});
      return false;
    }
  }

  // Returns how often the job has been delivered.
  std::size_t deliveries(const std::string& id) {
    const auto reply = redis_.ask({"XPENDING", kStream, kGroup, id, id, "1"});
    return reply->elements == 0 ? 0
                                : static_cast<std::size_t>(reply->element[0]->element[3]->integer);
  }

  const WorkerOptions& options_;
  RedisConnection redis_, asking_;
  Work work_;
  weft::Mutex mutex_;
  std::set<std::string> running_;
  JobWorker worker_{options_.capacity};
};

void enqueue(RedisConnection& redis, int jobs) {
  make_group(redis);
  weft::FiberPool pool({.capacity = 100});
  for (int i = 0; i < jobs; ++i) {
    (void)pool.submit([&redis, i] { redis.ask({"XADD", kStream, "*", "job", std::to_string(i)}); });
  }
  pool.wait_idle();
  redis.ask({"XADD", kStream, "*", "job", "poison"});
}

void report(RedisConnection& redis) {
  const auto left = redis.ask({"XLEN", kStream});
  const auto dead = redis.ask({"XLEN", kDead});
  std::printf("unacknowledged %lld, dead %lld\n", left->integer, dead->integer);
  const auto pending = redis.ask({"XPENDING", kStream, kGroup});
  const redisReply& workers = *pending->element[3];  // The entry is nil if no worker has a job.
  for (std::size_t i = 0; i < workers.elements; ++i) {
    const redisReply& worker = *workers.element[i];
    std::printf("%s has %s\n", worker.element[0]->str, worker.element[1]->str);
  }
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("job_worker_redis", "Does jobs from a Redis stream.");
  WorkerOptions options;
  options.add_to(line);
  const auto work = [&] {
    if (!options.report && options.enqueue == 0) return RedisWorker(options).run();
    RedisConnection redis(options.broker);
    if (options.enqueue > 0) enqueue(redis, options.enqueue);
    if (options.report) report(redis);
    return 0;
  };
  return line.run(argc, argv, [&] { return weft::run(work); });
}
