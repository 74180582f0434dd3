// A TCP server that sends back what it is sent, a goroutine for each connection: the Go side of
// bench/compare_net.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
)

var connections, requests atomic.Uint64

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 4096)
	served := uint64(0)
	defer func() { requests.Add(served) }()
	for {
		count, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:count]); err != nil {
			return
		}
		served++
	}
}

func acceptAll(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "go_echo:", err)
			os.Exit(1)
		}
		connections.Add(1)
		go echo(connection)
	}
}

func main() {
	address := flag.String("listen", "127.0.0.1:7777", "address and port; port 0 lets the system choose")
	workers := flag.Int("workers", 0, "GOMAXPROCS; 0: one per processor")
	flag.Parse()
	if *workers > 0 {
		runtime.GOMAXPROCS(*workers)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "go_echo:", err)
		os.Exit(1)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	go acceptAll(listener)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
	fmt.Printf("connections %d\nrequests %d\nrefusals 0\n", connections.Load(), requests.Load())
}
