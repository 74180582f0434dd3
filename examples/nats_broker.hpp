// Connects to NATS, and makes the streams and the consumer that job_worker_nats needs if they do
// not exist. The calls wait for the server, and block the thread meanwhile.
#pragma once

#include <nats/nats.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "job_worker.hpp"

inline void check(natsStatus status, const char* what) {
  if (status == NATS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + natsStatus_GetText(status));
}

template <auto kDestroy>
struct With {
  template <class T>
  void operator()(T* it) const {
    kDestroy(it);
  }
};
using Connection = std::unique_ptr<natsConnection, With<natsConnection_Destroy>>;
using Message = std::unique_ptr<natsMsg, With<natsMsg_Destroy>>;

class Broker {
 public:
  explicit Broker(const WorkerOptions& options) {
    natsConnection* connection = nullptr;
    check(natsConnection_ConnectTo(&connection, options.broker.c_str()), "connect");
    connection_.reset(connection);
    jsCtx* context = nullptr;
    check(natsConnection_JetStream(&context, connection, nullptr), "jetstream");
    context_.reset(context);
    add_stream("JOBS", "jobs.todo", js_WorkQueuePolicy);
    add_stream("DEAD", "jobs.dead", js_LimitsPolicy);
    jsConsumerConfig workers;
    jsConsumerConfig_Init(&workers);
    workers.Durable = "workers";
    workers.AckPolicy = js_AckExplicit;
    workers.AckWait = options.abandoned_ms * std::int64_t{1'000'000};
    check(js_AddConsumer(nullptr, context, "JOBS", &workers, nullptr, nullptr), "consumer");
  }
  ~Broker() { (void)natsConnection_Flush(connection_.get()); }
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  [[nodiscard]] jsCtx* context() const { return context_.get(); }

  void enqueue(int jobs) const {
    for (int i = 0; i <= jobs; ++i) {
      const std::string job = i < jobs ? std::to_string(i) : "poison";
      check(js_PublishAsync(context(), "jobs.todo", job.data(), static_cast<int>(job.size()),
                            nullptr),
            "publish");
    }
    check(js_PublishAsyncComplete(context(), nullptr), "publish");
  }
  void report() const {
    jsConsumerInfo* workers = nullptr;
    jsStreamInfo* dead = nullptr;
    check(js_GetConsumerInfo(&workers, context(), "JOBS", "workers", nullptr, nullptr), "consumer");
    const auto taken = workers->NumAckPending;
    const auto left = taken + static_cast<std::int64_t>(workers->NumPending);
    jsConsumerInfo_Destroy(workers);
    check(js_GetStreamInfo(&dead, context(), "DEAD", nullptr, nullptr), "dead letters");
    std::printf("unacknowledged %ld, dead %lu\n", left, dead->State.Msgs);
    std::printf("all have %ld\n", taken);
    jsStreamInfo_Destroy(dead);
  }

 private:
  void add_stream(const char* name, const char* subject, jsRetentionPolicy policy) const {
    jsStreamConfig stream;
    jsStreamConfig_Init(&stream);
    stream.Name = name;
    stream.Subjects = &subject;
    stream.SubjectsLen = 1;
    stream.Retention = policy;
    check(js_AddStream(nullptr, context(), &stream, nullptr, nullptr), "stream");
  }

  Connection connection_;
  std::unique_ptr<jsCtx, With<jsCtx_Destroy>> context_;
};
