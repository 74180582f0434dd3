// A program that loads a plugin with weft in it, closes it, and then has a fault: its own handler
// must be called. The program itself does not use weft. The argument is the plugin.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr int kHandled = 42;
const char* plugin_file = nullptr;
int (*plugin_run)() = nullptr;

void own_handler(int, siginfo_t*, void*) { _exit(kHandled); }

void* load_and_run() {
  void* plugin = dlopen(plugin_file, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    (void)std::fprintf(stderr, "%s\n", dlerror());
    _exit(1);
  }
  plugin_run = reinterpret_cast<int (*)()>(dlsym(plugin, "plugin_run"));
  // Uses a thread, because a thread_local with a destructor would keep the plugin loaded.
  pthread_t thread{};
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        if (plugin_run() != 6) _exit(2);
        return nullptr;
      },
      nullptr);
  pthread_join(thread, nullptr);
  return plugin;
}

// Returns the exit status of a process with a fault after it has closed, or reloaded, the plugin.
int status_after_unloading(bool loads_again) {
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action {};
    action.sa_sigaction = &own_handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    dlclose(load_and_run());
    std::printf("the plugin %s loaded after dlclose\n",
                dlopen(plugin_file, RTLD_NOW | RTLD_NOLOAD) != nullptr ? "is" : "is not");
    (void)std::fflush(stdout);
    if (loads_again) (void)load_and_run();
    std::uintptr_t address = 8;
    asm volatile("" : "+r"(address));
    *reinterpret_cast<volatile int*>(address) = 1;
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 1;
  plugin_file = arguments[1];
  const int after = status_after_unloading(false);
  const int again = status_after_unloading(true);
  std::printf("after dlclose: %d, loaded again: %d; both must be %d\n", after, again, kHandled);
  return after == kHandled && again == kHandled ? 0 : 1;
}
