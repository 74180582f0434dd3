// Is a service that calls another service, both in one trace. Each request is a span in the JSON
// form of OpenTelemetry (OTLP), printed as a line on stdout or sent by POST to a collector.
//
//   traced_service --listen 127.0.0.1:8080 --collector http://127.0.0.1:4318/v1/traces
//
// "curl -H 'traceparent: 00-...' http://127.0.0.1:8080/order" makes the spans parts of that trace.
// The handlers do not mention the trace: it travels with the context of the request.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/http/client.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/http/trace_context.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/runtime.hpp>
#include <weft/stop_on_signal.hpp>

#include "command_line.hpp"

namespace {

using weft::http::Handler;
using weft::http::Request;
using weft::http::Response;
using weft::http::TraceContext;

std::string now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::nanoseconds(time).count());
}

// "00-TRACE-SPAN-01" has both ids in OTLP's form.
std::string trace_of(const TraceContext& context) { return context.to_string().substr(3, 32); }
std::string span_of(const TraceContext& context) { return context.to_string().substr(36, 16); }

// Sends spans in a separate fiber. If spans arrive too fast, it drops some, so that no request
// waits.
class Exporter {
 public:
  explicit Exporter(std::string collector)
      : collector_(std::move(collector)), sender_(weft::spawn([this] { send(); })) {}
  ~Exporter() {
    spans_.close();
    sender_.join();
  }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  void add(std::string span) { (void)spans_.try_send(std::move(span)); }

 private:
  void send() {
    weft::http::Client client;
    while (auto span = spans_.receive()) {
      if (collector_.empty()) {
        std::puts(span->c_str());
        std::fflush(stdout);
        continue;
      }
      const weft::http::Call call{.method = "POST",
                                  .url = collector_,
                                  .headers = {{"Content-Type", "application/json"}},
                                  .body = *span};
      const auto reply = client.send(call, std::chrono::seconds(5));
      if (reply.error) std::fprintf(stderr, "collector: %s\n", reply.error.message().c_str());
    }
  }

  const std::string collector_;
  weft::Channel<std::string> spans_{1000};
  weft::JoinHandle<void> sender_;
};

// Makes each request a span of the client's trace, or of a new trace.
weft::http::Middleware traced(std::string service, Exporter& exporter) {
  return [service = std::move(service), &exporter](Request& request, Response& response,
                                                   const Handler& next) {
    const std::string began = now();
    const auto parent = weft::http::received_trace(request);
    const TraceContext span = parent ? parent->child() : TraceContext::make();
    request.context().set(weft::http::trace_key(), span);
    next(request, response);
    if (!span.is_sampled) return;
    const std::string above = parent ? R"("parentSpanId":")" + span_of(*parent) + R"(",)" : "";
    exporter.add(R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name",)"
                 R"("value":{"stringValue":")" +
                 service + R"("}}]},"scopeSpans":[{"spans":[{"traceId":")" + trace_of(span) +
                 R"(","spanId":")" + span_of(span) + R"(",)" + above + R"("name":")" +
                 std::string(request.method()) + R"(","kind":2,"startTimeUnixNano":")" + began +
                 R"(","endTimeUnixNano":")" + now() +
                 R"(","attributes":[{"key":"http.response.status_code","value":{"intValue":")" +
                 std::to_string(response.status()) + R"("}}]}]}]}]})");
  };
}

// Each call carries the trace of the caller's context.
std::string ask(weft::http::Client& client, const std::string& url) {
  weft::http::Call call{.url = url};
  weft::http::add_trace(call);
  auto [reply, error] = client.send(call);
  return error ? error.message() : reply.read_all().value;
}

int serve(const std::string& listen, const std::string& collector) {
  auto [front, error] = weft::net::TcpListener::listen(weft::net::Address::parse(listen).value);
  auto back = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
  if (error || back.error) {
    std::fprintf(stderr, "traced_service: cannot listen on %s\n", listen.c_str());
    return 1;
  }
  std::printf("listening on %s\n", front.local_address().value.to_string().c_str());
  std::fflush(stdout);
  Exporter exporter(collector);
  weft::http::Router stock;
  stock.use(traced("stock", exporter)).get("/count", [](Request&, Response& response) {
    (void)response.send("17");
  });
  weft::http::Server stock_server(stock);
  auto serving_stock = weft::spawn([&] { return stock_server.serve(back.value); });

  weft::http::Client client;
  const std::string stock_url = "http://" + back.value.local_address().value.to_string() + "/count";
  weft::http::Router shop;
  shop.use(traced("shop", exporter)).get("/order", [&](Request&, Response& response) {
    (void)response.send(ask(client, stock_url) + " left\n");
  });
  const weft::StopOnSignal stop;
  weft::http::Server shop_server(shop, {.stop = stop.get_token()});
  const bool has_served = static_cast<bool>(shop_server.serve(front));
  (void)stock_server.shutdown(weft::Deadline::after(std::chrono::seconds(5)));
  return serving_stock.join() && has_served ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("traced_service", "Two services in one trace.");
  std::string listen = "127.0.0.1:8080";
  std::string collector;
  line.add("--listen", listen, "address and port; port 0 lets the system choose");
  line.add("--collector", collector, "URL for spans (OTLP by HTTP); without it they go to stdout");
  return line.run(argc, argv, [&] { return weft::run([&] { return serve(listen, collector); }); });
}
