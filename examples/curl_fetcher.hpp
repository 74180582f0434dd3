// libcurl's multi interface on fibers: one fiber drives all transfers, over a watch set; a fiber
// that requests a page parks until the page has arrived.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/mutex.hpp>
#include <weft/result.hpp>

class Fetcher {
 public:
  // Throws std::system_error.
  Fetcher()
      : set_(checked(weft::io::WatchSet::create())),
        wake_(checked(weft::io::make_pipe())),
        multi_(curl_multi_init()) {
    // With CURLOPT_NOSIGNAL, libcurl does not suppress this signal, which OpenSSL can cause.
    std::signal(SIGPIPE, SIG_IGN);
    if (const std::error_code error =
            set_.add(wake_.read.native_handle(), weft::io::Ready::read, kWake)) {
      throw std::system_error(error);
    }
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Fetcher::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Fetcher::on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, 8L);
    // The stack is large, because curl looks up names and prepares TLS on it.
    driver_ = weft::spawn({.stack_size = 512 * 1024, .name = "curl"}, [this] { drive(); });
  }
  ~Fetcher() {
    set_.close();
    driver_.join();
    curl_multi_cleanup(multi_);
  }
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  struct Page {
    CURLcode code = CURLE_OK;
    std::string text;
  };
  Page get(const std::string& url) {
    Transfer transfer;
    transfer.easy.reset(curl_easy_init());
    CURL* easy = transfer.easy.get();
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 30L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer.page.text);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Fetcher::on_data);
    {
      const std::lock_guard lock(mutex_);
      added_.push_back(easy);
    }
    const std::byte signal{};
    (void)weft::io::write_all(wake_.write, {&signal, 1});
    transfer.done.wait();
    return std::move(transfer.page);
  }

 private:
  struct Cleanup {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct Transfer {
    std::unique_ptr<CURL, Cleanup> easy;
    Page page;
    weft::Event done;
  };

  template <class T>
  static T checked(weft::Result<T> made) {
    if (made.error) throw std::system_error(made.error);
    return std::move(made.value);
  }

  // Makes all calls of curl's multi interface, in one fiber.
  void drive() {
    int running = 0;
    for (;;) {
      weft::io::WatchSet::Event events[64];
      const auto [count, error] = set_.wait(events, next_);
      if (error == weft::Errc::timed_out) {
        next_ = weft::Deadline::never();
        curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
      } else if (error) {
        return;
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (events[i].key == kWake) {
          take_added();
          continue;
        }
        // The bits are CURL_CSELECT_IN and OUT.
        const int bits = static_cast<int>(events[i].ready);
        curl_multi_socket_action(multi_, static_cast<curl_socket_t>(events[i].key), bits, &running);
      }
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) finish(*message);
    }
  }

  void take_added() {
    std::byte ignored[64];
    (void)weft::io::read_some(wake_.read, ignored, weft::Deadline::past());
    const std::lock_guard lock(mutex_);
    for (CURL* easy : std::exchange(added_, {})) curl_multi_add_handle(multi_, easy);
  }

  void finish(const CURLMsg& message) {
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message.easy_handle, CURLINFO_PRIVATE, &transfer);
    transfer->page.code = message.data.result;
    curl_multi_remove_handle(multi_, message.easy_handle);
    transfer->done.set();
  }

  static std::size_t on_data(const char* data, std::size_t, std::size_t size, void* text) {
    static_cast<std::string*>(text)->append(data, size);
    return size;
  }
  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    auto& fetcher = *static_cast<Fetcher*>(self);
    const auto key = static_cast<std::uint64_t>(socket);
    const auto ready = static_cast<weft::io::Ready>(what & CURL_POLL_INOUT);  // The same bits.
    if (what == CURL_POLL_REMOVE) return (void)fetcher.set_.remove(socket), 0;
    if (known != nullptr) return (void)fetcher.set_.change(socket, ready, key), 0;
    curl_multi_assign(fetcher.multi_, socket, self);
    return (void)fetcher.set_.add(socket, ready, key), 0;
  }
  static int on_timer(CURLM*, long milliseconds, void* self) {
    static_cast<Fetcher*>(self)->next_ =
        milliseconds < 0 ? weft::Deadline::never()
                         : weft::Deadline::after(std::chrono::milliseconds(milliseconds));
    return 0;
  }

  static constexpr std::uint64_t kWake = ~std::uint64_t{0};
  weft::io::WatchSet set_;
  weft::io::Pipe wake_;
  CURLM* multi_;
  weft::Deadline next_ = weft::Deadline::never();
  weft::Mutex mutex_;
  std::vector<CURL*> added_;
  weft::JoinHandle<void> driver_;
};
