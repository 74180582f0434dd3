#include <weft/trace.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ostream>
#include <streambuf>
#include <utility>

#include "observe/fiber_list.hpp"
#include "observe/json.hpp"
#include "observe/trace_story.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::trace {

namespace {

using observe::JsonWriter;
using observe::TraceStory;

// Viewers show tracks as threads of one process. Times are in microseconds.
void write_head(JsonWriter& json, std::string_view phase, std::string_view name, std::size_t track,
                std::int64_t time) {
  json.begin_object().field("ph", phase).field("name", name).field("pid", 1).field("tid", track);
  json.key("ts").thousandths(time);
}

void write_track_name(JsonWriter& json, std::size_t track, const std::string& name) {
  json.begin_object().field("ph", "M").field("name", "thread_name").field("pid", 1);
  json.field("tid", track).key("args").begin_object().field("name", name).end_object();
  json.end_object();
  json.begin_object().field("ph", "M").field("name", "thread_sort_index").field("pid", 1);
  json.field("tid", track).key("args").begin_object().field("sort_index", track).end_object();
  json.end_object();
}

void write_slice(JsonWriter& json, const observe::Slice& slice) {
  write_head(json, "X", slice.name, slice.track, slice.start);
  json.key("dur").thousandths(slice.end - slice.start);
  json.field("cat", slice.fiber != 0 ? "fiber" : "worker");
  if (slice.fiber != 0) {
    json.key("args").begin_object().field("fiber", slice.fiber);
    if (!slice.outcome.empty()) json.field("then", slice.outcome);
    if (!slice.request.empty()) json.field("request", slice.request);
    json.end_object();
  }
  json.end_object();
}

void write_arrow(JsonWriter& json, const observe::Arrow& arrow, std::size_t id) {
  write_head(json, "s", "wakes", arrow.from_track, arrow.from);
  json.field("cat", "wake").field("id", id).end_object();
  write_head(json, "f", "wakes", arrow.to_track, arrow.to);
  json.field("cat", "wake").field("id", id).field("bp", "e").end_object();
}

void write_span(JsonWriter& json, const observe::PoolSpan& span, std::size_t id) {
  const std::string name = "task of " + span.pool;
  write_head(json, "b", name, span.from_track, span.start);
  json.field("cat", "pool").field("id", id).end_object();
  write_head(json, "e", name, span.to_track, span.end);
  json.field("cat", "pool").field("id", id).end_object();
}

}  // namespace

void start(const Options& options) {
  scheduler::start_tracing(options.events_per_worker);
  if (scheduler::Worker* worker = scheduler::current_worker())
    worker->desk().recorder.look_at_trace();
}

void stop() noexcept {
  scheduler::stop_tracing();
  if (scheduler::Worker* worker = scheduler::current_worker())
    worker->desk().recorder.look_at_trace();
}

bool is_on() noexcept { return detail::is_tracing(); }

namespace {

// An output file that keeps its first error, which a std::ofstream would not report. It has no
// buffer, because a JsonWriter has one.
class TraceFile : public std::streambuf {
 public:
  explicit TraceFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) note_error();
  }
  ~TraceFile() override { (void)close(); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  [[nodiscard]] std::error_code error() const noexcept { return error_; }
  std::error_code close() noexcept {
    if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0) note_error();
    return error_;
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    std::streamsize written = 0;
    while (written < size && !error_) {
      const ssize_t count =
          ::write(descriptor_, text + written, static_cast<std::size_t>(size - written));
      if (count >= 0) {
        written += count;
      } else if (errno != EINTR) {
        note_error();
      }
    }
    return written;
  }

 private:
  void note_error() noexcept {
    if (!error_) error_ = std::error_code(errno, std::generic_category());
  }

  int descriptor_;
  std::error_code error_;
};

void write_all(std::ostream& out) {
  const TraceStory story(scheduler::recording());
  JsonWriter json(out);
  json.begin_object().field("displayTimeUnit", "ns");
  json.key("otherData").begin_object().field("overwritten_events", story.lost).end_object();
  json.key("traceEvents").begin_array();
  json.begin_object().field("ph", "M").field("name", "process_name").field("pid", 1);
  json.key("args").begin_object().field("name", "weft").end_object().end_object();
  for (std::size_t i = 0; i < story.tracks.size(); ++i) write_track_name(json, i, story.tracks[i]);
  for (const observe::Slice& slice : story.slices) write_slice(json, slice);
  for (std::size_t i = 0; i < story.arrows.size(); ++i) write_arrow(json, story.arrows[i], i + 1);
  for (std::size_t i = 0; i < story.spans.size(); ++i) write_span(json, story.spans[i], i + 1);
  for (const observe::Mark& mark : story.marks) {
    write_head(json, "i", mark.name, mark.track, mark.time);
    json.field("s", "t").end_object();
  }
  json.end_array().end_object().flush();
}

}  // namespace

// Demangling names takes kilobytes of stack.
void write(std::ostream& out) {
  observe::call_with_enough_stack([&out] { write_all(out); });
}

Result<void> write_file(const std::string& path) {
  TraceFile file(path);
  std::ostream out(&file);
  if (!file.error()) write(out);
  return file.close();
}

}  // namespace weft::trace
