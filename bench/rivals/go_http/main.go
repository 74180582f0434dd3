// An HTTP server that answers every request with 13 bytes, by net/http or by fasthttp: the Go side of
// bench/compare_net.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/valyala/fasthttp"
)

var hello = []byte("Hello, World!")

func withStandardLibrary(listener net.Listener) error {
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(hello)
	}))
}

func withFasthttp(listener net.Listener) error {
	return fasthttp.Serve(listener, func(context *fasthttp.RequestCtx) {
		context.SetContentType("text/plain")
		context.SetBody(hello)
	})
}

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "address and port; port 0 lets the system choose")
	workers := flag.Int("workers", 1, "GOMAXPROCS")
	certificate := flag.String("certificate", "", "a PEM file: serve by TLS")
	key := flag.String("key", "", "the certificate's key")
	library := flag.String("library", "net/http", "net/http or fasthttp")
	flag.Parse()
	serve := map[string]func(net.Listener) error{
		"net/http": withStandardLibrary, "fasthttp": withFasthttp}[*library]
	if serve == nil {
		fail("--library: net/http or fasthttp")
	}
	runtime.GOMAXPROCS(*workers)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		fail(err)
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			fail(err)
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	go func() { fail(serve(listener)) }()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}

func fail(reason any) {
	fmt.Fprintln(os.Stderr, "go_http:", reason)
	os.Exit(1)
}
