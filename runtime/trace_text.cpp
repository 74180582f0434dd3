#include <weft/detail/trace_event.hpp>

#include "scheduler/record/trace_book.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft {

void detail::trace_text(TraceKind kind, std::string_view text) noexcept {
  if (scheduler::Worker* worker = scheduler::current_worker()) {
    worker->desk().recorder.note_text(kind, text);
  } else {
    scheduler::trace_text_from_outside(kind, text);
  }
}

}  // namespace weft
