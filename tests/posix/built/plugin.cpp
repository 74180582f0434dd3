// Is a library that a program opens. It contains a function that blocks.
#include <sys/socket.h>

extern "C" int receive_there(int descriptor) {
  char byte = 0;
  return static_cast<int>(::recv(descriptor, &byte, 1, 0));
}
