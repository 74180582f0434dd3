#include <weft/weft.hpp>

int main() {
  return weft::run([] { return weft::spawn([] { return 42; }).join(); }) == 42 ? 0 : 1;
}
