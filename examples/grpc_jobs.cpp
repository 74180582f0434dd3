// A gRPC service on fibers: each call is a task of a pool, and a full pool returns
// RESOURCE_EXHAUSTED. gRPC's threads deliver calls and send answers, and never wait; fibers wait on
// either side.
//
//   grpc_jobs --listen 127.0.0.1:50051 --running 4 --waiting 2 &
//   grpc_jobs --call 127.0.0.1:50051 --room 6
#include <grpc_jobs.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/io.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "command_line.hpp"

namespace {

using grpc::StatusCode;
using namespace std::chrono_literals;

// One call of a client. Its task gets a stop request when the client gives up or hangs up, when the
// deadline of the call passes, and when the server ends.
class Call final : public grpc::ServerUnaryReactor {
 public:
  explicit Call(const jobs::Job& job) : job_(job) {}

  // Runs in a fiber of the pool. A slow call, for instance to a database, parks here.
  void run() {
    const bool slept = weft::this_fiber::sleep_for(job_.milliseconds() * 1ms, stop_.get_token());
    Finish(slept ? grpc::Status::OK : grpc::Status(StatusCode::CANCELLED, "nobody waits any more"));
  }

 private:
  void OnCancel() override { stop_.request_stop(); }
  void OnDone() override { delete this; }

  const jobs::Job& job_;
  std::stop_source stop_;
};

class Service final : public jobs::Jobs::CallbackService {
 public:
  explicit Service(weft::FiberPool& pool) : pool_(pool) {}

  // A thread of gRPC calls this function, which does not wait.
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext*, const jobs::Job* job,
                                jobs::Done*) override {
    auto* const call = new Call(*job);
    if (!pool_.try_submit([call] { call->run(); }))
      call->Finish({StatusCode::RESOURCE_EXHAUSTED, "try again later"});
    return call;
  }

 private:
  weft::FiberPool& pool_;
};

int serve(const std::string& address, std::size_t running, std::size_t waiting) {
  auto signals = weft::io::SignalSet::watch({SIGTERM, SIGINT});
  weft::FiberPool pool({.capacity = running, .queue_capacity = waiting});
  Service service(pool);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = weft::blocking([&] { return builder.BuildAndStart(); });
  if (!server || port == 0) return 1;
  std::printf("listening on port %d\n", port);
  std::fflush(stdout);
  (void)signals.value.wait();
  // Running calls have three seconds to end.
  weft::blocking([&] { server->Shutdown(std::chrono::system_clock::now() + 3s); });
  return 0;
}

// Parks the fiber until the answer arrives.
grpc::Status ask(jobs::Jobs::Stub& stub, grpc::ClientContext& context, unsigned milliseconds) {
  jobs::Job job;
  jobs::Done answer;
  job.set_milliseconds(milliseconds);
  grpc::Status status;
  weft::Event done;
  stub.async()->Run(&context, &job, &answer, [&](grpc::Status how) {
    status = std::move(how);
    done.set();
  });
  done.wait();
  return status;
}

// Fills the server, which has room for `room` calls, and then sends short jobs.
int call(const std::string& address, std::size_t room) {
  const auto stub =
      jobs::Jobs::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  std::vector<grpc::ClientContext> contexts(room + 20);
  weft::Channel<StatusCode> ends(contexts.size());
  weft::WaitGroup all;
  for (auto& context : contexts) {
    all.go([&] { (void)ends.send(ask(*stub, context, 3'600'000).error_code()); });
  }
  std::size_t refused = 0, cancelled = 0, done = 0;
  for (std::size_t i = 0; i < 20; ++i) refused += ends.receive() == StatusCode::RESOURCE_EXHAUSTED;
  for (auto& context : contexts) context.TryCancel();
  for (std::size_t i = 0; i < room; ++i) cancelled += ends.receive() == StatusCode::CANCELLED;
  for (int i = 0; i < 100; ++i) {
    all.go([&, i] {
      for (auto pause = 1ms;; pause = std::min(2 * pause, 64ms)) {
        grpc::ClientContext context;
        const StatusCode end = ask(*stub, context, 1).error_code();
        if (end != StatusCode::RESOURCE_EXHAUSTED) return (void)ends.send(end);
        // Retries are spread, so that they do not all come at the same moment.
        weft::this_fiber::sleep_for(pause + i % 8 * pause / 8);
      }
    });
  }
  for (int i = 0; i < 100; ++i) done += ends.receive() == StatusCode::OK;
  all.wait();
  std::printf("%zu refused, %zu cancelled, %zu done\n", refused, cancelled, done);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("grpc_jobs", "Jobs by gRPC: a server, or a client that fills one.");
  std::string listen = "127.0.0.1:0", address;
  std::size_t running = 4, waiting = 2, room = 6;
  line.add("--listen", listen, "where the server listens");
  line.add("--running", running, "jobs that it does at once");
  line.add("--waiting", waiting, "jobs that may wait for that");
  line.add("--call", address, "be the client of the server there");
  line.add("--room", room, "the calls that it has room for");
  const auto work = [&] {
    return address.empty() ? serve(listen, running, waiting) : call(address, room);
  };
  // gRPC's functions need a larger stack than a fiber has by default.
  return line.run(argc, argv, [&] { return weft::run({.stack_size = 256 * 1024}, work); });
}
