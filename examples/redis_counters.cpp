// Uses Redis from fibers: all fibers share one connection, and their questions are sent together.
//
//   redis-server --port 0 --unixsocket /tmp/redis.sock &
//   redis_counters --redis /tmp/redis.sock --fibers 100 --rounds 100
#include <chrono>
#include <cstdio>
#include <string>
#include <weft/runtime.hpp>
#include <weft/wait_group.hpp>

#include "command_line.hpp"
#include "redis_connection.hpp"

namespace {

int count(const std::string& place, int fibers, int rounds) {
  RedisConnection redis(place);
  redis.ask({"DEL", "counter"});
  weft::WaitGroup all;
  for (int i = 0; i < fibers; ++i) {
    all.go([&, i] {
      for (int round = 0; round < rounds; ++round) redis.ask({"INCR", "counter"});
      const std::string name = "fiber:" + std::to_string(i);
      redis.ask({"SET", name, std::to_string(i), "EX", "60"});
      if (redis.ask({"GET", name})->str != std::to_string(i)) std::puts("another's answer");
    });
  }
  all.wait();
  std::printf("counted to %s\n", redis.ask({"GET", "counter"})->str);

  // The connection drops a late answer; later questions get their own answers.
  try {
    redis.ask({"BLPOP", "nothing", "0"}, std::chrono::milliseconds(1));
  } catch (const RedisError& error) {
    std::printf("%s\n", error.what());
  }
  RedisConnection(place).ask({"RPUSH", "nothing", "something"});
  std::printf("the connection goes on: %s\n", redis.ask({"PING"})->str);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("redis_counters", "Counts in Redis.");
  std::string place;
  int fibers = 100, rounds = 100;
  line.add("--redis", place, "path of its Unix socket");
  line.require("--redis");
  line.add("--fibers", fibers, "that ask at the same time");
  line.add("--rounds", rounds, "questions of each");
  return line.run(argc, argv,
                  [&] { return weft::run([&] { return count(place, fibers, rounds); }); });
}
