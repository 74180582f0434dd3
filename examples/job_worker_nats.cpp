// Jobs from a NATS JetStream work queue. Several such programs, on any machines, share the work. If
// a worker ends without acknowledging its jobs, other workers get them after a while, so each job
// is done at least once. A job that fails repeatedly goes to the stream "DEAD".
//
//   nats-server -js &
//   job_worker_nats --broker nats://127.0.0.1:4222 --enqueue 1000
//   job_worker_nats --broker nats://127.0.0.1:4222 --name a --output done &
//   job_worker_nats --broker nats://127.0.0.1:4222 --report
//
// libnats has its own threads. weft::blocking makes the calls that wait for the server; fibers make
// the other calls directly.
#include <memory>
#include <string>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/runtime.hpp>

#include "job_worker.hpp"
#include "nats_broker.hpp"

namespace {

class NatsWorker {
 public:
  NatsWorker(const WorkerOptions& options, const Broker& broker)
      : options_(options), broker_(broker), work_(options) {
    jsSubOptions existing;
    jsSubOptions_Init(&existing);
    existing.Stream = "JOBS";
    existing.Consumer = "workers";
    natsSubscription* jobs = nullptr;
    check(js_PullSubscribe(&jobs, broker.context(), "jobs.todo", nullptr, nullptr, &existing,
                           nullptr),
          "subscribe");
    jobs_.reset(jobs);
  }

  int run() {
    return worker_.run([this](std::size_t most) { fetch(static_cast<int>(most)); });
  }

 private:
  void fetch(int most) {
    natsMsgList list{};
    const natsStatus status = weft::blocking(
        [&] { return natsSubscription_Fetch(&list, jobs_.get(), most, 100, nullptr); });
    if (status == NATS_TIMEOUT) return;
    check(status, "fetch");
    for (int i = 0; i < list.Count; ++i) {
      worker_.start([this, job = Message(std::exchange(list.Msgs[i], nullptr))] { do_job(*job); });
    }
    natsMsgList_Destroy(&list);
  }

  void do_job(natsMsg& message) {
    jsMsgMetaData* about = nullptr;
    if (natsMsg_GetMetaData(&about, &message) != NATS_OK) return;  // NATS will deliver it again.
    // NumDelivered includes tries that ended because their worker ended.
    const std::uint64_t tries = about->NumDelivered;
    jsMsgMetaData_Destroy(about);
    const std::string job(natsMsg_GetData(&message),
                          static_cast<std::size_t>(natsMsg_GetDataLength(&message)));
    try {
      if (tries > options_.tries) throw std::runtime_error("nobody has come to its end");
      work_(job);
      (void)natsMsg_Ack(&message, nullptr);
    } catch (const std::exception&) {
      if (tries >= options_.tries && weft::blocking([&] { return bury(job); })) {
        (void)natsMsg_Term(&message, nullptr);
      } else {
        (void)natsMsg_Nak(&message, nullptr);  // The next worker gets it at once.
      }
    }
  }

  [[nodiscard]] bool bury(const std::string& job) const {
    return js_Publish(nullptr, broker_.context(), "jobs.dead", job.data(),
                      static_cast<int>(job.size()), nullptr, nullptr) == NATS_OK;
  }

  const WorkerOptions& options_;
  const Broker& broker_;
  Work work_;
  std::unique_ptr<natsSubscription, With<natsSubscription_Destroy>> jobs_;
  JobWorker worker_{options_.capacity};
};

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("job_worker_nats", "Does jobs from a NATS work queue.");
  WorkerOptions options;
  options.add_to(line);
  const int status = line.run(argc, argv, [&] {
    const Broker broker(options);  // Made before any fiber, because it blocks.
    if (options.enqueue > 0) broker.enqueue(options.enqueue);
    if (options.report) broker.report();
    if (options.report || options.enqueue > 0) return 0;
    NatsWorker worker(options, broker);
    return weft::run([&] { return worker.run(); });
  });
  nats_Close();
  return status;
}
